//! Bound of what aliases expand to.

use super::{ALIAS_BYTES_MAX, ALIAS_BYTES_RATIO, ALIAS_NODES_MAX};

/// Nodes, and bytes of texts and keys, that aliases expand to: a short text can expand to gigabytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Expansion {
    pub(super) nodes: usize,
    pub(super) bytes: usize,
}

impl Expansion {
    /// Both together.
    pub(crate) fn and(self, other: Expansion) -> Expansion {
        Expansion {
            nodes: self.nodes + other.nodes,
            bytes: self.bytes + other.bytes,
        }
    }

    /// The part that is more than `other`.
    pub(crate) fn beyond(self, other: Expansion) -> Expansion {
        Expansion {
            nodes: self.nodes - other.nodes,
            bytes: self.bytes - other.bytes,
        }
    }

    /// The bound that is exceeded, if one is, by a document of this length behind others that expand to `before`.
    pub(super) fn excess(self, before: Expansion, text_bytes: usize) -> Option<String> {
        let own_max = ALIAS_BYTES_MAX.min(text_bytes * ALIAS_BYTES_RATIO);
        let (most, is_own) = if self.nodes > ALIAS_NODES_MAX {
            (format!("{ALIAS_NODES_MAX} values"), before.nodes == 0)
        } else if self.beyond(before).bytes > own_max {
            (format!("{own_max} bytes"), true)
        } else if self.bytes > ALIAS_BYTES_MAX {
            (format!("{ALIAS_BYTES_MAX} bytes"), false)
        } else {
            return None;
        };
        let of = match is_own {
            true => "document",
            false => "document and those above",
        };
        Some(format!(
            "the aliases of this {of} expand to more than {most}"
        ))
    }
}
