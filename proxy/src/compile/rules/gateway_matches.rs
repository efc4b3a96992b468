//! Matches of HTTPRoutes and GRPCRoutes: their conditions, and their rank among each other.

use std::cmp::Reverse;

use config_loader::resource::Line;
use config_loader::resource::gateway_api::{GrpcMatch, HttpMatch, PathMatch};
use config_loader::resource::istio::{HeaderMatch, StringMatch};

use crate::compile::conditions::{header, pattern_of, text};
use traffic::route::{CallMatch, Conditions, QueryMatch, TextMatch, UriMatch};

/// Rank of a match among those of a host and other routes, in the order of its fields.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct MatchRank {
    path: PathRank,
    method: Reverse<bool>,
    headers: Reverse<usize>,
    query: Reverse<usize>,
}

/// Rank of a path. Within each kind, longer ones come first; the second length is that of the method of a gRPC call.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum PathRank {
    Exact(Reverse<usize>),
    Prefix(Reverse<(usize, usize)>),
    Regex(Reverse<usize>),
}

/// Match of a rule.
pub(super) trait RouteMatch {
    /// Whether requests match only by HTTP/2, which their backends get as well.
    const IS_HTTP2: bool;

    fn conditions(&self) -> Conditions;

    /// Returns the rank. Expressions may rank among prefixes, by their length.
    fn rank(&self, ranks_expressions_as_prefixes: bool) -> MatchRank;

    /// Condition on the path; `None` for a match of calls.
    fn path(&self) -> Option<&PathMatch>;

    /// Source line within the document.
    fn line(&self) -> Line;
}

impl RouteMatch for HttpMatch {
    const IS_HTTP2: bool = false;

    fn conditions(&self) -> Conditions {
        let query = self.query_params.iter().map(|query| QueryMatch {
            name: (*query.name).into(),
            value: text(&query.value),
        });
        Conditions {
            uri: match &self.path {
                PathMatch::Exact(path) => exact(path),
                PathMatch::Segments(path) if path.is_empty() => UriMatch::Any,
                PathMatch::Segments(path) => UriMatch::Segments((**path).into()),
                PathMatch::Regex(pattern) => UriMatch::Regex(pattern_of(pattern)),
            },
            method: self
                .method
                .as_deref()
                .map(|method| TextMatch::Exact(method.into())),
            headers: self.headers.iter().filter_map(joined).collect(),
            query: query.collect(),
            ..Conditions::default()
        }
    }

    fn path(&self) -> Option<&PathMatch> {
        Some(&self.path)
    }

    fn rank(&self, ranks_expressions_as_prefixes: bool) -> MatchRank {
        MatchRank {
            path: match &self.path {
                PathMatch::Regex(pattern) if ranks_expressions_as_prefixes => {
                    PathRank::Prefix(Reverse((pattern.source.len(), 0)))
                }
                PathMatch::Exact(path) => PathRank::Exact(Reverse(path.len())),
                PathMatch::Segments(path) => PathRank::Prefix(Reverse((path.len(), 0))),
                PathMatch::Regex(pattern) => PathRank::Regex(Reverse(pattern.source.len())),
            },
            method: Reverse(self.method.is_some()),
            headers: Reverse(self.headers.len()),
            query: Reverse(self.query_params.len()),
        }
    }

    fn line(&self) -> Line {
        self.line
    }
}

impl RouteMatch for GrpcMatch {
    const IS_HTTP2: bool = true;

    fn conditions(&self) -> Conditions {
        Conditions {
            uri: match (&self.service, &self.method) {
                (None, None) => UriMatch::Any,
                (Some(StringMatch::Exact(service)), None) => {
                    UriMatch::Segments(format!("/{service}").into())
                }
                (Some(StringMatch::Exact(service)), Some(StringMatch::Exact(method))) => {
                    exact(&format!("/{service}/{method}"))
                }
                (service, method) => {
                    let part = |part: &Option<StringMatch>| part.as_ref().map(text);
                    UriMatch::Call(Box::new(CallMatch::new(part(service), part(method))))
                }
            },
            is_http2: true,
            headers: self.headers.iter().filter_map(joined).collect(),
            ..Conditions::default()
        }
    }

    fn path(&self) -> Option<&PathMatch> {
        None
    }

    /// Returns the rank of an exact path for a service and a method as text, and else that of a prefix: more characters
    /// of the service come first, then more of the method.
    fn rank(&self, _: bool) -> MatchRank {
        let length = |part: &Option<StringMatch>| match part {
            Some(StringMatch::Exact(text) | StringMatch::Prefix(text)) => text.len(),
            Some(StringMatch::Regex(pattern)) => pattern.source.len(),
            Some(StringMatch::Present) | None => 0,
        };
        let (service, method) = (length(&self.service), length(&self.method));
        let is_exact = |part: &Option<StringMatch>| matches!(part, Some(StringMatch::Exact(_)));
        let slash = usize::from(self.service.is_some());
        MatchRank {
            path: match is_exact(&self.service) && is_exact(&self.method) {
                true => PathRank::Exact(Reverse(service + method + 2)),
                false => PathRank::Prefix(Reverse((service + slash, method))),
            },
            method: Reverse(false),
            headers: Reverse(self.headers.len()),
            query: Reverse(0),
        }
    }

    fn line(&self) -> Line {
        self.line
    }
}

/// Returns the condition on the lines of a header, joined.
fn joined(written: &HeaderMatch) -> Option<traffic::route::HeaderMatch> {
    let header = header(written)?;
    Some(traffic::route::HeaderMatch {
        key: header.key.joined(),
        ..header
    })
}

fn exact(path: &str) -> UriMatch {
    UriMatch::Exact {
        value: path.into(),
        ignore_case: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(service: &str, method: &str, headers: usize) -> MatchRank {
        let part = |text: &str| match text.strip_prefix('~') {
            None if text.is_empty() => None,
            None => Some(StringMatch::Exact(text.into())),
            Some(regex) => Some(StringMatch::Regex(
                config_loader::resource::istio::Pattern {
                    source: regex.into(),
                    regex: std::sync::Arc::new(regex::bytes::Regex::new(regex).unwrap()),
                },
            )),
        };
        let mut rank = GrpcMatch {
            service: part(service),
            method: part(method),
            headers: Vec::new(),
            line: Line(0),
        }
        .rank(false);
        rank.headers = Reverse(headers);
        rank
    }

    fn request(path: PathMatch, method: Option<&str>) -> MatchRank {
        HttpMatch {
            path,
            method: method.map(Into::into),
            headers: Vec::new(),
            query_params: Vec::new(),
            line: Line(0),
        }
        .rank(false)
    }

    #[test]
    fn matches_of_both_kinds_have_one_order() {
        let exact = |path: &str| PathMatch::Exact(path.into());
        let prefix = |path: &str| PathMatch::Segments(path.into());
        let order = [
            request(exact("/a.Longer/Echo"), None),
            request(exact("/a.B/Echo"), Some("POST")),
            call("a.B", "Echo", 1),
            call("a.B", "Echo", 0),
            request(prefix("/a.B/Echo"), None),
            call("~a.[BC]", "~Echo|Get", 0),
            call("a.Long", "", 0),
            call("a.B", "~Get|Put", 0),
            call("a.B", "~Get", 0),
            call("a.B", "", 2),
            call("a.B", "", 0),
            call("", "Echoes", 0),
            call("", "Echo", 0),
            call("", "", 1),
            call("", "", 0),
        ];
        for pair in order.windows(2) {
            assert!(pair[0] < pair[1], "{pair:?}");
        }
        let any = request(prefix(""), None);
        assert_eq!(any, call("", "", 0));
    }
}
