//! YAML output for people: block style, with quotes only if needed.

use serde_json::Value;

/// Formats a document, which ends with a line break.
pub fn to_yaml(value: &Value) -> String {
    let mut out = String::new();
    block(&mut out, value, 0);
    out
}

/// Writes a value as a block with this indentation, which the first line already has.
fn block(out: &mut String, value: &Value, indent: usize) {
    match value {
        Value::Object(map) if !map.is_empty() => {
            for (at, (key, value)) in map.iter().enumerate() {
                if at > 0 {
                    pad(out, indent);
                }
                out.push_str(&scalar(key));
                out.push(':');
                entry(out, value, indent);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    pad(out, indent);
                }
                out.push_str("- ");
                block(out, item, indent + 2);
            }
        }
        flat => {
            out.push_str(&match flat {
                Value::String(text) => scalar(text),
                // Numbers, booleans, null and empty values are the same in JSON.
                other => other.to_string(),
            });
            out.push('\n');
        }
    }
}

/// Writes the value of a key.
fn entry(out: &mut String, value: &Value, indent: usize) {
    let is_nested = match value {
        Value::Object(map) => !map.is_empty(),
        Value::Array(items) => !items.is_empty(),
        _ => false,
    };
    if !is_nested {
        out.push(' ');
        return block(out, value, indent);
    }
    out.push('\n');
    let inner = match value {
        Value::Array(_) => indent,
        _ => indent + 2,
    };
    pad(out, inner);
    block(out, value, inner);
}

fn pad(out: &mut String, indent: usize) {
    out.extend(std::iter::repeat_n(' ', indent));
}

/// Formats a string: plain if every YAML parser reads it as a string, else in double quotes.
fn scalar(text: &str) -> String {
    let is_first = |byte: u8| byte.is_ascii_alphabetic() || byte == b'/';
    let is_further = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-".contains(&byte);
    let words = ["false", "n", "no", "null", "off", "on", "true", "y", "yes"];
    let is_plain = text.bytes().next().is_some_and(is_first)
        && text.bytes().all(is_further)
        && !words.iter().any(|word| word.eq_ignore_ascii_case(text));
    match is_plain {
        true => text.to_owned(),
        // A JSON string is a valid YAML string.
        false => Value::from(text).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::json;
    use serde_json::json;

    #[test]
    fn documents_are_blocks() {
        let value = json!({"a": [{"b": 1, "c": ["x", "no"]}, []], "d": {"e": {}, "f": "1"}});
        let text = "a:\n- b: 1\n  c:\n  - x\n  - \"no\"\n- []\nd:\n  e: {}\n  f: \"1\"\n";
        assert_eq!(to_yaml(&value), text);
    }

    #[test]
    fn every_value_is_read_back() {
        let texts = [
            "",
            " ",
            "~",
            "yes",
            "NULL",
            "1",
            "1e3",
            "0x1f",
            "-",
            "- a",
            "a: b",
            "a #b",
            "#",
            "*a",
            "&a",
            "!x",
            "%x",
            "@x",
            "`",
            "\"",
            "'",
            "\\",
            "a\nb\n",
            "\t",
            "ü",
            "\u{1f600}",
            "\u{7f}\u{85}\u{2028}",
            "{}",
            "[",
            "/a/b",
            "2001-01-01",
            ".inf",
            "=",
            "<<",
            "---",
            "...",
            "? a",
            "|",
            ">",
            "a:",
            ":a",
            "12:30:45",
        ];
        for text in texts {
            let value = json!({"k": text, "l": [text, [text]], "m": {text: 1}});
            let read = json(&"a.yaml".into(), &to_yaml(&value), 1);
            assert_eq!(read.as_ref(), Ok(&value), "{text:?}");
        }
        let numbers =
            json!({"a": [0, -1, 1.5, 1e300, 9_007_199_254_740_993_i64, true, null, [[1]], [{}]]});
        assert_eq!(json(&"a.yaml".into(), &to_yaml(&numbers), 1), Ok(numbers));
    }
}
