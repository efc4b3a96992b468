//! Objects that stay in effect for some time after they are gone from their files.

use std::sync::Arc;

use super::{Delta, Store, in_effect, put};
use crate::resource::{AnyObject, ResourceSet};

impl Store {
    /// Puts objects back into effect.
    pub(crate) fn put_back(&mut self, objects: &[Arc<dyn AnyObject>]) {
        let mut set = ResourceSet::clone(&self.set);
        for object in objects {
            put(object.id(), Some(object), &mut set);
        }
        self.set = Arc::new(set);
    }

    /// Deletes objects that were put back. What is in a file again, or has another version, stays.
    pub(crate) fn delete(&mut self, objects: &[Arc<dyn AnyObject>]) -> Delta {
        let mut set = ResourceSet::clone(&self.set);
        let mut delta = Delta::default();
        for object in objects {
            let id = object.id();
            let now = in_effect(&set, id).filter(|now| Arc::ptr_eq(now, object));
            if now.is_some() && self.positions(id, &set).is_empty() {
                delta.note(id, Some(object), None);
                put(id, None, &mut set);
            }
        }
        if !delta.is_empty() {
            set.revision += 1;
            self.set = Arc::new(set);
        }
        delta
    }
}
