//! Fault injection: delays and aborts.

use crate::diagnostic::codes::common::CM019;
use crate::diagnostic::codes::istio::{
    VS079, VS080, VS081, VS082, VS083, VS084, VS086, VS306, VS307, VS308, VS317,
};
use crate::diagnostic::suggest;
use crate::raw::{self, Field};
use crate::resource::Percent;
use crate::resource::istio::{Abort, AbortStatus, Delay, Fault, GrpcStatus};
use crate::validate::istio::shared;
use crate::validate::{Check, scalar};

/// Returns the fault injection of a rule.
pub(super) fn fault(
    field: &Field<raw::istio::HttpFaultInjection>,
    check: &mut Check<'_>,
) -> Option<Fault> {
    let raw = field.get()?;
    if !raw.delay.is_set() && !raw.abort.is_set() {
        check
            .error(VS079, field.span(), "fault without delay or abort")
            .help("write `delay` or `abort`, or remove `fault`");
    }
    Some(Fault {
        delay: delay(&raw.delay, check),
        abort: abort(&raw.abort, check),
        line: check.line(field.span()),
    })
}

fn delay(field: &Field<raw::istio::Delay>, check: &mut Check<'_>) -> Option<Delay> {
    let raw = field.get()?;
    let fixed = ("fixedDelay", shared::text_span(&raw.fixed_delay));
    let exponential = (
        "exponentialDelay",
        shared::text_span(&raw.exponential_delay),
    );
    scalar::at_most_one(&[fixed, exponential], CM019, check);
    if !exponential.1.is_none() {
        check
            .error(VS086, exponential.1, "exponentialDelay is not supported")
            .help("write `fixedDelay`");
    } else if fixed.1.is_none() {
        check
            .warning(
                VS307,
                field.span(),
                "the delay has no fixedDelay and does nothing",
            )
            .help("write for example `fixedDelay: 2s`");
    }
    let old = match raw.percent.get() {
        Some(percent) if *percent > 100 => {
            let message = format!("{percent} percent of the requests are all of them");
            check
                .warning(VS317, raw.percent.span(), message)
                .help("write a number from 0 to 100");
            Some(100)
        }
        _ => scalar::int_percent(&raw.percent, VS080, check),
    };
    if raw.percent.is_set() {
        check
            .warning(VS306, raw.percent.span(), "percent is deprecated")
            .help("write `percentage: {value: ...}`");
    }
    let percentage = if raw.percentage.is_set() {
        percentage(&raw.percentage, check)
    } else {
        Percent::new(f64::from(old.unwrap_or(0)))
    };
    if percentage == Percent::default() && !raw.percent.is_set() && !raw.percentage.is_set() {
        never(field, "delay", check);
    }
    let fixed = if fixed.1.is_none() {
        None
    } else {
        scalar::duration(&raw.fixed_delay, check)
    };
    fixed.map(|fixed| Delay { fixed, percentage })
}

fn percentage(field: &Field<raw::istio::Percent>, check: &mut Check<'_>) -> Percent {
    let value = field
        .get()
        .and_then(|raw| scalar::percent(&raw.value, VS080, check));
    value.unwrap_or_default()
}

fn never<T>(field: &Field<T>, what: &str, check: &mut Check<'_>) {
    check
        .warning(
            VS308,
            field.span(),
            format!("{what} without percentage never happens"),
        )
        .help("write `percentage: {value: 100}` for all requests");
}

fn abort(field: &Field<raw::istio::Abort>, check: &mut Check<'_>) -> Option<Abort> {
    let raw = field.get()?;
    let http = ("httpStatus", shared::block(&raw.http_status));
    let grpc = ("grpcStatus", shared::text_span(&raw.grpc_status));
    let http2 = ("http2Error", shared::text_span(&raw.http2_error));
    scalar::at_most_one(&[http, grpc, http2], CM019, check);
    if !http2.1.is_none() {
        check
            .error(VS083, http2.1, "http2Error is not supported")
            .help("write `httpStatus` or `grpcStatus`");
    } else if http.1.is_none() && grpc.1.is_none() {
        check
            .warning(
                VS084,
                field.span(),
                "the abort has no status and does nothing",
            )
            .help("write `httpStatus` or `grpcStatus`");
    }
    let percentage = if raw.percentage.is_set() {
        percentage(&raw.percentage, check)
    } else {
        never(field, "abort", check);
        Percent::default()
    };
    let http = scalar::in_range(&raw.http_status, 200..=599, "status", VS081, check);
    let http = http
        .and_then(|status| u16::try_from(status).ok())
        .map(AbortStatus::Http);
    let grpc = grpc_status(&raw.grpc_status, check).map(AbortStatus::Grpc);
    http.or(grpc).map(|status| Abort { status, percentage })
}

fn grpc_status(field: &Field<String>, check: &mut Check<'_>) -> Option<GrpcStatus> {
    let name = shared::text(field)?;
    let status = GrpcStatus::from_name(name);
    if status.is_none() {
        let found = check.error(
            VS082,
            field.span(),
            format!("`{name}` is not a gRPC status name"),
        );
        let number = name
            .parse::<usize>()
            .ok()
            .and_then(|number| GrpcStatus::NAMES.get(number).copied());
        match number.or_else(|| suggest::nearest(name, GrpcStatus::NAMES)) {
            Some(near) => found.help(format!("did you mean `{near}`?")),
            None => found.help("write for example `UNAVAILABLE`"),
        };
    }
    status
}
