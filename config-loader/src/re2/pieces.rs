//! Parts of a translated expression during parsing.

use std::fmt::Write as _;

use super::class::NOTHING;
use super::text::Flags;

/// Repetition operator.
#[derive(Clone, Copy, Debug)]
pub(super) struct Repeat {
    min: u32,
    /// Maximum count; `None` for no limit.
    max: Option<u32>,
    /// Whether the repetition matches as few times as possible.
    pub(super) lazy: bool,
}

impl Repeat {
    pub(super) fn new(min: u32, max: Option<u32>) -> Repeat {
        let lazy = false;
        Repeat { min, max, lazy }
    }

    /// Whether a bound exceeds `limit`, or the minimum exceeds the maximum.
    pub(super) fn is_beyond(self, limit: u32) -> bool {
        let max = self.max.unwrap_or(self.min);
        self.min > limit || max > limit || max < self.min
    }

    fn write(self, text: &mut String) {
        match (self.min, self.max) {
            (0, None) => text.push('*'),
            (1, None) => text.push('+'),
            (0, Some(1)) => text.push('?'),
            // Writing to a string cannot fail.
            (min, None) => _ = write!(text, "{{{min},}}"),
            (min, Some(max)) if min == max => _ = write!(text, "{{{min}}}"),
            (min, Some(max)) => _ = write!(text, "{{{min},{max}}}"),
        }
        if self.lazy {
            text.push('?');
        }
    }

    /// Factor in the product of nested repetitions. 1 for `*` and `?`.
    fn times(self) -> u32 {
        self.max.unwrap_or(self.min).max(1)
    }
}

/// Operand of a repetition: a character, class or group.
#[derive(Clone, Debug)]
pub(super) struct Piece {
    text: String,
    /// Whether it matches case-insensitively.
    fold: bool,
    /// Product of the nested repetition counts of its innermost part.
    product: u32,
    is_repeated: bool,
}

impl Piece {
    /// Creates a piece with the same syntax and meaning in both dialects, independent of case.
    pub(super) fn of(text: &str) -> Piece {
        Piece::class(text.to_owned(), false)
    }

    /// Creates a character class.
    pub(super) fn class(text: String, fold: bool) -> Piece {
        Piece {
            text,
            fold,
            product: 1,
            is_repeated: false,
        }
    }

    /// Creates a literal character.
    pub(super) fn literal(c: char, fold: bool) -> Piece {
        let text = regex::escape(c.encode_utf8(&mut [0; 4]));
        Piece::class(text, fold && (c.is_alphabetic() || !c.is_ascii()))
    }
}

/// Open group.
#[derive(Clone, Debug, Default)]
pub(super) struct Frame {
    captures: bool,
    /// Flags outside of the group.
    pub(super) outer_flags: Flags,
    /// Alternatives before the current one.
    before: String,
    /// Pieces of the current alternative.
    pieces: Vec<Piece>,
    product: u32,
}

impl Frame {
    pub(super) fn group(captures: bool, outer_flags: Flags) -> Frame {
        Frame {
            captures,
            outer_flags,
            ..Frame::default()
        }
    }

    pub(super) fn push(&mut self, piece: Piece) {
        self.pieces.push(piece);
    }

    /// Repeats the last piece. Returns the resulting product of nested counts; `None` if there is no piece.
    pub(super) fn repeat(&mut self, repeat: Repeat) -> Option<u32> {
        let piece = self.pieces.last_mut()?;
        if piece.is_repeated {
            // Only something that represents nothing was between the two, such as `(?i)`.
            piece.text = format!("(?:{})", piece.text);
        }
        if repeat.max == Some(0) {
            // Nothing is repeated, but its groups keep their numbers, which the crate would not count.
            piece.text = format!("(?:{NOTHING}{}|)", piece.text);
        } else {
            repeat.write(&mut piece.text);
        }
        piece.is_repeated = true;
        piece.product = piece.product.saturating_mul(repeat.times());
        Some(piece.product)
    }

    /// Starts the next alternative.
    pub(super) fn alternative(&mut self) {
        let pieces = std::mem::take(&mut self.pieces);
        self.product = self.product.max(product_of(&pieces));
        write_all(&pieces, &mut self.before);
        self.before.push('|');
    }

    /// Returns the translated text of the group.
    pub(super) fn text(&self) -> String {
        let mut text = self.before.clone();
        write_all(&self.pieces, &mut text);
        text
    }

    pub(super) fn into_piece(self) -> Piece {
        let open = if self.captures { "(" } else { "(?:" };
        Piece {
            text: format!("{open}{})", self.text()),
            fold: false,
            product: self.product.max(product_of(&self.pieces)),
            is_repeated: false,
        }
    }
}

fn product_of(pieces: &[Piece]) -> u32 {
    pieces.iter().map(|piece| piece.product).max().unwrap_or(1)
}

/// Appends the pieces to `text`.
fn write_all(pieces: &[Piece], text: &mut String) {
    let mut folds = false;
    for piece in pieces {
        if piece.fold != folds {
            text.push_str(if piece.fold { "(?i:" } else { ")" });
            folds = piece.fold;
        }
        text.push_str(&piece.text);
    }
    if folds {
        text.push(')');
    }
}
