//! Operators that only have a value in the access log.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use http::HeaderName;

use super::context::{Finished, TemplateContext};
use super::expression::{CompileRegex, Expression};
use super::header::{Header, first_line};
use super::needs::Needs;
use super::write::{print, print_some, split_path, word};
use crate::telemetry::{UNKNOWN, Workload};
use crate::trace::context::hex;

/// Header with the client's path, before a rewrite.
const ORIGINAL_PATH: HeaderName = HeaderName::from_static("x-envoy-original-path");

/// An operator that only has a value in the access log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum LogOperator {
    AccessLogType,
    Cel(Arc<Expression>),
    /// Time between two points, in the unit.
    CommonDuration(Point, Point, TimeUnit),
    DestinationCluster,
    DestinationTier,
    /// Path, with its query or without, before a rewrite or after it.
    Path {
        has_query: bool,
        is_original: bool,
    },
    /// Field of a peer, or all of them.
    Peer(PeerSide, Option<Box<str>>),
    QueryParameter(Box<str>),
    QueryParameters,
    ResponseTrailer(HeaderName, Option<HeaderName>),
    ResponseSending,
    /// Rule that was chosen.
    Rule,
    /// Cause of the decision to sample the request, or not to.
    SampledBy,
    /// Id of the server span.
    SpanId,
    TerminationDetails,
    TransportFailure,
    WithoutQuery(Header, Option<Header>),
}

/// Side of the other proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PeerSide {
    Downstream,
    Upstream,
}

/// Point in the course of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Point {
    Begin,
    End,
    RequestEnd,
    ResponseBegin,
}

/// Unit of a duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TimeUnit {
    Microseconds,
    Milliseconds,
    Nanoseconds,
}

type Problem = Cow<'static, str>;

impl LogOperator {
    /// Parses an operator; `None` if it is not one of these.
    pub(super) fn parse(
        name: &str,
        argument: &str,
        compile: CompileRegex<'_>,
    ) -> Result<Option<Self>, Problem> {
        Ok(Some(match name {
            "ACCESS_LOG_TYPE" => Self::AccessLogType,
            "CEL" => {
                let parsed = Expression::parse(argument, compile);
                let expression = parsed.map_err(|error| Problem::Owned(error.to_string()))?;
                Self::Cel(Arc::new(expression))
            }
            "COMMON_DURATION" => return common_duration(argument),
            "CONNECTION_TERMINATION_DETAILS" => Self::TerminationDetails,
            "FILTER_STATE" => return Ok(peer(argument)),
            "PATH" => path(argument)?,
            "QUERY_PARAM" if !argument.is_empty() => Self::QueryParameter(argument.into()),
            "QUERY_PARAM" => return Err("needs the name of a parameter".into()),
            "QUERY_PARAMS" => Self::QueryParameters,
            "REQ_WITHOUT_QUERY" => {
                let (first, second) = alternatives(argument);
                let header = |name: &str| Header::parse(name).ok_or(NO_HEADER);
                Self::WithoutQuery(header(first)?, second.map(header).transpose()?)
            }
            "RESPONSE_TRAILER" | "TRAILER" => {
                let (first, second) = alternatives(argument);
                let header = |name: &str| HeaderName::try_from(name).map_err(|_| NO_HEADER);
                Self::ResponseTrailer(header(first)?, second.map(header).transpose()?)
            }
            "RESPONSE_TX_DURATION" => Self::ResponseSending,
            "SPAN_ID" => Self::SpanId,
            "STRAIT_CLUSTER" => Self::DestinationCluster,
            "STRAIT_RULE" => Self::Rule,
            "STRAIT_SAMPLED_BY" => Self::SampledBy,
            "STRAIT_TIER" => Self::DestinationTier,
            "UPSTREAM_TRANSPORT_FAILURE_REASON" => Self::TransportFailure,
            _ => return Ok(None),
        }))
    }

    /// Appends the value.
    pub(super) fn print(&self, out: &mut Vec<u8>, context: &TemplateContext<'_>) {
        let Some(finished) = context.finished else {
            return;
        };
        let text = match self {
            Self::AccessLogType if finished.is_tcp => "TcpConnectionEnd",
            Self::AccessLogType => "DownstreamEnd",
            Self::Cel(expression) => {
                expression.print(out, context);
                return;
            }
            Self::CommonDuration(from, to, unit) => {
                return unit.print(out, between(*from, *to, context));
            }
            Self::DestinationCluster => finished.destination_cluster.unwrap_or_default(),
            Self::SpanId => {
                if let Some(trace) = finished.trace {
                    out.extend_from_slice(&hex::<8, 16>(trace.span_id));
                }
                return;
            }
            Self::DestinationTier => {
                if let Some(tier) = finished.destination_tier {
                    print(out, tier);
                }
                return;
            }
            Self::Path {
                has_query,
                is_original,
            } => {
                let path = match is_original {
                    // none of a request that keeps its path, as in Envoy
                    true => first_line(context.request_headers, &ORIGINAL_PATH).unwrap_or_default(),
                    false => context.path.as_bytes(),
                };
                return out.extend_from_slice(if *has_query { path } else { before_query(path) });
            }
            Self::Peer(side, field) => return print_peer(out, side.of(finished), field.as_deref()),
            Self::QueryParameter(name) => parameter(split_path(context.path).1, name),
            Self::QueryParameters => split_path(context.path).1,
            Self::ResponseSending => {
                return print_some(out, between(Point::ResponseBegin, Point::End, context));
            }
            Self::ResponseTrailer(first, second) => {
                let find = |name: &HeaderName| first_line(finished.response_trailers, name);
                let value = find(first).or_else(|| find(second.as_ref()?));
                return out.extend_from_slice(value.unwrap_or_default());
            }
            Self::Rule => finished.rule.unwrap_or_default(),
            Self::SampledBy => finished.trace.map_or("", |trace| trace.decided_by.as_str()),
            Self::TerminationDetails => {
                return word(out, finished.termination_details.unwrap_or_default());
            }
            Self::TransportFailure => finished.transport_failure.unwrap_or_default(),
            Self::WithoutQuery(first, second) => {
                let find = |header: &Header| header.find(context);
                let value = find(first).or_else(|| find(second.as_ref()?));
                return out.extend_from_slice(before_query(value.unwrap_or_default()));
            }
        };
        out.extend_from_slice(text.as_bytes());
    }

    /// Whether the value is a number.
    pub(super) fn is_number(&self) -> bool {
        matches!(
            self,
            Self::CommonDuration(..) | Self::DestinationTier | Self::ResponseSending
        )
    }

    pub(super) fn add_needs(&self, needs: &mut Needs) {
        match self {
            Self::Cel(expression) => expression.add_needs(needs),
            Self::Path { .. } => needs.request(ORIGINAL_PATH),
            Self::ResponseTrailer(first, second) => {
                needs.trailer(first.clone());
                if let Some(second) = second {
                    needs.trailer(second.clone());
                }
            }
            Self::WithoutQuery(first, second) => {
                first.add_needs(needs);
                if let Some(second) = second {
                    second.add_needs(needs);
                }
            }
            _ => {}
        }
    }
}

const NO_HEADER: &str = "the argument is not a header name";

fn alternatives(argument: &str) -> (&str, Option<&str>) {
    match argument.split_once('?') {
        Some((first, second)) => (first, Some(second)),
        None => (argument, None),
    }
}

fn path(argument: &str) -> Result<LogOperator, Problem> {
    let (query, form) = argument.split_once(':').unwrap_or((argument, ""));
    let has_query = match query {
        "" | "WQ" => true,
        "NQ" => false,
        _ => return Err("takes `WQ` or `NQ`, then `:ORIG` or `:PATH`".into()),
    };
    match form {
        "" | "ORIG" | "PATH" => Ok(LogOperator::Path {
            has_query,
            is_original: form == "ORIG",
        }),
        _ => Err("takes `WQ` or `NQ`, then `:ORIG` or `:PATH`".into()),
    }
}

/// Parses the name of a state of Envoy's filters: those with the peers are known.
fn peer(argument: &str) -> Option<LogOperator> {
    let mut parts = argument.split(':');
    let side = match parts.next()? {
        "downstream_peer" => PeerSide::Downstream,
        "upstream_peer" => PeerSide::Upstream,
        _ => return None,
    };
    let field = match (parts.next(), parts.next()) {
        (None | Some("PLAIN" | "TYPED"), None) => None,
        (Some("FIELD"), Some(field)) => Some(field.into()),
        _ => return None,
    };
    Some(LogOperator::Peer(side, field))
}

fn common_duration(argument: &str) -> Result<Option<LogOperator>, Problem> {
    let wrong = || Problem::Borrowed("takes two points and a unit, as in `DS_RX_BEG:DS_TX_END:ms`");
    let parts: Vec<&str> = argument.split(':').collect();
    let [from, to, unit] = parts[..] else {
        return Err(wrong());
    };
    let unit = match unit {
        "ms" => TimeUnit::Milliseconds,
        "us" => TimeUnit::Microseconds,
        "ns" => TimeUnit::Nanoseconds,
        _ => return Err(wrong()),
    };
    let (Some(from), Some(to)) = (Point::parse(from), Point::parse(to)) else {
        return Ok(None);
    };
    Ok(Some(LogOperator::CommonDuration(from, to, unit)))
}

impl Point {
    /// Returns a point that is known; `None` for one of Envoy's others.
    fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "DS_RX_BEG" => Self::Begin,
            // the proxy forwards request bytes as soon as it reads them
            "DS_RX_END" | "US_TX_END" => Self::RequestEnd,
            "US_RX_BEG" | "DS_TX_BEG" => Self::ResponseBegin,
            "US_RX_END" | "DS_TX_END" => Self::End,
            _ => return None,
        })
    }

    fn time(self, context: &TemplateContext<'_>) -> Option<Duration> {
        match self {
            Self::Begin => Some(Duration::ZERO),
            Self::End => Some(context.duration),
            Self::RequestEnd => context.request_duration,
            Self::ResponseBegin => context.response_duration,
        }
    }
}

fn between(from: Point, to: Point, context: &TemplateContext<'_>) -> Option<Duration> {
    to.time(context)?.checked_sub(from.time(context)?)
}

impl TimeUnit {
    fn print(self, out: &mut Vec<u8>, duration: Option<Duration>) {
        if let Some(duration) = duration {
            match self {
                Self::Microseconds => print(out, duration.as_micros()),
                Self::Milliseconds => print(out, duration.as_millis()),
                Self::Nanoseconds => print(out, duration.as_nanos()),
            }
        }
    }
}

impl PeerSide {
    fn of<'a>(self, finished: &Finished<'a>) -> Option<&'a Workload> {
        match self {
            Self::Downstream => finished.downstream_peer,
            Self::Upstream => finished.upstream_peer,
        }
    }
}

/// Appends a field of a peer, or all that are known.
fn print_peer(out: &mut Vec<u8>, peer: Option<&Workload>, field: Option<&str>) {
    let Some(peer) = peer else {
        return;
    };
    let fields: [(&str, &str); 7] = [
        ("workload", &peer.name),
        ("namespace", &peer.namespace),
        ("cluster", &peer.cluster),
        ("service", &peer.canonical_service),
        ("revision", &peer.canonical_revision),
        ("app", &peer.app),
        ("version", &peer.version),
    ];
    let mut known = fields.into_iter().filter(|(_, value)| *value != UNKNOWN);
    match field {
        Some("name") => print_peer(out, Some(peer), Some("workload")),
        Some(field) => {
            let found = known.find(|(name, _)| *name == field);
            out.extend_from_slice(found.map_or(&[], |(_, value)| value.as_bytes()));
        }
        None => {
            let start = out.len();
            for (name, value) in known {
                if out.len() > start {
                    out.push(b',');
                }
                out.extend_from_slice(name.as_bytes());
                out.push(b'=');
                out.extend_from_slice(value.as_bytes());
            }
        }
    }
}

/// Value of a parameter of a query, as it was sent.
fn parameter<'a>(query: &'a str, name: &str) -> &'a str {
    let mut all = query
        .split('&')
        .map(|one| one.split_once('=').unwrap_or((one, "")));
    all.find(|(key, _)| *key == name)
        .map_or("", |(_, value)| value)
}

fn before_query(path: &[u8]) -> &[u8] {
    path.split(|byte| *byte == b'?').next().unwrap_or_default()
}
