//! Export of every object as a YAML file, which `import`, `strait check` and kubectl read.

use std::fs;
use std::path::{Path, PathBuf};

use config_loader::parse;
use serde_json::Value;

use super::location::Opened;

use crate::files;
use crate::object;
use crate::resources::{self, Resource};
use crate::store::Scan;

/// Metadata fields that a server sets, or that refer to objects of one server by UID.
const OF_SERVER: [&str; 10] = [
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "managedFields",
    "ownerReferences",
    "selfLink",
    "generateName",
];
/// Annotation with the last applied configuration of `kubectl apply`.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Writes all objects below a directory, which must be empty or absent. Returns the number of objects.
///
/// # Errors
/// If the directory is not empty or cannot be written, or if the store cannot be read.
pub async fn export(from: &Opened, directory: &Path) -> Result<usize, String> {
    let shown = directory.display();
    let in_directory = |error: std::io::Error| format!("{shown}: {error}");
    if directory.exists()
        && fs::read_dir(directory)
            .map_err(in_directory)?
            .next()
            .is_some()
    {
        return Err(format!(
            "{shown} is not empty: name a new directory, so that it holds what the server has and nothing else"
        ));
    }
    let page = from.store.scan(Scan::default()).await;
    let page = page.map_err(|error| error.to_string())?;
    files::make_private_dir(directory).map_err(in_directory)?;
    let mut count = 0;
    for entry in &page.entries {
        // Leases belong to processes of that server.
        let Some(resource) = resources::of_key(&entry.key).filter(|found| found.kind != "Lease")
        else {
            continue;
        };
        let version = resource.versions.first().copied().unwrap_or_default();
        let mut found = object::read(entry, resource, version);
        if object::is_deleting(&found) {
            continue;
        }
        strip(&mut found);
        let path = directory.join(path_of(resource, &found));
        let in_file = |error: std::io::Error| format!("{}: {error}", path.display());
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(in_file)?;
        }
        files::write_private(&path, parse::to_yaml(&found).as_bytes()).map_err(in_file)?;
        count += 1;
    }
    Ok(count)
}

/// Returns `GROUP/KIND/NAMESPACE/NAME.yaml`; cluster-scoped objects have no `NAMESPACE`.
fn path_of(resource: &Resource, object: &Value) -> PathBuf {
    let group = match resource.group {
        "" => "core",
        group => group,
    };
    let mut path = PathBuf::from(group).join(resource.kind);
    if resource.api.is_namespaced {
        path.push(object::meta(object, "namespace"));
    }
    path.join(format!("{}.yaml", object::meta(object, "name")))
}

/// Removes the fields that do not belong in a resource file.
pub(super) fn strip(found: &mut Value) {
    object::remove(found, "status");
    if !found["metadata"].is_object() {
        return;
    }
    let metadata = object::metadata_mut(found);
    for field in OF_SERVER {
        metadata.shift_remove(field);
    }
    let Some(Value::Object(annotations)) = metadata.get_mut("annotations") else {
        return;
    };
    annotations.shift_remove(LAST_APPLIED);
    if annotations.is_empty() {
        metadata.shift_remove("annotations");
    }
}
