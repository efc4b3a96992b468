//! A resource set, asked by kind.

use std::any::Any;
use std::sync::Arc;

use super::set::{Objects, ResourceSet};
use super::spec::{AnyObject, Spec};
use crate::kind::{Kind, Name, ObjectRef, kinds};

macro_rules! by_kind {
    ($($group:literal $kind:ident $field:ident $module:ident $($marks:ident)?;)*) => {
        impl ResourceSet {
            /// The objects of a kind.
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

/// The objects of one kind, whichever it is.
trait KindObjects: Any {
    fn count(&self) -> usize;
    fn remove_named(&mut self, name: &Name);
    /// The objects of a name, the one that rules first.
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
        let all = first.chain(self.beside(name));
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
    /// Whether an object of that kind and name is refused in every API group, and never was good.
    pub fn is_withheld(&self, kind: Kind, name: &Name) -> bool {
        let mut withheld = self.withheld.iter();
        withheld.any(|id| id.kind == kind && id.to_name() == *name)
    }

    /// Takes an object out.
    pub fn remove(&mut self, object: &ObjectRef) {
        self.of_kind_mut(object.kind)
            .remove_named(&object.to_name());
    }

    /// The objects of a name in all API groups of a kind, the one that rules first.
    pub(crate) fn named(&self, kind: Kind, name: &Name) -> Vec<Arc<dyn AnyObject>> {
        self.of_kind(kind).named(name)
    }

    /// Visits the objects of a kind, without those that stand beside others, in the order of their names.
    pub fn each(&self, kind: Kind, mut visit: impl FnMut(&dyn AnyObject)) {
        self.of_kind(kind).each(&mut visit);
    }

    /// How many objects of a kind there are.
    pub fn count(&self, kind: Kind) -> usize {
        self.of_kind(kind).count()
    }

    /// Whether this and `other` have the same objects of a kind, in the same versions.
    pub fn is_same(&self, other: &ResourceSet, kind: Kind) -> bool {
        let other: &dyn Any = other.of_kind(kind);
        self.of_kind(kind).is_same(other)
    }

    /// How many objects there are.
    pub fn len(&self) -> usize {
        Kind::ALL.into_iter().map(|kind| self.count(kind)).sum()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
