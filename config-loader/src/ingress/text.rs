//! Texts of objects in which parts have given lines.

use serde_json::Value;

/// Key of the line of a part, counted from 0 within the document.
pub(super) const LINE: &str = "$line";

/// Largest number of empty lines in a text.
const LINES_MAX: u64 = 100_000;

/// Returns an object as JSON in which parts with [`LINE`] begin on this line, or on a later one.
pub(super) fn with_lines(value: &Value) -> String {
    let mut text = Text::default();
    text.write(value);
    text.out
}

/// Returns an object without lines.
pub(super) fn without_lines(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(without_lines).collect(),
        Value::Object(map) => {
            let entries = map.iter().filter(|(key, _)| *key != LINE);
            let entries = entries.map(|(key, value)| (key.clone(), without_lines(value)));
            Value::Object(entries.collect())
        }
        flat => flat.clone(),
    }
}

#[derive(Default)]
struct Text {
    out: String,
    line: u64,
}

impl Text {
    fn write(&mut self, value: &Value) {
        match value {
            Value::Array(items) => {
                self.out.push('[');
                for (at, item) in items.iter().enumerate() {
                    self.separate(at);
                    self.write(item);
                }
                self.out.push(']');
            }
            Value::Object(map) => {
                let line = map.get(LINE).and_then(Value::as_u64).unwrap_or(0);
                while self.line < line.min(LINES_MAX) {
                    self.out.push('\n');
                    self.line += 1;
                }
                self.out.push('{');
                let entries = map.iter().filter(|(key, _)| *key != LINE);
                for (at, (key, value)) in entries.enumerate() {
                    self.separate(at);
                    self.out.push_str(&Value::from(key.as_str()).to_string());
                    self.out.push_str(": ");
                    self.write(value);
                }
                self.out.push('}');
            }
            flat => self.out.push_str(&flat.to_string()),
        }
    }

    fn separate(&mut self, at: usize) {
        if at > 0 {
            self.out.push_str(", ");
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn parts_begin_on_their_lines() {
        let value = json!({"a": [{LINE: 2, "b": 1}, {LINE: 1, "c": {LINE: 4, "d": "\n"}}]});
        let text = with_lines(&value);
        assert_eq!(
            text,
            "{\"a\": [\n\n{\"b\": 1}, {\"c\": \n\n{\"d\": \"\\n\"}}]}"
        );
        let plain = without_lines(&value);
        assert_eq!(plain, json!({"a": [{"b": 1}, {"c": {"d": "\n"}}]}));
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), plain);
    }
}
