//! Steps of a rule before its request is forwarded: faults, CORS and limits.

use std::sync::Arc;

use config_loader::resource::istio::{
    AbortStatus, CorsPolicy, Fault as RawFault, HttpRule, StringMatch, UnmatchedPreflights,
};
use http::StatusCode;

use crate::compile::conditions;
use traffic::filter::cors::{self, Cors, Listed, OriginMatch};
use traffic::filter::fault::Share;
use traffic::filter::{Abort, Early, Fault, Preflights};
use traffic::limit::RouteLimits;

/// Compiles them; `None` if the rule has none, or if none can have an effect.
pub(in crate::compile) fn early(
    rule: &HttpRule,
    limits: Option<Arc<RouteLimits>>,
) -> Option<Box<Early>> {
    let fault = rule.fault.as_deref().map(fault);
    let early = Early {
        fault: fault.filter(|fault| !fault.is_empty()),
        cors: rule.cors.as_deref().map(cors),
        limits,
        ..Early::default()
    };
    (!early.is_empty()).then(|| Box::new(early))
}

fn fault(raw: &RawFault) -> Fault {
    let share =
        |percent: config_loader::resource::Percent| Share::per_million(percent.parts_per_million());
    Fault {
        delay: raw
            .delay
            .map(|delay| (delay.fixed, share(delay.percentage))),
        abort: raw
            .abort
            .map(|one| (abort(one.status), share(one.percentage))),
    }
}

fn abort(status: AbortStatus) -> Abort {
    match status {
        AbortStatus::Grpc(status) => Abort {
            status: StatusCode::OK,
            grpc: Some(status.0),
        },
        AbortStatus::Http(status) => Abort {
            status: StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
            grpc: None,
        },
    }
}

fn cors(raw: &CorsPolicy) -> Cors {
    Cors {
        origins: raw.allow_origins.iter().map(origin).collect(),
        methods: Listed::new(&raw.allow_methods),
        headers: Listed::new(&raw.allow_headers),
        expose: Listed::as_written(&raw.expose_headers),
        max_age: raw.max_age.map(cors::seconds),
        credentials: raw.allow_credentials,
        preflights: match raw.unmatched_preflights {
            UnmatchedPreflights::Ignore => Preflights::AnswerUnmatched,
            _ => Preflights::ForwardUnmatched,
        },
    }
}

fn origin(wanted: &StringMatch) -> OriginMatch {
    match wanted {
        StringMatch::Exact(star) if &**star == "*" => OriginMatch::Any,
        StringMatch::Exact(value) => OriginMatch::Exact((**value).into()),
        StringMatch::Prefix(value) => OriginMatch::Prefix((**value).into()),
        StringMatch::Present => OriginMatch::Any,
        StringMatch::Regex(pattern) => OriginMatch::Regex(conditions::pattern_of(pattern)),
    }
}
