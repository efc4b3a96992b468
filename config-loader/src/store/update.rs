//! Difference between two revisions of the set.

use std::sync::Arc;

use crate::diagnostic::Diagnostic;
use crate::kind::ObjectRef;
use crate::resource::AnyObject;

/// Object that is rejected, missing because its file has errors, or in an unreadable file.
#[derive(Clone, Debug)]
pub struct Quarantined {
    /// Reference of the object.
    pub object: ObjectRef,
    /// Whether a last good version is in effect.
    pub in_force: bool,
    /// Whether it denies what it selects, since it was never valid.
    pub denies: bool,
    /// Reasons.
    pub diagnostics: Vec<Diagnostic>,
}

/// Difference between two revisions. Each list is sorted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Delta {
    /// Objects that were added.
    pub added: Vec<ObjectRef>,
    /// Objects with changed content.
    pub changed: Vec<ObjectRef>,
    /// Objects with the same content at another file or line.
    pub moved: Vec<ObjectRef>,
    /// Objects that were removed.
    pub removed: Vec<ObjectRef>,
    /// Objects that became withheld (`ResourceSet::withheld`) or are no longer withheld.
    pub withheld: Vec<ObjectRef>,
}

impl Delta {
    /// Whether the revisions are equal.
    pub fn is_empty(&self) -> bool {
        self.added.is_empty()
            && self.changed.is_empty()
            && self.moved.is_empty()
            && self.removed.is_empty()
            && self.withheld.is_empty()
    }

    /// Adds the changes of a later difference.
    pub(crate) fn extend(&mut self, later: Delta) {
        self.added.extend(later.added);
        self.changed.extend(later.changed);
        self.moved.extend(later.moved);
        self.removed.extend(later.removed);
        self.withheld.extend(later.withheld);
    }

    /// Adds the change of one object.
    pub(super) fn note(
        &mut self,
        id: &ObjectRef,
        before: Option<&Arc<dyn AnyObject>>,
        after: Option<&Arc<dyn AnyObject>>,
    ) {
        let list = match (before, after) {
            (None, None) => return,
            (Some(before), Some(after)) if Arc::ptr_eq(before, after) => return,
            (None, Some(_)) => &mut self.added,
            (Some(_), None) => &mut self.removed,
            (Some(before), Some(after)) if before.fingerprint() == after.fingerprint() => {
                &mut self.moved
            }
            (Some(_), Some(_)) => &mut self.changed,
        };
        list.push(id.clone());
    }
}
