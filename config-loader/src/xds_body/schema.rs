//! The messages of Istio's kinds and of those of Kubernetes, compiled from the files in `proto/`. Uses nothing else of this module.

use std::sync::LazyLock;

use prost_reflect::{DescriptorPool, MessageDescriptor};

use crate::kind::Kind;
use crate::kinds::{group, rows};

/// The message of kinds that have none of their own.
pub(super) const STRUCT: &str = "google.protobuf.Struct";

/// What the files in `proto/` compile to. A test says how to write it again after a change.
const COMPILED: &[u8] = include_bytes!("../../proto/schema.binpb");

static POOL: LazyLock<DescriptorPool> = LazyLock::new(|| {
    DescriptorPool::decode(COMPILED).expect("a test compiles the committed schema")
});

const NETWORKING: &str = "istio.networking.v1alpha3";
const SECURITY: &str = "istio.security.v1beta1";

/// Other versions of the packages: their messages are the same.
const SAME_PACKAGES: [(&str, &str); 3] = [
    ("istio.networking.v1", NETWORKING),
    ("istio.networking.v1beta1", NETWORKING),
    ("istio.security.v1", SECURITY),
];

/// The message of a kind: the one that Istio serves it as.
pub(super) fn type_name_of(kind: Kind) -> Option<String> {
    let row = rows().find(|row| row.kind == kind)?;
    let group = row.api_versions.first().map(|version| group(version));
    let package = match group? {
        "networking.istio.io" => NETWORKING,
        "security.istio.io" => SECURITY,
        _ => return None,
    };
    Some(format!("{package}.{kind}"))
}

/// The message of a kind, by its full name; none for other messages.
pub(super) fn message_of(name: &str) -> Option<MessageDescriptor> {
    let (package, message) = name.rsplit_once('.')?;
    let same = SAME_PACKAGES.iter().find(|(other, _)| *other == package);
    let package = same.map_or(package, |(_, ours)| ours);
    let name = type_name_of(Kind::from_name(message)?)?;
    (name.strip_suffix(message)? == format!("{package}."))
        .then(|| POOL.get_message_by_name(&name))
        .flatten()
}

/// Every message and enum of the schema.
pub(super) fn pool() -> &'static DescriptorPool {
    &POOL
}
