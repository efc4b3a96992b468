//! Parser of escapes: a backslash followed by a character or a character class.

use super::groups;
use super::text::Text;

/// Parses the name of a character class after a backslash, such as `d` or `p{L}`, and returns the class. `None` if
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

/// Parses an escaped character. Its code is at most 0xFF, because each byte is a character.
pub(super) fn character(text: &mut Text<'_>) -> Result<char, String> {
    let start = text.at();
    let Some((_, c)) = text.next() else {
        return Err(
            "there is nothing after the last `\\`; write `\\\\` for the character".to_owned(),
        );
    };
    let code = match c {
        'a' => Some('\x07'),
        'f' => Some('\x0c'),
        'n' => Some('\n'),
        'r' => Some('\r'),
        't' => Some('\t'),
        'v' => Some('\x0b'),
        // One digit that is not 0 would be a back-reference.
        '1'..='7' if !text.peek().is_some_and(|c| c.is_digit(8)) => None,
        '0'..='7' => octal(c, text),
        'x' => hexadecimal(text),
        c if c.is_ascii() && !c.is_ascii_alphanumeric() => Some(c),
        _ => None,
    };
    code.ok_or_else(|| {
        // a character of several bytes is quoted as a whole
        while c >= '\u{c0}'
            && text
                .peek()
                .is_some_and(|c| ('\u{80}'..'\u{c0}').contains(&c))
        {
            text.next();
        }
        let written = text.since(start);
        match c {
            '1'..='9' => format!("RE2 has no back-references such as `\\{written}`"),
            'E' => "`\\E` ends nothing: there is no `\\Q` before it".to_owned(),
            'u' => "RE2 does not know `\\u`; write `\\x{41}` for U+0041".to_owned(),
            _ => format!("RE2 does not know `\\{written}`"),
        }
    })
}

/// Parses up to three octal digits.
fn octal(first: char, text: &mut Text<'_>) -> Option<char> {
    let mut code = first.to_digit(8).unwrap_or(0);
    for _ in 0..2 {
        let Some(digit) = text.peek().and_then(|c| c.to_digit(8)) else {
            break;
        };
        code = code * 8 + digit;
        text.next();
    }
    byte(code)
}

/// Returns the character for a byte value.
fn byte(code: u32) -> Option<char> {
    u8::try_from(code).ok().map(char::from)
}

/// Parses `41` or `{41}`.
fn hexadecimal(text: &mut Text<'_>) -> Option<char> {
    let digit = |text: &mut Text<'_>| text.next().and_then(|(_, c)| c.to_digit(16));
    if !text.eat('{') {
        return byte(digit(text)? * 16 + digit(text)?);
    }
    let mut code = digit(text)?;
    while !text.eat('}') {
        code = code * 16 + digit(text)?;
        byte(code)?;
    }
    byte(code)
}
