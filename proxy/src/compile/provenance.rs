//! Locations of objects and of their parts, as compiled parts carry them.

use std::sync::Arc;

use config_loader::resource::{Line, Object, Spec};

use traffic::provenance::Provenance;

/// Returns the location of an object, or of the part of it on a line of its document.
pub(in crate::compile) fn provenance_of<T: Spec>(object: &Object<T>, line: u32) -> Provenance {
    let object_name = match &object.provenance.written_as {
        Some(written) => written.to_string(),
        None => format!("{}/{}/{}", T::KIND, object.id.namespace, object.id.name),
    };
    Provenance {
        object: object_name.into(),
        file: Arc::clone(&object.provenance.file),
        line: object.line_of(Line(line)),
    }
}
