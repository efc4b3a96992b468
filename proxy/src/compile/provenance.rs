//! Where an object, or a part of it, was read, as compiled parts carry it.

use std::sync::Arc;

use config_loader::resource::{Line, Object, Spec};

use traffic::provenance::Provenance;

/// Kind, namespace and name of an object, as provenances have them.
pub(in crate::compile) fn object_name<T: Spec>(object: &Object<T>) -> Arc<str> {
    format!("{}/{}/{}", T::KIND, object.id.namespace, object.id.name).into()
}

/// Where an object, or the part of it on a line of its document, was read.
pub(in crate::compile) fn provenance_of<T: Spec>(object: &Object<T>, line: u32) -> Provenance {
    Provenance {
        object: object_name(object),
        file: Arc::clone(&object.provenance.file),
        line: object.line_of(Line(line)),
    }
}
