//! Request mirroring.

use crate::diagnostic::codes::istio::{VS044, VS093, VS094, VS095, VS096, VS316};
use crate::raw::{self, Field};
use crate::resource::Percent;
use crate::resource::istio::{Destination, Mirror};
use crate::validate::istio::shared;
use crate::validate::{Check, scalar};

use super::destination::destination;

/// Returns the destination and percentage of `mirror`, and the entries of `mirrors`.
pub(super) fn mirrors(
    raw: &raw::istio::HttpRoute,
    check: &mut Check<'_>,
) -> (Option<Destination>, Option<Percent>, Vec<Mirror>) {
    shared::exclude(
        [
            ("mirror", shared::block(&raw.mirror)),
            ("mirrors", shared::list(&raw.mirrors)),
        ],
        VS044,
        "write `mirror` as one more entry of `mirrors`",
        check,
    );
    let old = scalar::int_percent(&raw.mirror_percent, VS093, check);
    if raw.mirror_percent.is_set() {
        check
            .warning(
                VS094,
                raw.mirror_percent.span(),
                "mirrorPercent is deprecated",
            )
            .help("write `mirrorPercentage: {value: ...}`");
    }
    let share = if raw.mirror_percentage.is_set() {
        percentage(&raw.mirror_percentage, check)
    } else {
        old.map(|percent| Percent::new(f64::from(percent)))
    };
    let entries = scalar::items(&raw.mirrors, check);
    let several = entries
        .into_iter()
        .map(|(entry, raw)| several(entry, raw, check))
        .collect();
    (destination(&raw.mirror, check), share, several)
}

/// Returns the value of a percentage block; `None` if it is missing.
fn percentage(field: &Field<raw::istio::Percent>, check: &mut Check<'_>) -> Option<Percent> {
    let raw = field.get()?;
    if let Some(value) = raw.value.get()
        && (0.0..0.0001).contains(value)
        && *value > 0.0
    {
        let message =
            format!("{value} percent is less than one request in a million: none is copied");
        check
            .warning(VS316, raw.value.span(), message)
            .help("the smallest share above 0 is 0.0001 percent");
        return Some(Percent::default());
    }
    // A block without a value says 0, as a missing number does everywhere in this API.
    Some(scalar::percent(&raw.value, VS095, check).unwrap_or_default())
}

fn several(
    entry: &Field<raw::istio::HttpMirrorPolicy>,
    raw: &raw::istio::HttpMirrorPolicy,
    check: &mut Check<'_>,
) -> Mirror {
    if !raw.destination.is_set() {
        check
            .error(
                VS096,
                shared::location(&raw.destination, entry.span()),
                "mirror without destination",
            )
            .help("write `destination: {host: SERVICE}`");
    }
    Mirror {
        destination: destination(&raw.destination, check).unwrap_or_default(),
        percentage: percentage(&raw.percentage, check).unwrap_or(Percent::ALL),
        line: check.line(entry.span()),
    }
}
