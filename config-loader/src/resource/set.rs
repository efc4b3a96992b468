//! All objects that are in effect, at one revision.

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;
use std::sync::Arc;

use super::object::Object;
use super::shared_map::{self, SharedMap};
use super::spec::{AnyObject, Spec};
use super::{core, flomesh, gloo, istio, karmada};
use crate::kind::{Kind, Name, ObjectRef, kinds};

/// The objects of one kind, by name. A clone shares them until one of the two changes.
///
/// Where a kind exists in several API groups, objects can stand *beside* one of the same name: that is the one that
/// rules.
#[derive(Clone, Debug)]
pub struct Objects<T> {
    named: Arc<ByName<T>>,
    beside: Arc<BTreeMap<Name, Vec<Arc<Object<T>>>>>,
}

type ByName<T> = SharedMap<Name, Arc<Object<T>>>;

impl<T> Objects<T> {
    /// Puts an object in, in place of one of the same name.
    pub fn insert(&mut self, name: Name, object: Arc<Object<T>>) {
        Arc::make_mut(&mut self.named).insert(name, object);
    }

    /// Puts in an object of another API group, beside the one of the same name.
    pub fn insert_beside(&mut self, name: Name, object: Arc<Object<T>>) {
        let beside = Arc::make_mut(&mut self.beside);
        beside.entry(name).or_default().push(object);
    }

    /// Removes an object, and objects of the same name beside it.
    pub fn remove(&mut self, name: &Name) {
        if self.named.contains_key(name) {
            Arc::make_mut(&mut self.named).remove(name);
        }
        if self.beside.contains_key(name) {
            Arc::make_mut(&mut self.beside).remove(name);
        }
    }

    /// The objects that stand beside the one of this name.
    pub fn beside(&self, name: &Name) -> &[Arc<Object<T>>] {
        self.beside.get(name).map_or(&[], Vec::as_slice)
    }

    /// All objects that stand beside one of the same name.
    pub fn all_beside(&self) -> impl Iterator<Item = (&Name, &Arc<Object<T>>)> {
        let beside = self.beside.iter();
        beside.flat_map(|(name, objects)| objects.iter().map(move |object| (name, object)))
    }

    /// The objects of all API groups of the kind.
    pub fn in_all_groups(&self) -> impl Iterator<Item = &Arc<Object<T>>> {
        let beside = self.all_beside().map(|(_, object)| object);
        self.named.values().chain(beside)
    }

    /// Whether this and `other` are one and the same: nothing of this kind changed between them.
    pub fn same(&self, other: &Objects<T>) -> bool {
        Arc::ptr_eq(&self.named, &other.named) && Arc::ptr_eq(&self.beside, &other.beside)
    }
}

impl<T> Default for Objects<T> {
    fn default() -> Objects<T> {
        Objects {
            named: Arc::default(),
            beside: Arc::default(),
        }
    }
}

impl<T> Deref for Objects<T> {
    type Target = SharedMap<Name, Arc<Object<T>>>;

    fn deref(&self) -> &Self::Target {
        &self.named
    }
}

impl<'a, T> IntoIterator for &'a Objects<T> {
    type Item = (&'a Name, &'a Arc<Object<T>>);
    type IntoIter = shared_map::Iter<'a, Name, Arc<Object<T>>>;

    fn into_iter(self) -> Self::IntoIter {
        self.named.iter()
    }
}

impl<T> FromIterator<(Name, Arc<Object<T>>)> for Objects<T> {
    fn from_iter<I: IntoIterator<Item = (Name, Arc<Object<T>>)>>(objects: I) -> Objects<T> {
        Objects {
            named: Arc::new(objects.into_iter().collect()),
            beside: Arc::default(),
        }
    }
}

macro_rules! resource_set {
    ($($group:literal $kind:ident $field:ident $module:ident $($marks:ident)?;)*) => {
        /// All objects that are in effect, at one revision. Immutable once handed out.
        #[derive(Clone, Debug, Default)]
        pub struct ResourceSet {
            /// Grows with every change.
            pub revision: u64,
            $(
                #[doc = concat!(stringify!($kind), " objects (", $group, ").")]
                pub $field: Objects<$module::$kind>,
            )*
            /// Rejected objects that restrict what is allowed ([`Kind::restricts`]) and of which there never was a good
            /// version.
            pub withheld: Arc<BTreeSet<ObjectRef>>,
        }

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
kinds!(resource_set);

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
