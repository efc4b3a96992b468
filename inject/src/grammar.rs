//! Grammars of values in settings and annotations.

use ipnet::IpNet;
use serde_json::Value;

/// Fix of a list of ports.
pub(crate) const PORTS: &str = "write ports and ranges, such as 80,8000-8999";

/// Fix of a list of IP ranges.
pub(crate) const RANGES: &str = "write `*`, or IP ranges, such as 10.0.0.0/8,fd00::/8";

/// Checks a list of ports and ranges of ports, or `*` where it is possible.
pub(crate) fn ports(text: &str, star: bool) -> Result<(), &'static str> {
    let is_right = star && text.trim() == "*" || list(text).all(|item| port_range(item).is_some());
    is_right.then_some(()).ok_or(PORTS)
}

/// Checks a list of IP ranges, or `*` where it is possible.
pub(crate) fn ranges(text: &str, star: bool) -> Result<(), &'static str> {
    let is_right =
        star && text.trim() == "*" || list(text).all(|item| item.parse::<IpNet>().is_ok());
    is_right.then_some(()).ok_or(RANGES)
}

/// Returns the items of a list with commas.
pub(crate) fn list(text: &str) -> impl Iterator<Item = &str> {
    text.split(',')
        .map(str::trim)
        .filter(|item| !item.is_empty())
}

/// Parses a port, or a range of ports.
pub(crate) fn port_range(text: &str) -> Option<(u16, u16)> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let port = |text: &str| text.parse().ok().filter(|port: &u16| *port > 0);
    let (first, last) = (port(first)?, port(last)?);
    (first <= last).then_some((first, last))
}

/// Returns whether a list of ports and ranges has the port.
pub(crate) fn has_port(text: &str, port: u16) -> bool {
    let mut ranges = list(text).filter_map(port_range);
    text.trim() == "*" || ranges.any(|(first, last)| (first..=last).contains(&port))
}

/// Checks the value of a label.
pub(crate) fn label_value(text: &str) -> Result<(), &'static str> {
    let is_inner = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let ends = |text: &str| {
        let bytes = text.as_bytes();
        let both = [bytes.first(), bytes.last()].into_iter().flatten();
        both.clone().count() == 2 && both.copied().all(|byte| byte.is_ascii_alphanumeric())
    };
    let is_right = text.len() <= 63 && ends(text) && text.bytes().all(is_inner);
    is_right
        .then_some(())
        .ok_or("write the value of a label, such as strait")
}

/// Checks resources of a container.
pub(crate) fn resources(value: &Value) -> Result<(), &'static str> {
    let lists = ["requests", "limits"].map(|key| value[key].as_object());
    let mut values = lists.into_iter().flatten().flat_map(|map| map.values());
    let is_right = values.all(|value| value.as_str().is_some_and(|text| quantity(text).is_some()));
    is_right
        .then_some(())
        .ok_or("write quantities, such as cpu: 100m and memory: 64Mi")
}

/// Parses a quantity of Kubernetes.
pub(crate) fn quantity(text: &str) -> Option<f64> {
    const UNITS: [(&str, f64); 13] = [
        ("Ki", 1024.0),
        ("Mi", 1_048_576.0),
        ("Gi", 1_073_741_824.0),
        ("Ti", 1_099_511_627_776.0),
        ("Pi", 1_125_899_906_842_624.0),
        ("m", 1e-3),
        ("k", 1e3),
        ("M", 1e6),
        ("G", 1e9),
        ("T", 1e12),
        ("P", 1e15),
        ("E", 1e18),
        ("", 1.0),
    ];
    UNITS.iter().find_map(|(unit, factor)| {
        let number = text.strip_suffix(unit)?;
        let is_number = number
            .bytes()
            .all(|byte| byte.is_ascii_digit() || byte == b'.');
        let number: f64 = number.parse().ok().filter(|_| is_number)?;
        Some(number * factor)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_ports_and_ranges_are_checked() {
        for (text, is_right) in [
            ("", true),
            ("80, 8000-8999", true),
            ("*", false),
            ("0", false),
            ("9-8", false),
            ("65536", false),
            ("a", false),
        ] {
            assert_eq!(ports(text, false).is_ok(), is_right, "{text}");
        }
        assert!(ports("*", true).is_ok());
        assert!(has_port("80,8000-8999", 8500) && !has_port("80", 81) && has_port("*", 1));
        assert!(ranges("10.0.0.0/8, fd00::/8", false).is_ok() && ranges("10.0.0.1", true).is_err());
    }

    #[test]
    fn quantities_have_units() {
        for (text, value) in [
            ("50m", Some(0.05)),
            ("2", Some(2.0)),
            ("1.5", Some(1.5)),
            ("32Mi", Some(33_554_432.0)),
            ("", None),
            ("1x", None),
            ("-1", None),
            ("inf", None),
        ] {
            assert_eq!(quantity(text), value, "{text}");
        }
    }
}
