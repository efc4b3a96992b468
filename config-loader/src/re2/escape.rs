//! What a backslash begins: a character, or a group of characters.

use super::groups;
use super::text::Text;

/// Largest code point.
pub(super) const CODE_MAX: u32 = 0x10_ffff;

/// Parses the name of a group of characters after a backslash, such as `d` or `p{L}`, and writes it as a class. None if
/// there is no such name.
pub(super) fn group(text: &mut Text<'_>) -> Result<Option<String>, String> {
    let Some(c) = text.peek() else {
        return Ok(None);
    };
    if let Some(perl) = groups::perl(c) {
        text.next();
        return Ok(Some(perl.to_owned()));
    }
    if !matches!(c, 'p' | 'P') {
        return Ok(None);
    }
    text.next();
    let rest = text.rest();
    let name = match rest.strip_prefix('{') {
        Some(inner) => inner.split_once('}').map(|(name, _)| name),
        None => rest.chars().next().map(|c| &rest[..c.len_utf8()]),
    };
    let Some(name) = name else {
        return Err(format!(
            "`\\{c}` needs the name of a Unicode category or script, as in `\\{c}{{Greek}}`"
        ));
    };
    text.skip(name.len() + if rest.starts_with('{') { 2 } else { 0 });
    let plain = name.strip_prefix('^').unwrap_or(name);
    let negated = (c == 'P') != (plain.len() < name.len());
    match groups::unicode(plain, negated) {
        Some(class) => Ok(Some(class)),
        None => Err(format!(
            "RE2 knows no Unicode category or script `{name}`; names are such as `L`, `Lu` or `Greek`"
        )),
    }
}

/// Parses a character after a backslash and returns its code point.
pub(super) fn character(text: &mut Text<'_>) -> Result<u32, String> {
    let start = text.at();
    let Some((_, c)) = text.next() else {
        return Err(
            "there is nothing after the last `\\`; write `\\\\` for the character".to_owned(),
        );
    };
    let code = match c {
        'a' => Some(0x07),
        'f' => Some(0x0c),
        'n' => Some(0x0a),
        'r' => Some(0x0d),
        't' => Some(0x09),
        'v' => Some(0x0b),
        // One digit that is not 0 would be a back-reference.
        '1'..='7' if !text.peek().is_some_and(|c| c.is_digit(8)) => None,
        '0'..='7' => Some(octal(c, text)),
        'x' => hexadecimal(text),
        c if c.is_ascii() && !c.is_ascii_alphanumeric() => Some(c.into()),
        _ => None,
    };
    code.ok_or_else(|| {
        let written = text.since(start);
        match c {
            '1'..='9' => format!("RE2 has no back-references such as `\\{written}`"),
            'E' => "`\\E` ends nothing: there is no `\\Q` before it".to_owned(),
            'u' => "RE2 does not know `\\u`; write `\\x{41}` for U+0041".to_owned(),
            _ => format!("RE2 does not know `\\{written}`"),
        }
    })
}

/// Up to three digits.
fn octal(first: char, text: &mut Text<'_>) -> u32 {
    let mut code = first.to_digit(8).unwrap_or(0);
    for _ in 0..2 {
        let Some(digit) = text.peek().and_then(|c| c.to_digit(8)) else {
            break;
        };
        code = code * 8 + digit;
        text.next();
    }
    code
}

/// `41` or `{41}`.
fn hexadecimal(text: &mut Text<'_>) -> Option<u32> {
    let digit = |text: &mut Text<'_>| text.next().and_then(|(_, c)| c.to_digit(16));
    if !text.eat('{') {
        return Some(digit(text)? * 16 + digit(text)?);
    }
    let mut code = digit(text)?;
    while !text.eat('}') {
        code = code * 16 + digit(text)?;
        if code > CODE_MAX {
            return None;
        }
    }
    Some(code)
}
