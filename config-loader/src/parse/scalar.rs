//! Resolution of plain scalars as in Kubernetes: YAML 1.1 booleans, Go's numbers.

use super::node::Value;

/// Resolves an unquoted scalar.
pub(super) fn resolve(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" | "y" | "Y" | "yes" | "Yes" | "YES" | "on" | "On" | "ON" => {
            Value::Bool(true)
        }
        "false" | "False" | "FALSE" | "n" | "N" | "no" | "No" | "NO" | "off" | "Off" | "OFF" => {
            Value::Bool(false)
        }
        _ => number(text).unwrap_or_else(|| Value::Text(text.into())),
    }
}

/// Returns `text` as a number, if it is one.
pub(super) fn number(text: &str) -> Option<Value> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let first = unsigned.bytes().next()?;
    if !first.is_ascii_digit() && first != b'.' {
        return None;
    }
    let negative = text.starts_with('-');
    match unsigned {
        ".inf" | ".Inf" | ".INF" if negative => return Some(Value::Float(f64::NEG_INFINITY)),
        ".inf" | ".Inf" | ".INF" => return Some(Value::Float(f64::INFINITY)),
        ".nan" | ".NaN" | ".NAN" => return Some(Value::Float(f64::NAN)),
        _ => {}
    }
    integer(unsigned, negative)
        .map(Value::Int)
        .or_else(|| float(text, unsigned).map(Value::Float))
}

/// Parses an integer with the prefixes of Go: `0x`, `0o`, `0b`, and `0` for octal.
fn integer(unsigned: &str, negative: bool) -> Option<i64> {
    let plain: String = unsigned.chars().filter(|&letter| letter != '_').collect();
    let lower = plain.to_ascii_lowercase();
    let (digits, radix) = if let Some(digits) = lower.strip_prefix("0x") {
        (digits, 16)
    } else if let Some(digits) = lower.strip_prefix("0o") {
        (digits, 8)
    } else if let Some(digits) = lower.strip_prefix("0b") {
        (digits, 2)
    } else if lower.len() > 1 && lower.starts_with('0') {
        (&lower[1..], 8)
    } else {
        (lower.as_str(), 10)
    };
    if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let value = i128::from_str_radix(digits, radix).ok()?;
    i64::try_from(if negative { -value } else { value }).ok()
}

fn float(text: &str, unsigned: &str) -> Option<f64> {
    let (mantissa, exponent) = unsigned.split_once(['e', 'E']).unwrap_or((unsigned, "0"));
    let exponent = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let well_formed = digits(whole)
        && digits(fraction)
        && whole.len() + fraction.len() > 0
        && !exponent.is_empty()
        && digits(exponent);
    if well_formed { text.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_scalars_are_typed_like_kubernetes() {
        let text = |text: &str| Value::Text(text.into());
        for (written, wanted) in [
            ("", Value::Null),
            ("~", Value::Null),
            ("null", Value::Null),
            ("true", Value::Bool(true)),
            ("yes", Value::Bool(true)),
            ("On", Value::Bool(true)),
            ("n", Value::Bool(false)),
            ("OFF", Value::Bool(false)),
            ("yEs", text("yEs")),
            ("1", Value::Int(1)),
            ("-1", Value::Int(-1)),
            ("+1", Value::Int(1)),
            ("010", Value::Int(8)),
            ("08", Value::Float(8.0)),
            ("0x1F", Value::Int(31)),
            ("0b11", Value::Int(3)),
            ("0o17", Value::Int(15)),
            ("1_000", Value::Int(1000)),
            ("1.5", Value::Float(1.5)),
            ("1.10", Value::Float(1.1)),
            (".5", Value::Float(0.5)),
            ("1.", Value::Float(1.0)),
            ("1e3", Value::Float(1000.0)),
            ("-.inf", Value::Float(f64::NEG_INFINITY)),
            (
                "9223372036854775808",
                Value::Float(9_223_372_036_854_775_808.0),
            ),
            ("1.2.3", text("1.2.3")),
            ("10.0.0.1", text("10.0.0.1")),
            ("1s", text("1s")),
            ("2024-01-02", text("2024-01-02")),
            ("1:30", text("1:30")),
            ("-", text("-")),
            (".", text(".")),
            ("1e", text("1e")),
            ("e1", text("e1")),
            ("inf", text("inf")),
        ] {
            assert_eq!(resolve(written), wanted, "{written}");
        }
    }
}
