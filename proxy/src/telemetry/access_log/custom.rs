//! Lines in formats of the user.

use traffic::filter::{LogFormat, LogValue, Template, TemplateContext};

use super::escape;

/// Appends a line and a line feed.
pub(super) fn line(out: &mut Vec<u8>, format: &LogFormat, context: &TemplateContext<'_>) {
    match &format.root {
        LogValue::Text(template) => text(out, template, context, format.omits_empty),
        root => {
            json(out, root, context, format.omits_empty);
        }
    }
    out.push(b'\n');
}

/// Appends a text.
pub(super) fn text(
    out: &mut Vec<u8>,
    template: &Template,
    context: &TemplateContext<'_>,
    omits_empty: bool,
) {
    template.write(out, context, |out, start, is_literal| {
        if !is_literal {
            or_dash(out, start, omits_empty);
            escaped(out, start, escape::text);
        }
    });
}

/// Appends a JSON value. Returns false, and appends nothing, for a missing one that is left out.
fn json(
    out: &mut Vec<u8>,
    value: &LogValue,
    context: &TemplateContext<'_>,
    omits_empty: bool,
) -> bool {
    match value {
        LogValue::List(list) => {
            out.push(b'[');
            for (number, one) in list.iter().enumerate() {
                if number > 0 {
                    out.push(b',');
                }
                json(out, one, context, false);
            }
            out.push(b']');
        }
        LogValue::Object(object) => {
            out.push(b'{');
            let mut is_first = true;
            for (key, one) in object {
                let start = out.len();
                if !is_first {
                    out.push(b',');
                }
                out.extend_from_slice(key.as_bytes());
                match json(out, one, context, omits_empty) {
                    true => is_first = false,
                    false => out.truncate(start),
                }
            }
            out.push(b'}');
        }
        LogValue::Plain(text) => out.extend_from_slice(text.as_bytes()),
        LogValue::Text(template) => return json_text(out, template, context, omits_empty),
    }
    true
}

fn json_text(
    out: &mut Vec<u8>,
    template: &Template,
    context: &TemplateContext<'_>,
    omits_empty: bool,
) -> bool {
    let is_value = template.is_operator();
    let is_quoted = !template.is_number();
    let start = out.len();
    if is_quoted {
        out.push(b'"');
    }
    let begin = out.len();
    template.write(out, context, |out, start, is_literal| {
        if !is_value && !is_literal {
            or_dash(out, start, omits_empty);
        }
        escaped(out, start, escape::json);
    });
    if is_value && out.len() == begin {
        out.truncate(start);
        if !omits_empty {
            out.extend_from_slice(b"null");
        }
        return !omits_empty;
    }
    if is_quoted {
        out.push(b'"');
    }
    true
}

/// Appends `-` for a missing value.
fn or_dash(out: &mut Vec<u8>, start: usize, omits_empty: bool) {
    if out.len() == start && !omits_empty {
        out.push(b'-');
    }
}

/// Escapes what was appended from a position on.
fn escaped(out: &mut Vec<u8>, start: usize, escape: fn(&mut Vec<u8>, &[u8])) {
    if !escape::is_plain(&out[start..]) {
        let value = out.split_off(start);
        escape(out, &value);
    }
}

#[cfg(test)]
mod tests;
