//! `outlierDetection`.

use crate::diagnostic::codes::istio::{DR132, DR133, DR134, DR135, DR136, DR305};
use crate::raw::{self, Field};
use crate::resource::istio::OutlierDetection;
use crate::validate::istio::shared;
use crate::validate::{Check, scalar};

/// Returns the outlier detection settings.
pub(in crate::validate::istio) fn outlier_detection(
    field: &Field<raw::istio::OutlierDetection>,
    check: &mut Check<'_>,
) -> Option<OutlierDetection> {
    let raw = field.get()?;
    let default = OutlierDetection::default();
    let split = shared::flag(&raw.split_external_local_origin_errors);
    if raw.consecutive_errors.is_set() {
        check
            .warning(
                DR135,
                raw.consecutive_errors.span(),
                "consecutiveErrors is deprecated and has no effect",
            )
            .help("write `consecutive5xxErrors` or `consecutiveGatewayErrors`");
    }
    let local = &raw.consecutive_local_origin_failures;
    if !split && local.get().is_some_and(|count| *count > 0) {
        check
            .error(DR132, local.span(), "consecutiveLocalOriginFailures needs splitExternalLocalOriginErrors")
            .help("write `splitExternalLocalOriginErrors: true`, or remove it: without it such failures count as 5xx");
    }
    let mut count =
        |field: &Field<i64>, name: &str| scalar::non_negative(field, name, DR305, check);
    let all = count(&raw.consecutive_5xx_errors, "consecutive5xxErrors");
    let gateway = count(&raw.consecutive_gateway_errors, "consecutiveGatewayErrors");
    let local = count(local, "consecutiveLocalOriginFailures");
    let most = scalar::int_percent(&raw.max_ejection_percent, DR133, check);
    let least = scalar::int_percent(&raw.min_health_percent, DR134, check);
    Some(OutlierDetection {
        consecutive_5xx_errors: all.unwrap_or(default.consecutive_5xx_errors),
        consecutive_gateway_errors: gateway.unwrap_or(default.consecutive_gateway_errors),
        consecutive_local_origin_failures: local
            .unwrap_or(default.consecutive_local_origin_failures),
        split_external_local_origin_errors: split,
        interval: scalar::duration(&raw.interval, check).unwrap_or(default.interval),
        base_ejection_time: scalar::duration(&raw.base_ejection_time, check)
            .unwrap_or(default.base_ejection_time),
        // 0 is what a missing number means.
        ejection_percent_max: most
            .filter(|most| *most > 0)
            .unwrap_or(default.ejection_percent_max),
        health_percent_min: least.unwrap_or(default.health_percent_min),
        http_error_codes: http_error_codes(&raw.outlier_detection_http_error_codes, check),
        line: check.line(shared::location(&raw.max_ejection_percent, field.span())),
    })
}

fn http_error_codes(field: &Field<Vec<Field<i64>>>, check: &mut Check<'_>) -> Vec<u16> {
    let mut codes = Vec::new();
    for (entry, _) in scalar::items(field, check) {
        let status = scalar::in_range(entry, 100..=599, "status", DR136, check);
        codes.extend(status.and_then(|status| u16::try_from(status).ok()));
    }
    codes.sort_unstable();
    codes.dedup();
    codes
}
