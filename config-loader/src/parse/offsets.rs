//! Conversion of the parser's character counts to byte offsets.

/// Number of characters between two stored byte offsets.
const STRIDE: usize = 64;

/// Converter for one text.
#[derive(Debug)]
pub(super) struct Offsets<'t> {
    text: &'t str,
    /// Byte offset of every [`STRIDE`]th character; empty for ASCII text.
    noted: Vec<usize>,
}

impl<'t> Offsets<'t> {
    pub(super) fn new(text: &'t str) -> Offsets<'t> {
        let noted = if text.is_ascii() {
            Vec::new()
        } else {
            text.char_indices()
                .step_by(STRIDE)
                .map(|(offset, _)| offset)
                .collect()
        };
        Offsets { text, noted }
    }

    /// Returns the byte offset of the character with this index.
    pub(super) fn byte(&self, index: usize) -> usize {
        if self.noted.is_empty() {
            return index.min(self.text.len());
        }
        let Some(&start) = self.noted.get(index / STRIDE) else {
            return self.text.len();
        };
        let rest = &self.text[start..];
        rest.char_indices()
            .nth(index % STRIDE)
            .map_or(self.text.len(), |(offset, _)| start + offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_character_has_its_offset() {
        let text = "aä€𝄞".repeat(50);
        let offsets = Offsets::new(&text);
        for (index, (offset, _)) in text.char_indices().enumerate() {
            assert_eq!(offsets.byte(index), offset);
        }
        assert_eq!(offsets.byte(200), text.len());
        assert_eq!(offsets.byte(9_999), text.len());
        assert_eq!(Offsets::new("abc").byte(9), 3);
    }
}
