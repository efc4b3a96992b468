//! Counter of the messages in a gRPC body; pure.
//!
//! A message is one byte of flags, four bytes of length, and that many bytes of data. It counts once its five-byte
//! prefix is complete, no matter how the body is split.

/// Length of a message's prefix.
const PREFIX: u8 = 5;

/// Counter with its position in the current message.
#[derive(Clone, Copy, Debug, Default)]
pub struct Messages {
    count: u64,
    /// Number of bytes of the prefix that were read.
    prefix: u8,
    /// While reading the prefix, the length so far; then the number of remaining bytes of the message.
    length: u32,
}

impl Messages {
    /// Number of messages.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Reads the next bytes of the body.
    pub fn saw(&mut self, mut bytes: &[u8]) {
        while let Some((&first, rest)) = bytes.split_first() {
            if self.prefix < PREFIX {
                if self.prefix > 0 {
                    self.length = self.length << 8 | u32::from(first);
                }
                self.prefix += 1;
                self.count += u64::from(self.prefix == PREFIX);
                bytes = rest;
            } else {
                let message = usize::try_from(self.length).unwrap_or(usize::MAX);
                let taken = message.min(bytes.len());
                bytes = &bytes[taken..];
                self.length -= u32::try_from(taken).unwrap_or(self.length);
            }
            if self.prefix == PREFIX && self.length == 0 {
                self.prefix = 0;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn body(lengths: &[usize]) -> Vec<u8> {
        let message = |length: &usize| {
            let mut bytes = vec![0];
            bytes.extend(u32::try_from(*length).unwrap().to_be_bytes());
            bytes.extend(vec![0xff; *length]);
            bytes
        };
        lengths.iter().flat_map(message).collect()
    }

    fn count(pieces: &[&[u8]]) -> u64 {
        let mut messages = Messages::default();
        pieces.iter().for_each(|piece| messages.saw(piece));
        messages.count()
    }

    #[test]
    fn message_counts_after_its_prefix() {
        let two = body(&[3, 0]);
        for (seen, expected) in [(0, 0), (4, 0), (5, 1), (8, 1), (12, 1), (13, 2)] {
            assert_eq!(count(&[&two[..seen]]), expected, "{seen} bytes");
        }
        assert_eq!(count(&[&body(&[70_000, 1])]), 2);
    }

    #[test]
    fn message_of_maximum_length_counts_as_one() {
        let mut messages = Messages::default();
        messages.saw(&[0, 0xff, 0xff, 0xff, 0xff]);
        messages.saw(&[0; 1000]);
        assert_eq!(messages.count(), 1);
    }

    proptest! {
        #[test]
        fn count_does_not_depend_on_segmentation(
            lengths in prop::collection::vec(0_usize..300, 0..20),
            piece in 1_usize..400,
        ) {
            let body = body(&lengths);
            let pieces: Vec<&[u8]> = body.chunks(piece).collect();
            prop_assert_eq!(count(&pieces), lengths.len() as u64);
        }
    }
}
