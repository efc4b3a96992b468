//! Attributes in OTLP: `KeyValue` with a text, an integer, a number or a truth value.

use super::protobuf::{begin, bytes, fixed64, varint, varint_length};

/// Maximum number of bytes of a text.
pub(crate) const VALUE_BYTES_MAX: usize = 1024;

/// Tag of the key of a `KeyValue`, and of the text of an `AnyValue`.
const TEXT_TAG: u8 = 1 << 3 | 2;

/// Tag of the value of a `KeyValue`.
const VALUE_TAG: u8 = 2 << 3 | 2;

/// Writes attributes of one span, event or resource into a field of its message.
pub(crate) struct Attributes<'a> {
    out: &'a mut Vec<u8>,
    field: u32,
    /// Number of attributes that may follow.
    left: usize,
    /// Number of attributes that were left out.
    dropped: u32,
    /// Maximum number of bytes of a text.
    bytes_max: usize,
}

impl<'a> Attributes<'a> {
    /// Writes at most `most` attributes into the field with this number.
    pub(crate) fn new(out: &'a mut Vec<u8>, field: u32, most: usize, bytes_max: usize) -> Self {
        Self {
            out,
            field,
            left: most,
            dropped: 0,
            bytes_max,
        }
    }

    /// Number of attributes that were left out.
    pub(crate) fn dropped(&self) -> u32 {
        self.dropped
    }

    /// Writes a text; bytes that are no UTF-8 are replaced.
    pub(crate) fn text(&mut self, key: &str, value: impl AsRef<[u8]>) {
        let value = value.as_ref();
        if value.len() > self.bytes_max || !value.is_ascii() {
            return self.parts(key, &[value], self.bytes_max);
        }
        if self.admit() {
            self.begin(key, 1 + varint_length(value.len() as u64) + value.len());
            bytes(self.out, 1, value);
        }
    }

    /// Writes a text that consists of several parts, of at most this many bytes.
    pub(crate) fn parts(&mut self, key: &str, parts: &[&[u8]], bytes_max: usize) {
        if !self.admit() {
            return;
        }
        let whole = parts.iter().map(|part| part.len()).sum::<usize>();
        let is_plain = whole <= bytes_max && parts.iter().all(|part| part.is_ascii());
        if is_plain {
            let value = 1 + varint_length(whole as u64) + whole;
            self.begin(key, value);
            begin(self.out, 1, whole);
            parts
                .iter()
                .for_each(|part| self.out.extend_from_slice(part));
            return;
        }
        let text = parts.concat();
        let text = String::from_utf8_lossy(&text);
        let mut end = bytes_max.min(text.len());
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let text = &text.as_bytes()[..end];
        self.begin(key, 1 + varint_length(text.len() as u64) + text.len());
        bytes(self.out, 1, text);
    }

    /// Writes an integer.
    pub(crate) fn integer(&mut self, key: &str, value: u64) {
        if !self.admit() {
            return;
        }
        // zero is written, too: an attribute without a value is none
        self.begin(key, 1 + varint_length(value));
        varint(self.out, 3 << 3);
        varint(self.out, value);
    }

    /// Writes a number.
    pub(crate) fn number(&mut self, key: &str, value: f64) {
        if self.admit() {
            self.begin(key, 9);
            fixed64(self.out, 4, value.to_bits());
        }
    }

    /// Writes a truth value.
    pub(crate) fn boolean(&mut self, key: &str, value: bool) {
        if self.admit() {
            self.begin(key, 2);
            varint(self.out, 2 << 3);
            varint(self.out, value.into());
        }
    }

    fn admit(&mut self) -> bool {
        if self.left == 0 {
            self.dropped += 1;
            return false;
        }
        self.left -= 1;
        true
    }

    /// Writes everything up to the value, which has this many bytes.
    fn begin(&mut self, key: &str, value: usize) {
        let keyed = 1 + varint_length(key.len() as u64) + key.len();
        let valued = 1 + varint_length(value as u64) + value;
        if keyed + valued < 0x80 && self.field < 0x10 {
            // tags and lengths have one byte each, as those of nearly all attributes
            let whole = (keyed + valued) as u8;
            let head = [
                (self.field << 3 | 2) as u8,
                whole,
                TEXT_TAG,
                key.len() as u8,
            ];
            self.out.extend_from_slice(&head);
            self.out.extend_from_slice(key.as_bytes());
            self.out.extend_from_slice(&[VALUE_TAG, value as u8]);
            return;
        }
        begin(self.out, self.field, keyed + valued);
        bytes(self.out, 1, key.as_bytes());
        begin(self.out, 2, value);
    }
}

#[cfg(test)]
mod tests {
    use prost::Message;

    use super::super::zipkin::Span;
    use super::*;

    #[test]
    fn texts_and_integers_of_all_lengths_are_read_back() {
        for length in (0..140).chain([16_370, 16_384]) {
            for of_key in [1, 20, 100, 127, 128, 300] {
                let (key, value) = ("k".repeat(of_key), "v".repeat(length));
                let mut out = Vec::new();
                let mut attributes = Attributes::new(&mut out, 9, 3, usize::MAX);
                attributes.text(&key, &value);
                attributes.parts(&key, &[value.as_bytes(), b"/"], usize::MAX);
                attributes.integer(&key, 1 << (length % 63));
                let span = Span::decode(&*out).expect("a span");
                let read = span.attributes.iter().map(|one| (&*one.key, one.text()));
                let number = (1_u64 << (length % 63)).to_string();
                let expected = [value.clone(), value + "/", number].map(|text| (&*key, text));
                assert_eq!(read.collect::<Vec<_>>(), expected);
            }
        }
    }
}
