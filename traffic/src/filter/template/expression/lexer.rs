//! Text of an expression to tokens.

use super::error::ExpressionError;

/// Token of an expression.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token<'t> {
    Double(f64),
    End,
    Int(i64),
    /// Number whose digits are those of -2^63 without its sign.
    IntMin,
    Name(&'t str),
    /// Operator or bracket.
    Sign(&'static str),
    Text(String),
    Uint(u64),
}

/// Signs, those of two characters first.
const SIGNS: [&str; 23] = [
    "&&", "||", "==", "!=", "<=", ">=", "<", ">", "!", "?", ":", "(", ")", "[", "]", ".", ",", "+",
    "-", "*", "/", "%", "{",
];

/// Returns the tokens, each with its position; the last one is [`Token::End`].
pub(super) fn tokens(text: &str) -> Result<Vec<(usize, Token<'_>)>, ExpressionError> {
    let mut lexer = Lexer { text, at: 0 };
    let mut tokens = Vec::new();
    loop {
        lexer.skip_spaces();
        let at = lexer.at;
        let token = lexer.token()?;
        let is_end = token == Token::End;
        tokens.push((at, token));
        if is_end {
            return Ok(tokens);
        }
    }
}

struct Lexer<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Lexer<'t> {
    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    fn error<T>(
        &self,
        reason: impl Into<std::borrow::Cow<'static, str>>,
    ) -> Result<T, ExpressionError> {
        Err(ExpressionError::new(self.at, reason))
    }

    fn skip_spaces(&mut self) {
        let rest = self.rest();
        let spaces = rest.len()
            - rest
                .trim_start_matches([' ', '\t', '\n', '\r', '\u{c}'])
                .len();
        self.at += spaces;
    }

    fn take_while(&mut self, is_part: impl Fn(char) -> bool) -> &'t str {
        let rest = self.rest();
        let length = rest.find(|one| !is_part(one)).unwrap_or(rest.len());
        self.at += length;
        &rest[..length]
    }

    fn token(&mut self) -> Result<Token<'t>, ExpressionError> {
        let rest = self.rest();
        let Some(first) = rest.chars().next() else {
            return Ok(Token::End);
        };
        let second = rest.as_bytes().get(1).copied();
        match first {
            '\'' | '"' => self.text(false),
            'r' | 'R' if matches!(second, Some(b'\'' | b'"')) => {
                self.at += 1;
                self.text(true)
            }
            'b' | 'B' if matches!(second, Some(b'\'' | b'"')) => {
                self.error("bytes are not supported")
            }
            '0'..='9' => self.number(),
            '.' if second.is_some_and(|byte| byte.is_ascii_digit()) => self.number(),
            'a'..='z' | 'A'..='Z' | '_' => {
                Ok(Token::Name(self.take_while(|one| {
                    one.is_ascii_alphanumeric() || one == '_'
                })))
            }
            _ => match SIGNS.iter().find(|sign| rest.starts_with(**sign)) {
                Some(&"{") => self.error("maps and messages are not supported"),
                Some(sign) => {
                    self.at += sign.len();
                    Ok(Token::Sign(sign))
                }
                None => self.error(format!("`{first}` is no part of an expression")),
            },
        }
    }

    fn number(&mut self) -> Result<Token<'t>, ExpressionError> {
        let start = self.at;
        let hex = self
            .rest()
            .strip_prefix("0x")
            .or(self.rest().strip_prefix("0X"));
        if hex.is_some() {
            self.at += 2;
            let digits = self.take_while(|one| one.is_ascii_hexdigit());
            let parsed = u64::from_str_radix(digits, 16).ok();
            return self.whole(start, parsed);
        }
        let digits = self.take_while(|one| one.is_ascii_digit());
        let rest = self.rest().as_bytes();
        let has_fraction =
            rest.first() == Some(&b'.') && rest.get(1).is_some_and(u8::is_ascii_digit);
        let has_exponent = matches!(rest.first(), Some(b'e' | b'E'));
        if !has_fraction && !has_exponent {
            return self.whole(start, digits.parse().ok());
        }
        if has_fraction {
            self.at += 1;
            self.take_while(|one| one.is_ascii_digit());
        }
        if self.rest().starts_with(['e', 'E']) {
            self.at += 1;
            if self.rest().starts_with(['+', '-']) {
                self.at += 1;
            }
            self.take_while(|one| one.is_ascii_digit());
        }
        match self.text[start..self.at].parse() {
            Ok(value) => Ok(Token::Double(value)),
            Err(_) => self.error("the number is not complete"),
        }
    }

    /// Finishes an integer, which `u` makes unsigned.
    fn whole(&mut self, start: usize, parsed: Option<u64>) -> Result<Token<'t>, ExpressionError> {
        let out_of_range = || {
            Err(ExpressionError::new(
                start,
                "the number has more than 64 bits",
            ))
        };
        let Some(value) = parsed else {
            return out_of_range();
        };
        if self.rest().starts_with(['u', 'U']) {
            self.at += 1;
            return Ok(Token::Uint(value));
        }
        match i64::try_from(value) {
            Ok(value) => Ok(Token::Int(value)),
            Err(_) if value == i64::MIN.unsigned_abs() => Ok(Token::IntMin),
            Err(_) => out_of_range(),
        }
    }

    /// Reads a text in quotes, raw or with escapes.
    fn text(&mut self, is_raw: bool) -> Result<Token<'t>, ExpressionError> {
        let start = self.at;
        let one = &self.text[start..=start];
        let three = one.repeat(3);
        let quote = match self.rest().starts_with(&*three) {
            true => &*three,
            false => one,
        };
        self.at += quote.len();
        let mut text = String::new();
        loop {
            let rest = self.rest();
            if rest.starts_with(quote) {
                self.at += quote.len();
                return Ok(Token::Text(text));
            }
            match rest.chars().next() {
                Some('\\') if !is_raw => self.escape(&mut text)?,
                Some('\n' | '\r') | None if quote.len() == 1 => {
                    return Err(ExpressionError::new(start, "the text is not closed"));
                }
                None => return Err(ExpressionError::new(start, "the text is not closed")),
                Some(character) => {
                    text.push(character);
                    self.at += character.len_utf8();
                }
            }
        }
    }

    fn escape(&mut self, text: &mut String) -> Result<(), ExpressionError> {
        let rest = &self.rest()[1..];
        let kind = rest.chars().next();
        let (digits, radix) = match kind {
            Some('x' | 'X') => (2, 16),
            Some('u') => (4, 16),
            Some('U') => (8, 16),
            Some('0'..='3') => (3, 8),
            _ => {
                text.push(match kind {
                    Some('a') => '\u{7}',
                    Some('b') => '\u{8}',
                    Some('f') => '\u{c}',
                    Some('n') => '\n',
                    Some('r') => '\r',
                    Some('t') => '\t',
                    Some('v') => '\u{b}',
                    Some(plain @ ('\\' | '?' | '"' | '\'' | '`')) => plain,
                    _ => return self.error("the escape is not known"),
                });
                self.at += 2;
                return Ok(());
            }
        };
        let start = usize::from(radix == 16);
        let value = rest.get(start..start + digits);
        let value = value.and_then(|value| u32::from_str_radix(value, radix).ok());
        match value.and_then(char::from_u32) {
            Some(character) => text.push(character),
            None => return self.error("the escape is not a character"),
        }
        self.at += 1 + start + digits;
        Ok(())
    }
}
