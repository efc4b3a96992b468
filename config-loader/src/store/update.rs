//! Difference between two revisions.

use std::sync::Arc;

use crate::diagnostic::Diagnostic;
use crate::kind::ObjectRef;
use crate::resource::AnyObject;

/// An object whose text is refused, missing behind an error, or in a file that cannot be read.
#[derive(Clone, Debug)]
pub struct Quarantined {
    /// The object.
    pub object: ObjectRef,
    /// Whether a last good version of it is in effect; otherwise there never was one.
    pub in_force: bool,
    /// Why.
    pub diagnostics: Vec<Diagnostic>,
}

/// How two revisions differ. Each list is sorted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Delta {
    /// Objects that were not there.
    pub added: Vec<ObjectRef>,
    /// Objects that say something else.
    pub changed: Vec<ObjectRef>,
    /// Objects that say the same from another file or line.
    pub moved: Vec<ObjectRef>,
    /// Objects that are gone.
    pub removed: Vec<ObjectRef>,
    /// Objects that came to be withheld ([`ResourceSet::withheld`]), or are no longer.
    pub withheld: Vec<ObjectRef>,
}

impl Delta {
    /// Whether nothing changed.
    pub fn is_empty(&self) -> bool {
        self.added.is_empty()
            && self.changed.is_empty()
            && self.moved.is_empty()
            && self.removed.is_empty()
            && self.withheld.is_empty()
    }

    /// Notes what changed after it, too.
    pub(crate) fn extend(&mut self, later: Delta) {
        self.added.extend(later.added);
        self.changed.extend(later.changed);
        self.moved.extend(later.moved);
        self.removed.extend(later.removed);
        self.withheld.extend(later.withheld);
    }

    /// Notes what became of an object.
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
