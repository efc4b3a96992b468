//! Protobuf schema of Istio's kinds and of Kubernetes, compiled from the files in `proto/`. Uses nothing else of this
//! module.

use std::sync::LazyLock;

use prost_reflect::{DescriptorPool, MessageDescriptor};

use crate::kind::Kind;
use crate::kinds::{group, rows};

/// Message of kinds without a message of their own.
pub(super) const STRUCT: &str = "google.protobuf.Struct";

/// Compiled schema of `proto/`. A test says how to write it again after a change.
const COMPILED: &[u8] = include_bytes!("../../proto/schema.binpb");

static POOL: LazyLock<DescriptorPool> = LazyLock::new(|| {
    DescriptorPool::decode(COMPILED).expect("a test compiles the committed schema")
});

const NETWORKING: &str = "istio.networking.v1alpha3";
const SECURITY: &str = "istio.security.v1beta1";
const TELEMETRY: &str = "istio.telemetry.v1alpha1";

/// Packages of other API versions, whose messages are the same.
const SAME_PACKAGES: [(&str, &str); 4] = [
    ("istio.networking.v1", NETWORKING),
    ("istio.networking.v1beta1", NETWORKING),
    ("istio.security.v1", SECURITY),
    ("istio.telemetry.v1", TELEMETRY),
];

/// Returns the message name of a kind, as Istio serves it.
pub(super) fn type_name_of(kind: Kind) -> Option<String> {
    let row = rows().find(|row| row.kind == kind)?;
    let group = row.api_versions.first().map(|version| group(version));
    let package = match group? {
        "networking.istio.io" => NETWORKING,
        "security.istio.io" => SECURITY,
        "telemetry.istio.io" => TELEMETRY,
        _ => return None,
    };
    Some(format!("{package}.{kind}"))
}

/// Returns the message of a kind by its full name; `None` for other messages.
pub(super) fn message_of(name: &str) -> Option<MessageDescriptor> {
    let (package, message) = name.rsplit_once('.')?;
    let same = SAME_PACKAGES.iter().find(|(other, _)| *other == package);
    let package = same.map_or(package, |(_, ours)| ours);
    let name = type_name_of(Kind::from_name(message)?)?;
    (name.strip_suffix(message)? == format!("{package}."))
        .then(|| POOL.get_message_by_name(&name))
        .flatten()
}

/// Returns every message and enum of the schema.
pub(super) fn pool() -> &'static DescriptorPool {
    &POOL
}
