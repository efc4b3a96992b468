//! Access to a resource set by kind.

use std::any::Any;
use std::sync::Arc;

use super::set::{Objects, ResourceSet};
use super::spec::{AnyObject, Spec};
use crate::kind::{Kind, Name, ObjectRef, kinds};

macro_rules! by_kind {
    ($($group:literal $kind:ident $field:ident $module:ident $($marks:ident)?;)*) => {
        impl ResourceSet {
            /// Returns the objects of a kind.
            fn of_kind(&self, kind: Kind) -> &dyn KindObjects {
                match kind {
                    $(Kind::$kind => &self.$field,)*
                }
            }

            fn of_kind_mut(&mut self, kind: Kind) -> &mut dyn KindObjects {
                match kind {
                    $(Kind::$kind => &mut self.$field,)*
                }
            }
        }
    };
}
kinds!(by_kind);

/// Objects of any one kind.
trait KindObjects: Any {
    fn count(&self) -> usize;
    fn remove_named(&mut self, name: &Name);
    /// Returns the objects with a name, the one in effect first.
    fn named(&self, name: &Name) -> Vec<Arc<dyn AnyObject>>;
    fn is_same(&self, other: &dyn Any) -> bool;
    fn each(&self, visit: &mut dyn FnMut(&dyn AnyObject));
}

impl<T: Spec> KindObjects for Objects<T> {
    fn count(&self) -> usize {
        self.len()
    }

    fn remove_named(&mut self, name: &Name) {
        self.remove(name);
    }

    fn named(&self, name: &Name) -> Vec<Arc<dyn AnyObject>> {
        let first = self.get(name).into_iter();
        let all = first.chain(self.in_other_groups(name));
        all.map(|object| Arc::clone(object) as Arc<dyn AnyObject>)
            .collect()
    }

    fn is_same(&self, other: &dyn Any) -> bool {
        other
            .downcast_ref::<Self>()
            .is_some_and(|other| self.same(other))
    }

    fn each(&self, visit: &mut dyn FnMut(&dyn AnyObject)) {
        self.values().for_each(|object| visit(&**object));
    }
}

impl ResourceSet {
    /// Whether an object of that kind and name is rejected in every API group, and has no last good version.
    pub fn is_withheld(&self, kind: Kind, name: &Name) -> bool {
        let mut withheld = self.withheld.iter();
        withheld.any(|id| id.kind == kind && id.to_name() == *name)
    }

    /// Removes an object.
    pub fn remove(&mut self, object: &ObjectRef) {
        self.of_kind_mut(object.kind)
            .remove_named(&object.to_name());
    }

    /// Returns the objects of the namespaces that are kept, and those of kinds without namespaces.
    pub fn of_namespaces(&self, is_kept: impl Fn(&str) -> bool) -> ResourceSet {
        let mut kept = self.clone();
        for kind in Kind::ALL.into_iter().filter(|kind| kind.is_namespaced()) {
            let mut others = Vec::new();
            self.each(kind, |object| {
                let id = object.id();
                if !is_kept(&id.namespace) {
                    others.push(id.to_name());
                }
            });
            for name in others {
                kept.of_kind_mut(kind).remove_named(&name);
            }
        }
        kept
    }

    /// Returns the objects with a name in all API groups of a kind, the one in effect first.
    pub(crate) fn named(&self, kind: Kind, name: &Name) -> Vec<Arc<dyn AnyObject>> {
        self.of_kind(kind).named(name)
    }

    /// Visits the objects of a kind, sorted by name. Of objects with the same name only the one in effect is visited.
    pub fn each(&self, kind: Kind, mut visit: impl FnMut(&dyn AnyObject)) {
        self.of_kind(kind).each(&mut visit);
    }

    /// Number of objects of a kind.
    pub fn count(&self, kind: Kind) -> usize {
        self.of_kind(kind).count()
    }

    /// Whether both sets have the same versions of all objects of a kind.
    pub fn is_same(&self, other: &ResourceSet, kind: Kind) -> bool {
        let other: &dyn Any = other.of_kind(kind);
        self.of_kind(kind).is_same(other)
    }

    /// Number of objects.
    pub fn len(&self) -> usize {
        Kind::ALL.into_iter().map(|kind| self.count(kind)).sum()
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
