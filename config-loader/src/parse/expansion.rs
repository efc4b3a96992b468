//! Limits of alias expansion.

use super::{ALIAS_BYTES_MAX, ALIAS_BYTES_RATIO, ALIAS_NODES_MAX};

/// Size of expanded aliases: number of nodes, and bytes of texts and keys. A short text can expand to gigabytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Expansion {
    pub(super) nodes: usize,
    pub(super) bytes: usize,
}

impl Expansion {
    /// Returns the sum of two sizes.
    pub(crate) fn and(self, other: Expansion) -> Expansion {
        Expansion {
            nodes: self.nodes + other.nodes,
            bytes: self.bytes + other.bytes,
        }
    }

    /// Returns the difference to a smaller size.
    pub(crate) fn beyond(self, other: Expansion) -> Expansion {
        Expansion {
            nodes: self.nodes - other.nodes,
            bytes: self.bytes - other.bytes,
        }
    }

    /// Returns the exceeded limit, if any, for a document of this length after others that expand to `before`.
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
