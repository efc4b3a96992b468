//! Content negotiation of the admin pages: `Accept` and `Accept-Encoding` (RFC 9110), as far as pages offer a choice.

use http::HeaderMap;
use http::header::{ACCEPT, ACCEPT_ENCODING, HeaderName};

/// Formats that the client prefers to the default, which is uncompressed text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Accepts {
    /// OpenMetrics instead of the text format of Prometheus.
    pub(super) open_metrics: bool,
    /// A compressed body.
    pub(super) gzip: bool,
    /// Server-sent events.
    pub(super) events: bool,
    /// HTML, named as such: a browser.
    pub(super) html: bool,
}

impl Accepts {
    /// Reads the preferences from the request headers.
    pub(super) fn of(headers: &HeaderMap) -> Self {
        Self {
            open_metrics: wants_open_metrics(headers),
            gzip: wants_gzip(headers),
            events: names(headers, "text/event-stream"),
            html: names(headers, "text/html"),
        }
    }
}

/// Returns whether the client accepts a type by its name.
fn names(headers: &HeaderMap, name: &str) -> bool {
    preferences(headers, ACCEPT)
        .any(|preference| preference.weight > 0 && preference.value.eq_ignore_ascii_case(name))
}

/// Returns whether the client prefers OpenMetrics. Of equal weights the first counts: Prometheus lists its preferred
/// format first.
fn wants_open_metrics(headers: &HeaderMap) -> bool {
    let (mut best, mut wanted) = (0, false);
    for preference in preferences(headers, ACCEPT) {
        let open_metrics = preference
            .value
            .eq_ignore_ascii_case("application/openmetrics-text");
        let text = ["text/plain", "text/*", "*/*"];
        let is_known = match preference.version {
            _ if !open_metrics => text
                .iter()
                .any(|name| preference.value.eq_ignore_ascii_case(name)),
            None => true,
            Some(version) => version == "1.0.0",
        };
        if is_known && preference.weight > best {
            (best, wanted) = (preference.weight, open_metrics);
        }
    }
    wanted
}

fn wants_gzip(headers: &HeaderMap) -> bool {
    let (mut gzip, mut any, mut plain) = (None, None, None);
    for preference in preferences(headers, ACCEPT_ENCODING) {
        let slot = match &*preference.value.to_ascii_lowercase() {
            "gzip" | "x-gzip" => &mut gzip,
            "*" => &mut any,
            "identity" => &mut plain,
            _ => continue,
        };
        slot.get_or_insert(preference.weight);
    }
    let gzip = gzip.or(any).unwrap_or(0);
    gzip > 0 && gzip >= plain.unwrap_or(0)
}

/// One element of an `Accept` or `Accept-Encoding` header.
struct Preference<'a> {
    value: &'a str,
    version: Option<&'a str>,
    /// Weight (`q`) in thousandths; 0 means not acceptable.
    weight: u16,
}

fn preferences(headers: &HeaderMap, name: HeaderName) -> impl Iterator<Item = Preference<'_>> {
    let lines = headers.get_all(name).into_iter();
    let lines = lines.filter_map(|line| line.to_str().ok());
    lines.flat_map(|line| line.split(',')).map(|element| {
        let mut parts = element.split(';').map(str::trim);
        let mut preference = Preference {
            value: parts.next().unwrap_or_default(),
            version: None,
            weight: 1_000,
        };
        for (name, value) in parts.filter_map(|part| part.split_once('=')) {
            match name {
                "q" | "Q" => preference.weight = weight(value),
                "version" => preference.version = Some(value.trim_matches('"')),
                _ => {}
            }
        }
        preference
    })
}

/// Parses a weight into thousandths. Text that is no number, and a negative number, are 0: not acceptable.
fn weight(text: &str) -> u16 {
    let weight: f32 = text.parse().unwrap_or(0.0);
    (weight.clamp(0.0, 1.0) * 1_000.0) as u16
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn accepts(name: HeaderName, value: &'static str) -> Accepts {
        Accepts::of(&HeaderMap::from_iter([(
            name,
            HeaderValue::from_static(value),
        )]))
    }

    #[test]
    fn format_with_the_highest_quality_is_chosen() {
        for (value, open_metrics) in [
            (
                // Prometheus 2 and 3
                "application/openmetrics-text;version=1.0.0;q=0.5,application/openmetrics-text;version=0.0.1;q=0.4,\
                 text/plain;version=1.0.0;q=0.3,text/plain;version=0.0.4;q=0.2,*/*;q=0.1",
                true,
            ),
            ("application/openmetrics-text", true),
            ("application/openmetrics-text; version=\"1.0.0\"", true),
            ("Application/OpenMetrics-Text, */*", true),
            ("*/*, application/openmetrics-text", false),
            (
                "text/plain;q=0.5, application/openmetrics-text;q=0.4",
                false,
            ),
            ("text/plain;q=0.4, application/openmetrics-text;q=0.5", true),
            ("application/openmetrics-text;version=2.0.0", false),
            ("application/openmetrics-text;q=0", false),
            ("application/openmetrics-text;q=x", false),
            ("text/html,application/xhtml+xml,*/*;q=0.8", false),
            ("", false),
        ] {
            assert_eq!(accepts(ACCEPT, value).open_metrics, open_metrics, "{value}");
        }
        assert_eq!(Accepts::of(&HeaderMap::new()), Accepts::default());
    }

    #[test]
    fn gzip_is_chosen_unless_rejected_or_lower_in_quality() {
        for (value, gzip) in [
            ("gzip", true),
            ("deflate, GZIP;q=0.5", true),
            ("br, *", true),
            ("*, gzip;q=0", false),
            ("gzip;q=0", false),
            ("gzip;q=0.000", false),
            ("identity, gzip;q=0.5", false),
            ("identity;q=0.5, gzip;q=0.5", true),
            ("br", false),
            ("", false),
        ] {
            assert_eq!(accepts(ACCEPT_ENCODING, value).gzip, gzip, "{value}");
        }
    }
}
