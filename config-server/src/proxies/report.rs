//! Proxy reports as objects of `strait.io/v1alpha1`, kind Proxy.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use config_loader::proxy_state::{REJECTED_MAX, REPORT_GROUP, REPORT_KIND, REPORT_VERSION};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::view::{ProxyView, Report};
use crate::clock;
use crate::object;

/// Maximum size of a report, in bytes.
pub const REPORT_BYTES_MAX: usize = 256 << 10;

/// Decodes the report in an object that has a name and a namespace.
///
/// # Errors
/// The field with the error, and a message.
pub fn read(object: &Value) -> Result<Report, (&'static str, String)> {
    let mut report = Report {
        namespace: object::meta(object, "namespace").to_owned(),
        name: object::meta(object, "name").to_owned(),
        spec: part(object, "spec")?,
        status: part(object, "status")?,
    };
    report.status.rejected.truncate(REJECTED_MAX);
    for rejected in &mut report.status.rejected {
        rejected.limit();
    }
    Ok(report)
}

fn part<T: DeserializeOwned + Default>(
    object: &Value,
    field: &'static str,
) -> Result<T, (&'static str, String)> {
    match object.get(field) {
        None | Some(Value::Null) => Ok(T::default()),
        Some(value) => serde_json::from_value(value.clone())
            .map_err(|error| (field, format!("Invalid value: {error}"))),
    }
}

/// Returns the object of a proxy. `revision` is that of the table of proxies.
pub fn to_json(view: &ProxyView, revision: u64) -> Value {
    let report = &view.report;
    let created = seconds(view.created);
    let mut status = json!(report.status);
    if let Value::Object(status) = &mut status {
        status.insert("lastSeen".to_owned(), rfc3339(view.seen).into());
        status.insert("upToDate".to_owned(), view.is_current().into());
        if let Some(newest) = view.newest {
            status.insert("newestRevision".to_owned(), newest.to_string().into());
        }
        if let Some(took) = view.last_change {
            status.insert("lastChangeSeconds".to_owned(), took.as_secs_f64().into());
            status.insert("lastChange".to_owned(), in_words(took).into());
        }
    }
    json!({
        "apiVersion": format!("{REPORT_GROUP}/{REPORT_VERSION}"),
        "kind": REPORT_KIND,
        "metadata": {
            "name": report.name,
            "namespace": report.namespace,
            "uid": uid(&report.namespace, &report.name, created),
            "creationTimestamp": rfc3339(view.created),
            "resourceVersion": revision.to_string(),
        },
        "spec": report.spec,
        "status": status,
    })
}

/// Formats a duration for people.
fn in_words(took: Duration) -> String {
    match took.as_millis() {
        0..1_000 => format!("{}ms", took.as_millis()),
        1_000..60_000 => format!("{:.1}s", took.as_secs_f64()),
        _ => format!("{}s", took.as_secs()),
    }
}

/// Returns a UID that is stable as long as the proxy is in the table.
fn uid(namespace: &str, name: &str, created: u64) -> String {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    (namespace, name).hash(&mut hasher);
    let (hash, created) = (hasher.finish(), created & 0xffff_ffff_ffff);
    let (high, low) = (hash >> 32, hash & 0xffff);
    format!("{high:08x}-{low:04x}-4000-8000-{created:012x}")
}

fn seconds(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH);
    since.unwrap_or_default().as_secs()
}

fn rfc3339(time: SystemTime) -> String {
    clock::rfc3339(seconds(time))
}
