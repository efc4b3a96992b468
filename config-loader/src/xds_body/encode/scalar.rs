//! Conversion of single JSON values, with the leniency of Istio's YAML reader.

use base64::Engine;
use base64::alphabet::{STANDARD, URL_SAFE};
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use prost_reflect::prost::Message;
use prost_reflect::prost::encoding::{WireType, encode_varint};
use prost_reflect::prost_types::Duration;
use prost_reflect::{EnumDescriptor, Kind};
use serde_json::{Number, Value};

use crate::validate::scalar::parse_duration;

const NANOS_PER_SECOND: i64 = 1_000_000_000;

const ANY_PADDING: GeneralPurposeConfig =
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);

/// Encodes a value that is not a message. The error message describes the problem.
pub(super) fn encode(kind: &Kind, value: &Value) -> Result<(WireType, Vec<u8>), String> {
    Ok(match kind {
        Kind::Bool => (WireType::Varint, varint(u64::from(boolean(value)?))),
        Kind::Int32 => (
            WireType::Varint,
            varint(whole(value, i32::MIN.into(), i32::MAX.into())? as u64),
        ),
        Kind::Uint32 => (
            WireType::Varint,
            varint(whole(value, 0, u32::MAX.into())? as u64),
        ),
        Kind::Uint64 => (
            WireType::Varint,
            varint(whole(value, 0, u64::MAX.into())? as u64),
        ),
        Kind::Double => (
            WireType::SixtyFourBit,
            double(value)?.to_le_bytes().to_vec(),
        ),
        Kind::String => (WireType::LengthDelimited, text(value)?.as_bytes().to_vec()),
        Kind::Bytes => (WireType::LengthDelimited, base64(text(value)?)?),
        Kind::Enum(descriptor) => (
            WireType::Varint,
            varint(enum_number(descriptor, value)? as u64),
        ),
        other => return Err(format!("values of type {other:?} cannot be written")),
    })
}

/// Encodes a `google.protobuf.Duration` from Go's syntax.
pub(super) fn duration(value: &Value) -> Result<Vec<u8>, String> {
    let expected = |written: &str| {
        format!("{written} is no duration: expected numbers with units, such as 1h, 1m30s or 100ms")
    };
    let Some(written) = value.as_str() else {
        return Err(expected(&value.to_string()));
    };
    let nanos = parse_duration(written).map_err(|_| expected(&format!("`{written}`")))?;
    let duration = Duration {
        seconds: nanos / NANOS_PER_SECOND,
        nanos: i32::try_from(nanos % NANOS_PER_SECOND).expect("a remainder is less than a second"),
    };
    Ok(duration.encode_to_vec())
}

/// Returns the double that equals the number, if there is one.
pub(super) fn exact_double(number: &Number) -> Result<f64, String> {
    let inexact = || format!("{number} has more digits than a number in a protobuf Struct holds");
    let double = number.as_f64().ok_or_else(inexact)?;
    let is_exact = match (number.as_i64(), number.as_u64()) {
        (Some(whole), _) => double as i128 == i128::from(whole),
        (None, Some(whole)) => double as i128 == i128::from(whole),
        (None, None) => true,
    };
    is_exact.then_some(double).ok_or_else(inexact)
}

fn varint(value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode_varint(value, &mut bytes);
    bytes
}

fn boolean(value: &Value) -> Result<bool, String> {
    match value.as_str() {
        // the key of a map
        Some("true") => Ok(true),
        Some("false") => Ok(false),
        _ => value
            .as_bool()
            .ok_or_else(|| format!("{value} is no boolean: expected true or false")),
    }
}

fn text(value: &Value) -> Result<&str, String> {
    value
        .as_str()
        .ok_or_else(|| format!("{value} is no text: put it in quotes"))
}

/// Returns an integer, which may be written as `80.0` or `"80"`.
fn whole(value: &Value, min: i128, max: i128) -> Result<i128, String> {
    let number = match value {
        Value::String(written) => written.parse().ok(),
        Value::Number(number) => number.as_i128().or_else(|| {
            let double = number.as_f64()?;
            (double.fract() == 0.0).then_some(double as i128)
        }),
        _ => None,
    };
    number
        .filter(|number| (min..=max).contains(number))
        .ok_or_else(|| format!("{value} is no whole number from {min} to {max}"))
}

fn double(value: &Value) -> Result<f64, String> {
    let number = match value {
        Value::String(written) => written.parse().ok(),
        value => value.as_f64(),
    };
    number
        .filter(|number: &f64| number.is_finite())
        .ok_or_else(|| format!("{value} is no number"))
}

fn base64(written: &str) -> Result<Vec<u8>, String> {
    let alphabet = if written.contains(['-', '_']) {
        &URL_SAFE
    } else {
        &STANDARD
    };
    GeneralPurpose::new(alphabet, ANY_PADDING)
        .decode(written)
        .map_err(|error| format!("not base64: {error}"))
}

/// Returns the number of an enum value, given by name or number.
fn enum_number(descriptor: &EnumDescriptor, value: &Value) -> Result<i32, String> {
    let number = match value {
        Value::String(name) => descriptor
            .get_value_by_name(name)
            .map(|value| value.number()),
        value => value.as_i64().and_then(|number| i32::try_from(number).ok()),
    };
    number.ok_or_else(|| {
        let names: Vec<_> = descriptor
            .values()
            .map(|value| value.name().to_owned())
            .collect();
        format!("{value} is none of {}", names.join(", "))
    })
}
