//! The kinds, and where a set keeps the objects of each.

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;

use super::object::{Object, Order, Provenance};
use super::set::{Objects, ResourceSet};
use super::{core, flomesh, gloo, istio, karmada};
use crate::kind::{Kind, ObjectRef, kinds};

/// What an object of one kind says, and where a [`ResourceSet`] keeps objects of that kind.
pub trait Spec: Debug + Send + Sync + Sized + 'static {
    /// The kind.
    const KIND: Kind;
    /// Whether objects keep their labels and annotations; otherwise [`Spec::marked`] takes what counts.
    const KEEPS_MARKS: bool = true;
    /// The objects of this kind.
    fn objects(set: &ResourceSet) -> &Objects<Self>;
    /// The objects of this kind, to be changed.
    fn objects_mut(set: &mut ResourceSet) -> &mut Objects<Self>;

    /// With what the object's labels and annotations say of it.
    fn marked(
        self,
        _labels: &BTreeMap<String, String>,
        _annotations: &BTreeMap<String, String>,
    ) -> Self {
        self
    }
}

/// An object of any kind.
pub trait AnyObject: Any + Debug + Send + Sync {
    /// Who it is.
    fn id(&self) -> &ObjectRef;
    /// A hash of what it says.
    fn fingerprint(&self) -> u64;
    /// Where it was read.
    fn provenance(&self) -> &Provenance;
    /// Where in its file it stands.
    fn order(&self) -> Order;
    /// The same object, read elsewhere.
    fn moved(&self, provenance: Provenance, order: Order) -> Arc<dyn AnyObject>;
    /// Puts it into a set, in place of one of the same name.
    fn put(self: Arc<Self>, set: &mut ResourceSet);
    /// Puts it into a set beside one of the same name, which rules.
    fn put_beside(self: Arc<Self>, set: &mut ResourceSet);
}

impl<T: Spec> AnyObject for Object<T> {
    fn id(&self) -> &ObjectRef {
        &self.id
    }

    fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    fn provenance(&self) -> &Provenance {
        &self.provenance
    }

    fn order(&self) -> Order {
        self.order
    }

    fn moved(&self, provenance: Provenance, order: Order) -> Arc<dyn AnyObject> {
        Arc::new(Object {
            id: self.id.clone(),
            labels: self.labels.clone(),
            annotations: self.annotations.clone(),
            created: self.created,
            order,
            provenance,
            fingerprint: self.fingerprint,
            spec: Arc::clone(&self.spec),
        })
    }

    fn put(self: Arc<Self>, set: &mut ResourceSet) {
        let name = self.id.to_name();
        T::objects_mut(set).insert(name, self);
    }

    fn put_beside(self: Arc<Self>, set: &mut ResourceSet) {
        let name = self.id.to_name();
        T::objects_mut(set).insert_beside(name, self);
    }
}

macro_rules! specs {
    ($($group:literal $kind:ident $field:ident $module:ident $($marks:ident)?;)*) => {$(
        impl Spec for $module::$kind {
            const KIND: Kind = Kind::$kind;

            fn objects(set: &ResourceSet) -> &Objects<Self> {
                &set.$field
            }

            fn objects_mut(set: &mut ResourceSet) -> &mut Objects<Self> {
                &mut set.$field
            }

            $(specs! { @$marks $module $kind })?
        }
    )*};
    (@marked $module:ident $kind:ident) => {
        fn marked(
            self,
            labels: &BTreeMap<String, String>,
            annotations: &BTreeMap<String, String>,
        ) -> Self {
            $module::$kind::marked(self, labels, annotations)
        }
    };
    (@reduced $module:ident $kind:ident) => {
        const KEEPS_MARKS: bool = false;
        specs! { @marked $module $kind }
    };
}
kinds!(specs);
