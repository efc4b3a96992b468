//! Numbers: ports, percents, counts.

use std::ops::RangeInclusive;

use crate::diagnostic::Code;
use crate::diagnostic::codes::common::CM016;
use crate::raw::Field;
use crate::resource::Percent;
use crate::validate::Check;

/// Returns a port, 1 to 65535.
pub fn port(field: &Field<i64>, check: &mut Check<'_>) -> Option<u16> {
    let value = *field.get()?;
    match u16::try_from(value) {
        Ok(port) if port > 0 => Some(port),
        _ => {
            check
                .error(
                    CM016,
                    field.span(),
                    format!("port {value} is outside 1..65535"),
                )
                .help("write a port from 1 to 65535");
            None
        }
    }
}

/// Returns a percentage: 0, or 0.0001 to 100.
pub fn percent(field: &Field<f64>, code: Code, check: &mut Check<'_>) -> Option<Percent> {
    let value = *field.get()?;
    if value == 0.0 || (0.0001..=100.0).contains(&value) {
        return Some(Percent::new(value));
    }
    if value > 0.0 && value < 0.0001 {
        let message = format!("{value} percent is less than one request in a million");
        check
            .error(code, field.span(), message)
            .help("the smallest share above 0 is 0.0001 percent");
    } else {
        let message = format!("{value} percent is outside 0..100");
        check
            .error(code, field.span(), message)
            .help("write a number from 0 to 100");
    }
    None
}

/// Returns an integer percentage, 0 to 100.
pub fn int_percent(field: &Field<i64>, code: Code, check: &mut Check<'_>) -> Option<u8> {
    let value = *field.get()?;
    match u8::try_from(value) {
        Ok(percent) if percent <= 100 => Some(percent),
        _ => {
            check
                .error(
                    code,
                    field.span(),
                    format!("{value} percent is outside 0..100"),
                )
                .help("write a number from 0 to 100");
            None
        }
    }
}

/// Returns a count of `what`, at least 0.
pub fn non_negative(
    field: &Field<i64>,
    what: &str,
    code: Code,
    check: &mut Check<'_>,
) -> Option<u32> {
    count_up_to(u32::MAX, field, what, code, check)
}

/// Returns a count of a field that is an `int32` in the API, at least 0.
pub fn int32(field: &Field<i64>, what: &str, code: Code, check: &mut Check<'_>) -> Option<u32> {
    count_up_to(i32::MAX.unsigned_abs(), field, what, code, check)
}

fn count_up_to(
    most: u32,
    field: &Field<i64>,
    what: &str,
    code: Code,
    check: &mut Check<'_>,
) -> Option<u32> {
    let value = *field.get()?;
    if value < 0 {
        check
            .error(code, field.span(), format!("negative {what}"))
            .help("write 0 or more");
        return None;
    }
    let count = u32::try_from(value).ok().filter(|count| *count <= most);
    if count.is_none() {
        check
            .error(code, field.span(), format!("{what} {value} is too large"))
            .help(format!("the largest is {most}"));
    }
    count
}

/// Returns a number within a range. `what` names it in messages, for example `status`.
pub fn in_range(
    field: &Field<i64>,
    range: RangeInclusive<i64>,
    what: &str,
    code: Code,
    check: &mut Check<'_>,
) -> Option<i64> {
    let value = *field.get()?;
    if range.contains(&value) {
        return Some(value);
    }
    let (least, most) = (range.start(), range.end());
    check
        .error(
            code,
            field.span(),
            format!("{what} {value} is outside {least}..{most}"),
        )
        .help(format!("write a {what} from {least} to {most}"));
    None
}
