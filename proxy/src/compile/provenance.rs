//! Locations of objects and of their parts, as compiled parts carry them.

use std::sync::Arc;

use config_loader::resource::{Line, Object, Spec};

use traffic::provenance::Provenance;

/// Returns the location of an object, or of the part of it on a line of its document.
pub(in crate::compile) fn provenance_of<T: Spec>(object: &Object<T>, line: u32) -> Provenance {
    Provenance {
        object: format!("{}/{}/{}", T::KIND, object.id.namespace, object.id.name).into(),
        file: Arc::clone(&object.provenance.file),
        line: object.line_of(Line(line)),
    }
}
