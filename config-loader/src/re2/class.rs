//! Parser of bracketed character classes.

use std::fmt::Write as _;

use super::escape;
use super::groups;
use super::text::Text;

/// Parses a class after its `[`, and returns it with character ranges only.
pub(super) fn bracket(text: &mut Text<'_>) -> Result<String, String> {
    let mut class = String::from("[");
    if text.eat('^') {
        class.push('^');
    }
    let mut is_first = true;
    loop {
        match text.peek() {
            None => {
                return Err(
                    "`[` is not closed; add `]`, or write `\\[` for the character".to_owned(),
                );
            }
            Some(']') if !is_first => {
                text.next();
                break;
            }
            Some(_) => is_first = false,
        }
        let rest = text.rest();
        if let Some(group) = named(rest, text)? {
            class.push_str(group);
            continue;
        }
        if rest.starts_with('\\') {
            let mut after = text.clone();
            after.next();
            if let Some(group) = escape::group(&mut after)? {
                *text = after;
                class.push_str(&group);
                continue;
            }
        }
        range(text, &mut class)?;
    }
    class.push(']');
    Ok(class)
}

/// Empty class, which matches no character.
pub(super) const NOTHING: &str = r"[^\x{0}-\x{10FFFF}]";

/// Parses a named class such as `[:alpha:]`, if there is one.
fn named(rest: &str, text: &mut Text<'_>) -> Result<Option<&'static str>, String> {
    let Some((name, _)) = rest
        .strip_prefix("[:")
        .and_then(|name| name.split_once(":]"))
    else {
        return Ok(None);
    };
    let Some(group) = groups::posix(name) else {
        return Err(format!(
            "RE2 knows no class `[:{name}:]`; names are such as `[:alpha:]` or `[:^digit:]`"
        ));
    };
    text.skip("[::]".len() + name.len());
    Ok(Some(group))
}

/// Parses a character or a range.
fn range(text: &mut Text<'_>, class: &mut String) -> Result<(), String> {
    let start = text.at();
    let low = character(text)?;
    let rest = text.rest();
    let high = match rest.starts_with('-') && rest.len() > 1 && !rest.starts_with("-]") {
        true => {
            text.next();
            character(text)?
        }
        false => low,
    };
    if high < low {
        let written = text.since(start);
        return Err(format!("the range `{written}` ends before it begins"));
    }
    write_end(low, class);
    if low < high {
        class.push('-');
        write_end(high, class);
    }
    Ok(())
}

fn character(text: &mut Text<'_>) -> Result<char, String> {
    match text.next() {
        Some((_, '\\')) => escape::character(text),
        Some((_, c)) => Ok(c),
        None => Err("`[` is not closed".to_owned()),
    }
}

/// Appends one end of a range.
fn write_end(c: char, class: &mut String) {
    match c.is_ascii_alphanumeric() {
        true => class.push(c),
        // Writing to a string cannot fail.
        false => _ = write!(class, r"\x{{{:X}}}", u32::from(c)),
    }
}
