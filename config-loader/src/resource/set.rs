//! Set of all objects in effect, at one revision.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;
use std::sync::Arc;

use super::object::Object;
use super::shared_map::{self, SharedMap};
use super::{core, envoy_gateway, flomesh, gateway_api, gloo, istio, karmada, networking};
use crate::kind::{Name, ObjectRef, kinds};

/// Objects of one kind, by name. A clone shares them until one of the two changes.
///
/// If a kind exists in several API groups, an object of each can have the same name; the one in `named` takes precedence.
#[derive(Debug)]
pub struct Objects<T> {
    named: Arc<ByName<T>>,
    other_groups: Arc<BTreeMap<Name, Vec<Arc<Object<T>>>>>,
}

type ByName<T> = SharedMap<Name, Arc<Object<T>>>;

impl<T> Objects<T> {
    /// Inserts an object; replaces one of the same name.
    pub fn insert(&mut self, name: Name, object: Arc<Object<T>>) {
        Arc::make_mut(&mut self.named).insert(name, object);
    }

    /// Inserts an object of another API group than the object of the same name that takes precedence.
    pub fn insert_in_other_group(&mut self, name: Name, object: Arc<Object<T>>) {
        let beside = Arc::make_mut(&mut self.other_groups);
        beside.entry(name).or_default().push(object);
    }

    /// Removes the objects of all API groups with this name.
    pub fn remove(&mut self, name: &Name) {
        if self.named.contains_key(name) {
            Arc::make_mut(&mut self.named).remove(name);
        }
        if self.other_groups.contains_key(name) {
            Arc::make_mut(&mut self.other_groups).remove(name);
        }
    }

    /// Returns the objects with this name that do not take precedence.
    pub fn in_other_groups(&self, name: &Name) -> &[Arc<Object<T>>] {
        self.other_groups.get(name).map_or(&[], Vec::as_slice)
    }

    /// Iterates over all objects that do not take precedence, with their names.
    pub fn all_in_other_groups(&self) -> impl Iterator<Item = (&Name, &Arc<Object<T>>)> {
        let beside = self.other_groups.iter();
        beside.flat_map(|(name, objects)| objects.iter().map(move |object| (name, object)))
    }

    /// Iterates over the objects of all API groups of the kind.
    pub fn in_all_groups(&self) -> impl Iterator<Item = &Arc<Object<T>>> {
        let beside = self.all_in_other_groups().map(|(_, object)| object);
        self.named.values().chain(beside)
    }

    /// Whether both share the same storage, so that no object of the kind differs.
    pub fn same(&self, other: &Objects<T>) -> bool {
        Arc::ptr_eq(&self.named, &other.named)
            && Arc::ptr_eq(&self.other_groups, &other.other_groups)
    }
}

impl<T> Clone for Objects<T> {
    fn clone(&self) -> Objects<T> {
        Objects {
            named: Arc::clone(&self.named),
            other_groups: Arc::clone(&self.other_groups),
        }
    }
}

impl<T> Default for Objects<T> {
    fn default() -> Objects<T> {
        Objects {
            named: Arc::default(),
            other_groups: Arc::default(),
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
            other_groups: Arc::default(),
        }
    }
}

macro_rules! resource_set {
    ($($group:literal $kind:ident $field:ident $module:ident $($marks:ident)?;)*) => {
        /// Set of all objects in effect, at one revision. Immutable once published.
        #[derive(Clone, Debug, Default)]
        pub struct ResourceSet {
            /// Revision number, which increases with every change.
            pub revision: u64,
            $(
                #[doc = concat!(stringify!($kind), " objects (", $group, ").")]
                pub $field: Objects<$module::$kind>,
            )*
            /// Rejected objects of kinds that restrict traffic ([`Kind::restricts`](crate::Kind::restricts)), without a
            /// last good version.
            pub withheld: Arc<BTreeSet<ObjectRef>>,
        }
    };
}
kinds!(resource_set);
