//! Durations that people write, in the syntax of Go.

use std::time::Duration;

/// Parses `1h`, `1m30s`, `1.5s`, `10ms`.
pub fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("{text:?} is not a duration; write for example 30s or 1m30s");
    let mut rest = text;
    let mut total = 0.0;
    while !rest.is_empty() {
        let number = rest
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .ok_or_else(wrong)?;
        let value: f64 = rest[..number].parse().map_err(|_| wrong())?;
        rest = &rest[number..];
        let unit = rest
            .find(|c: char| c.is_ascii_digit())
            .unwrap_or(rest.len());
        total += value
            * match &rest[..unit] {
                "h" => 3_600.0,
                "m" => 60.0,
                "s" => 1.0,
                "ms" => 0.001,
                _ => return Err(wrong()),
            };
        rest = &rest[unit..];
    }
    if text.is_empty() {
        Err(wrong())
    } else {
        Duration::try_from_secs_f64(total).map_err(|_| wrong())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_parsed_in_go_syntax() {
        for (text, milliseconds) in [
            ("30s", 30_000),
            ("1m30s", 90_000),
            ("1.5s", 1_500),
            ("10ms", 10),
            ("0s", 0),
        ] {
            assert_eq!(
                duration(text).unwrap(),
                Duration::from_millis(milliseconds),
                "{text}"
            );
        }
        for wrong in ["", "30", "s", "1x", "1s2", "-1s"] {
            assert!(duration(wrong).is_err(), "{wrong:?}");
        }
    }
}
