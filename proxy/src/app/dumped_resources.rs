//! Lists of resources in `/config_dump`.

use config_loader::{Kind, ResourceSet};
use serde_json::{Map, Value};

use crate::admin::DumpedResources;
use crate::explain::secret::REDACTED;

/// Makes the lists of a set of resources.
pub(super) fn of(set: &ResourceSet) -> DumpedResources {
    DumpedResources {
        objects: objects(set),
        secrets: secrets(set),
    }
}

/// Lists every object with its location, by kind and name. The state of a Kubernetes cluster, such as pods, is left
/// out.
fn objects(set: &ResourceSet) -> Vec<String> {
    let mut located = Vec::with_capacity(set.len());
    for kind in Kind::ALL.into_iter().filter(|kind| !kind.is_state()) {
        set.each(kind, |object| {
            let written = object.provenance();
            located.push(format!(
                "{} ({}:{})",
                object.id(),
                written.file,
                written.line
            ));
        });
    }
    located
}

/// Lists the names and keys of Secrets; the values are left out.
fn secrets(set: &ResourceSet) -> Map<String, Value> {
    let secrets = set.secrets.values().map(|secret| {
        let keys = secret.spec.data.keys();
        let keys: Map<String, Value> = keys.map(|k| (k.clone(), REDACTED.into())).collect();
        (secret.id.to_string(), Value::from(keys))
    });
    secrets.collect()
}
