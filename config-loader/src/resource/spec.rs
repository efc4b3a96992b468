//! Trait of all kinds, and the field of a set that stores each.

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;

use super::object::{Object, Order, Provenance};
use super::set::{Objects, ResourceSet};
use super::{core, envoy_gateway, flomesh, gateway_api, gloo, istio, karmada, networking};
use crate::kind::{Kind, ObjectRef, kinds};

/// Content of one kind of object, and the field of a [`ResourceSet`] that stores its objects.
pub trait Spec: Debug + Send + Sync + Sized + 'static {
    /// Kind of the objects.
    const KIND: Kind;
    /// Whether objects keep their labels and annotations; otherwise [`Spec::marked`] extracts the relevant ones.
    const KEEPS_MARKS: bool = true;
    /// Returns the objects of this kind.
    fn objects(set: &ResourceSet) -> &Objects<Self>;
    /// Returns a mutable reference to the objects of this kind.
    fn objects_mut(set: &mut ResourceSet) -> &mut Objects<Self>;

    /// Returns the content that applies while the object is rejected and has no last good version. `self` is what could
    /// be read of it. `None` if nothing applies.
    fn stand_in(&self) -> Option<Self> {
        None
    }

    /// Whether the content is a [stand-in](Spec::stand_in).
    fn is_stand_in(&self) -> bool {
        false
    }

    /// Returns this content with access denied: it applies if a rejected version restricts access, and this last good
    /// one does not. `None` if it restricts access itself.
    fn restricted(&self) -> Option<Self> {
        None
    }

    /// Sets the fields that come from labels and annotations.
    fn marked(
        self,
        _labels: &BTreeMap<String, String>,
        _annotations: &BTreeMap<String, String>,
    ) -> Self {
        self
    }
}

/// Object of any kind.
pub trait AnyObject: Any + Debug + Send + Sync {
    /// Returns the reference of the object.
    fn id(&self) -> &ObjectRef;
    /// Returns the hash of the object's content.
    fn fingerprint(&self) -> u64;
    /// Returns the origin of the object.
    fn provenance(&self) -> &Provenance;
    /// Whether the object stands in for a rejected one that has no last good version.
    fn is_stand_in(&self) -> bool;
    /// Returns the object with access denied, which its rejected version restricts. `None` if it restricts access itself.
    fn restricted(&self) -> Option<Arc<dyn AnyObject>>;
    /// Returns the object that stands in for this one, with the reference `id`, if its kind has stand-ins.
    fn stand_in(&self, id: ObjectRef) -> Option<Arc<dyn AnyObject>>;
    /// Returns the position of the object in its file.
    fn order(&self) -> Order;
    /// Returns the same object with another origin and position.
    fn moved(&self, provenance: Provenance, order: Order) -> Arc<dyn AnyObject>;
    /// Inserts the object into a set; replaces one of the same name.
    fn put(self: Arc<Self>, set: &mut ResourceSet);
    /// Inserts the object into a set that has one of another API group with the same name, which takes precedence.
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

    fn is_stand_in(&self) -> bool {
        self.spec.is_stand_in()
    }

    fn restricted(&self) -> Option<Arc<dyn AnyObject>> {
        let mut restricted = self.with_spec(Arc::new(self.spec.restricted()?));
        restricted.fingerprint = !self.fingerprint;
        Some(Arc::new(restricted))
    }

    fn stand_in(&self, id: ObjectRef) -> Option<Arc<dyn AnyObject>> {
        let spec = Arc::new(self.spec.stand_in()?);
        Some(Arc::new(Object {
            id,
            ..self.with_spec(spec)
        }))
    }

    fn order(&self) -> Order {
        self.order
    }

    fn moved(&self, provenance: Provenance, order: Order) -> Arc<dyn AnyObject> {
        Arc::new(Object {
            order,
            provenance,
            ..self.with_spec(Arc::clone(&self.spec))
        })
    }

    fn put(self: Arc<Self>, set: &mut ResourceSet) {
        let name = self.id.to_name();
        T::objects_mut(set).insert(name, self);
    }

    fn put_beside(self: Arc<Self>, set: &mut ResourceSet) {
        let name = self.id.to_name();
        T::objects_mut(set).insert_in_other_group(name, self);
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
    (@policy $module:ident $kind:ident) => {
        specs! { @standing $module $kind }
        specs! { @marked $module $kind }
    };
    (@destination $module:ident $kind:ident) => {
        specs! { @standing $module $kind }

        fn restricted(&self) -> Option<Self> {
            $module::$kind::restricted(self)
        }
    };
    (@standing $module:ident $kind:ident) => {
        fn stand_in(&self) -> Option<Self> {
            $module::$kind::stand_in(self)
        }

        fn is_stand_in(&self) -> bool {
            $module::$kind::is_stand_in(self)
        }
    };
    (@reduced $module:ident $kind:ident) => {
        const KEEPS_MARKS: bool = false;
        specs! { @marked $module $kind }
    };
}
kinds!(specs);
