//! What a translated expression is made of while it is parsed.

use std::fmt::Write as _;

use super::class::NOTHING;
use super::text::Flags;

/// How often something is repeated.
#[derive(Clone, Copy, Debug)]
pub(super) struct Repeat {
    min: u32,
    /// None for any number.
    max: Option<u32>,
    /// As few as can be.
    pub(super) lazy: bool,
}

impl Repeat {
    pub(super) fn new(min: u32, max: Option<u32>) -> Repeat {
        let lazy = false;
        Repeat { min, max, lazy }
    }

    /// Whether a bound is over a limit, or over the other one.
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

    /// How often it counts among nested repetitions; `*` and `?` do not.
    fn times(self) -> u32 {
        self.max.unwrap_or(self.min).max(1)
    }
}

/// What a repetition would repeat.
#[derive(Clone, Debug)]
pub(super) struct Piece {
    text: String,
    /// Whether case does not matter in it.
    fold: bool,
    /// How often its innermost part is repeated.
    product: u32,
    is_repeated: bool,
}

impl Piece {
    /// What is written the same in both syntaxes, and means the same whether case matters or not.
    pub(super) fn of(text: &str) -> Piece {
        Piece::class(text.to_owned(), false)
    }

    /// A class.
    pub(super) fn class(text: String, fold: bool) -> Piece {
        Piece {
            text,
            fold,
            product: 1,
            is_repeated: false,
        }
    }

    /// A character that matches itself.
    pub(super) fn literal(c: char, fold: bool) -> Piece {
        let text = regex::escape(c.encode_utf8(&mut [0; 4]));
        Piece::class(text, fold && (c.is_alphabetic() || !c.is_ascii()))
    }
}

/// A group that is open.
#[derive(Clone, Debug, Default)]
pub(super) struct Frame {
    captures: bool,
    /// The flags outside of it.
    pub(super) outer_flags: Flags,
    /// The alternatives before the last one.
    before: String,
    /// The last alternative.
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

    /// Repeats the last piece. Returns how often its innermost part is repeated then, or nothing if there is no piece.
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

    /// Begins another alternative.
    pub(super) fn alternative(&mut self) {
        let pieces = std::mem::take(&mut self.pieces);
        self.product = self.product.max(product_of(&pieces));
        write_all(&pieces, &mut self.before);
        self.before.push('|');
    }

    /// Everything within.
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

/// Writes pieces one after another.
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
