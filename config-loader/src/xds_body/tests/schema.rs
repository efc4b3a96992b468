//! Tests that the committed schema matches the files in `proto/`.

use std::path::Path;

use prost_reflect::prost::Message;
use prost_reflect::{FieldDescriptor, Kind, MessageDescriptor};

use crate::kinds::rows;
use crate::xds_body::schema::{message_of, pool, type_name_of};

const FILES: [&str; 9] = [
    "istio_destination_rule.proto",
    "istio_gateway.proto",
    "istio_security.proto",
    "istio_service_entry.proto",
    "istio_sidecar.proto",
    "istio_telemetry.proto",
    "istio_type.proto",
    "istio_virtual_service.proto",
    "kubernetes.proto",
];

#[test]
fn committed_schema_is_compiled_from_the_proto_files() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("proto");
    let mut compiler = protox::Compiler::new([&folder]).unwrap();
    compiler.include_imports(true).include_source_info(false);
    compiler.open_files(FILES).unwrap();
    let compiled = compiler.file_descriptor_set().encode_to_vec();
    let committed = folder.join("schema.binpb");
    if std::env::var_os("STRAIT_WRITE_SCHEMA").is_some() {
        std::fs::write(&committed, &compiled).unwrap();
    }
    assert!(
        std::fs::read(&committed).is_ok_and(|bytes| bytes == compiled),
        "proto/schema.binpb is not what the .proto files compile to: \
         run this test with STRAIT_WRITE_SCHEMA=1, and commit the file"
    );
}

/// Returns the field of a message at a path of a raw type: `http[].match[].uri.exact`, where `*` is any key.
fn lookup(message: &MessageDescriptor, path: &str) -> Option<FieldDescriptor> {
    let mut message = message.clone();
    let mut found: Option<FieldDescriptor> = None;
    for part in path.split('.') {
        let name = part.trim_end_matches("[]");
        let field = if name == "*" {
            message.get_field_by_name("value")?
        } else {
            message.get_field_by_json_name(name)?
        };
        if let Kind::Message(inner) = field.kind() {
            message = inner;
        }
        found = Some(field);
    }
    found
}

#[test]
fn schema_has_every_field_that_is_read() {
    let mut missing = Vec::new();
    for row in rows() {
        let Some(message) = type_name_of(row.kind).and_then(|name| message_of(&name)) else {
            continue;
        };
        for info in (row.fields)() {
            let holds = lookup(&message, &info.path).map(|field| match field.kind() {
                _ if info.path.ends_with("[]") && info.holds == "list" => "list",
                Kind::Bool => "boolean",
                Kind::Double | Kind::Int32 | Kind::Uint32 | Kind::Uint64 => "number",
                Kind::String | Kind::Bytes | Kind::Enum(_) => "text",
                Kind::Message(inner) => match inner.full_name() {
                    "google.protobuf.Duration" => "text",
                    "google.protobuf.BoolValue" => "boolean",
                    "google.protobuf.DoubleValue" | "google.protobuf.UInt32Value" => "number",
                    _ => "mapping",
                },
                _ => "unknown",
            });
            let is_scalar = ["text", "boolean", "number"].contains(&info.holds);
            if holds.is_none() || (is_scalar && holds != Some(info.holds)) {
                missing.push(format!(
                    "{} {}: {} {holds:?}",
                    row.kind, info.path, info.holds
                ));
            }
        }
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

#[test]
fn schema_has_only_types_that_are_converted() {
    for message in pool().all_messages() {
        if message.package_name() == "google.protobuf" {
            continue;
        }
        for field in message.fields() {
            let is_converted = match field.kind() {
                Kind::Bool
                | Kind::Bytes
                | Kind::Double
                | Kind::Enum(_)
                | Kind::Int32
                | Kind::Int64
                | Kind::String => true,
                Kind::Uint32 | Kind::Uint64 => true,
                Kind::Message(inner) if inner.package_name() == "google.protobuf" => {
                    ["BoolValue", "DoubleValue", "Duration", "UInt32Value"].contains(&inner.name())
                }
                Kind::Message(_) => true,
                _ => false,
            };
            assert!(is_converted, "{}", field.full_name());
        }
    }
}
