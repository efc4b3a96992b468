//! Regular expressions in the syntax of RE2, which Envoy uses and Istio checks. Uses the crates
//! `regex` and `regex-syntax` only.
//!
//! Values are bytes, and so are expressions: like Envoy's, each byte is one character of Latin-1, whether it is part of
//! UTF-8 or not. `.` matches the byte 0xFF, and `..` matches `é`; `[é]` matches one of its two bytes.
//!
//! [`translate`] parses RE2's syntax and writes the same expression in that of the crate `regex`, with nothing left
//! that the two read differently: classes are spelled out, literals are escaped, flags are resolved, and names of
//! groups are left out. Expressions that RE2 rejects are rejected. [`Budget`] compiles the expressions of one object,
//! by [`compile`], the only way by which a user's expression is compiled.
//!
//! Remaining difference: a script or a category has the characters of the Unicode version of each library.

mod budget;
mod bytes;
mod class;
mod compiled;
mod escape;
mod groups;
mod pieces;
mod shared;
mod text;

use std::fmt::Display;
use std::sync::Arc;

use regex::bytes::RegexBuilder;
use regex_syntax::ParserBuilder;

pub use budget::{Budget, OBJECT_BYTES_MAX};
pub use compiled::{Compiled, Extent};
use pieces::{Frame, Piece, Repeat};
use shared::shared;
use text::{Flags, Text};

/// Maximum size of a compiled expression, in bytes. Half of the default of the crate `regex`.
const COMPILED_BYTES_MAX: usize = 1 << 20;

/// Maximum nesting depth of groups. RE2 permits 1,000, but compilation uses stack for each level.
const DEPTH_MAX: usize = 200;

/// Nesting limit passed to the crate `regex`, which counts each group, its alternatives, its sequence and its
/// repetition.
const NEST_LIMIT: u32 = 1_000;

/// Maximum repetition count; nested counts are multiplied.
const REPEAT_MAX: u32 = 1_000;

/// Compiles an expression. Equal expressions share the result.
///
/// # Errors
/// Returns a one-line message if the expression is invalid.
pub fn compile(source: &str, extent: Extent) -> Result<Compiled, String> {
    shared(source, extent, || {
        let translated = translate(source)?;
        match extent {
            Extent::Part => build(&translated),
            Extent::Whole => build(&format!(r"\A(?:{translated})\z")),
        }
    })
}

fn build(translated: &str) -> Result<Compiled, String> {
    let mut parser = ParserBuilder::new();
    let parser = parser.utf8(false).nest_limit(NEST_LIMIT);
    let of_characters = parser.build().parse(translated).map_err(last_line)?;
    let of_bytes = bytes::of(of_characters);
    let bytes = compiled::bytes_of(&of_bytes);
    let mut builder = RegexBuilder::new(&of_bytes.to_string());
    builder
        .size_limit(COMPILED_BYTES_MAX)
        .nest_limit(NEST_LIMIT);
    let regex = builder.build().map_err(|error| match error {
        regex::Error::CompiledTooBig(_) => "it compiles to more than 1 MiB".to_owned(),
        error => last_line(error),
    })?;
    Ok(Compiled {
        regex: Arc::new(regex),
        bytes,
    })
}

/// Returns the last line of an error, which has the message; the lines before it draw the expression.
fn last_line(error: impl Display) -> String {
    let text = error.to_string();
    let line = text.lines().last().unwrap_or("").trim();
    line.strip_prefix("error: ").unwrap_or(line).to_owned()
}

/// Translates an RE2 expression to the syntax of the crate `regex`, for values of which each byte is a character.
///
/// # Errors
/// Returns a one-line message if RE2 would reject the expression.
pub fn translate(source: &str) -> Result<String, String> {
    let latin1: String = source.bytes().map(char::from).collect();
    parse(&latin1).map_err(|reason| {
        // What it quotes is as it was written.
        let bytes: Vec<u8> = reason
            .chars()
            .filter_map(|c| u8::try_from(c).ok())
            .collect();
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

fn parse(source: &str) -> Result<String, String> {
    let mut parser = Parser {
        text: Text::new(source),
        flags: Flags::default(),
        frames: vec![Frame::default()],
        after_repeat: None,
    };
    while let Some((at, c)) = parser.text.next() {
        let start = at;
        let repeat = parser.one(start, c)?;
        parser.after_repeat = repeat;
    }
    let Some((frame, [])) = parser.frames.split_first() else {
        return Err("`(` is not closed; add `)`, or write `\\(` for the character".to_owned());
    };
    Ok(frame.text())
}

struct Parser<'a> {
    text: Text<'a>,
    flags: Flags,
    /// Open groups, the whole expression first.
    frames: Vec<Frame>,
    /// Byte offset of the repetition that was parsed last, if nothing was parsed after it.
    after_repeat: Option<usize>,
}

impl Parser<'_> {
    /// Parses the element that starts with `c`. Returns its byte offset if it is a repetition.
    fn one(&mut self, start: usize, c: char) -> Result<Option<usize>, String> {
        let flags = self.flags;
        match c {
            '*' => return self.repeat(start, Repeat::new(0, None)),
            '+' => return self.repeat(start, Repeat::new(1, None)),
            '?' => return self.repeat(start, Repeat::new(0, Some(1))),
            '{' => {
                if let Some((repeat, bytes)) = counted(self.text.rest()) {
                    self.text.skip(bytes);
                    return self.repeat(start, repeat);
                }
                self.push(Piece::literal('{', flags.fold));
            }
            '(' => self.open(start)?,
            ')' => self.close()?,
            '|' => self.top().alternative(),
            '^' if flags.lines => self.push(Piece::of("(?m:^)")),
            '$' if flags.lines => self.push(Piece::of("(?m:$)")),
            '.' if flags.dot_is_all => self.push(Piece::of("(?s:.)")),
            '^' | '$' | '.' => self.push(Piece::of(c.encode_utf8(&mut [0; 4]))),
            '[' => {
                let class = class::bracket(&mut self.text)?;
                self.push(Piece::class(class, flags.fold));
            }
            '\\' => self.escaped()?,
            c => self.push(Piece::literal(c, flags.fold)),
        }
        Ok(None)
    }

    fn top(&mut self) -> &mut Frame {
        let last = self.frames.len() - 1;
        &mut self.frames[last]
    }

    fn push(&mut self, piece: Piece) {
        self.top().push(piece);
    }

    fn repeat(&mut self, start: usize, mut repeat: Repeat) -> Result<Option<usize>, String> {
        let lazy = self.text.eat('?');
        repeat.lazy = lazy != self.flags.swap_greed;
        let written = self.text.since(start);
        if let Some(before) = self.after_repeat {
            let both = self.text.since(before);
            return Err(format!(
                "`{both}` repeats a repetition, which RE2 does not know; put what is repeated in `(?:)`"
            ));
        }
        if repeat.is_beyond(REPEAT_MAX) {
            return Err(format!(
                "`{written}` is no repetition of RE2: at most {REPEAT_MAX} times, and the least first"
            ));
        }
        match self.top().repeat(repeat) {
            None => Err(format!(
                "there is nothing before `{written}` that could be repeated"
            )),
            Some(product) if product > REPEAT_MAX => Err(format!(
                "`{written}` and the repetitions within make more than {REPEAT_MAX} times"
            )),
            Some(_) => Ok(Some(start)),
        }
    }

    /// Parses the element after a backslash.
    fn escaped(&mut self) -> Result<(), String> {
        let fold = self.flags.fold;
        let piece = match self.text.peek() {
            Some('b') => Piece::of(r"(?-u:\b)"),
            Some('B') => Piece::of(r"(?-u:\B)"),
            Some('A') => Piece::of(r"\A"),
            Some('z') => Piece::of(r"\z"),
            Some('C') => Piece::of(r"(?s-u:.)"),
            Some('Q') => {
                self.text.next();
                let rest = self.text.rest();
                let literal = rest.split(r"\E").next().unwrap_or(rest);
                self.text.skip(literal.len());
                self.text.skip(r"\E".len());
                for c in literal.chars() {
                    self.push(Piece::literal(c, fold));
                }
                return Ok(());
            }
            _ => {
                let piece = match escape::group(&mut self.text)? {
                    Some(group) => Piece::class(group, fold),
                    None => Piece::literal(escape::character(&mut self.text)?, fold),
                };
                self.push(piece);
                return Ok(());
            }
        };
        self.text.next();
        self.push(piece);
        Ok(())
    }

    /// Parses the element after a `(`.
    fn open(&mut self, start: usize) -> Result<(), String> {
        if self.text.peek() != Some('?') {
            return self.enter(true, self.flags);
        }
        let rest = self.text.rest();
        if ["?=", "?!", "?<=", "?<!"]
            .iter()
            .any(|look| rest.starts_with(look))
        {
            return Err("look-around is not supported".to_owned());
        }
        if let Some(named) = ["?P<", "?<"].iter().find(|named| rest.starts_with(**named)) {
            let name = rest[named.len()..].split_once('>').map(|(name, _)| name);
            let Some(name) = name.filter(|name| is_name(name)) else {
                return Err(
                    "the name of a group is letters, digits and `_`, closed by `>`".to_owned(),
                );
            };
            self.text.skip(named.len() + name.len() + 1);
            return self.enter(true, self.flags);
        }
        self.text.next();
        let mut new = self.flags;
        let (mut negated, mut has_flag) = (false, false);
        loop {
            let value = !negated;
            match self.text.next().map(|(_, c)| c) {
                Some('i') => new.fold = value,
                Some('m') => new.lines = value,
                Some('s') => new.dot_is_all = value,
                Some('U') => new.swap_greed = value,
                Some('-') if !negated => {
                    (negated, has_flag) = (true, false);
                    continue;
                }
                Some(':') if !negated || has_flag => return self.enter(false, new),
                Some(')') if !negated || has_flag => {
                    self.flags = new;
                    return Ok(());
                }
                _ => {
                    let written = self.text.since(start);
                    return Err(format!(
                        "`{written}` is not RE2 syntax: flags are `i`, `m`, `s` and `U`, as in `(?i)` or `(?i:x)`"
                    ));
                }
            }
            has_flag = true;
        }
    }

    /// Opens a group with these flags.
    fn enter(&mut self, captures: bool, flags: Flags) -> Result<(), String> {
        if self.frames.len() > DEPTH_MAX {
            return Err(format!(
                "groups are nested more than {DEPTH_MAX} levels deep"
            ));
        }
        self.frames.push(Frame::group(captures, self.flags));
        self.flags = flags;
        Ok(())
    }

    fn close(&mut self) -> Result<(), String> {
        if self.frames.len() < 2 {
            return Err("`)` closes nothing; write `\\)` for the character".to_owned());
        }
        if let Some(frame) = self.frames.pop() {
            self.flags = frame.outer_flags;
            self.push(frame.into_piece());
        }
        Ok(())
    }
}

/// Returns the repetition after a `{`, and its length. `None` if the text is no repetition; it then matches literally.
fn counted(rest: &str) -> Option<(Repeat, usize)> {
    let (inner, _) = rest.split_once('}')?;
    let repeat = match inner.split_once(',') {
        None => {
            let count = number(inner)?;
            Repeat::new(count, Some(count))
        }
        Some((min, "")) => Repeat::new(number(min)?, None),
        Some((min, max)) => Repeat::new(number(min)?, Some(number(max)?)),
    };
    Some((repeat, inner.len() + 1))
}

/// Parses a number of a repetition as RE2 does: leading zeros are not permitted.
fn number(text: &str) -> Option<u32> {
    let is_plain = text == "0" || !text.starts_with('0');
    let digits = (1..=9).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| is_plain && digits)
}

/// Whether a text is a valid group name.
fn is_name(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests;
