//! Filter of a tap: which requests it shows.
//!
//! It is asked three times: by the head, at the begin of a request, so that nothing is kept of others; by the outcome, before
//! the rest is put together; and by all of it.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::time::Duration;

use http::HeaderMap;
use http::header::HeaderName;

use super::TappedRequest;
use super::pattern::{Pattern, any, one};
use crate::runtime::duration::duration;
use crate::telemetry::ResponseFlags;
use crate::telemetry::is_secret_header;
use traffic::route::normalize_host;

/// Maximum number of conditions of a filter.
const CONDITIONS_MAX: usize = 64;

const FIELDS: &str = "host, path, method, listener, header:NAME, status, flag, slower, rule, destination, cluster and endpoint";

/// Conditions, all of which must hold. Of several with the same name, one must.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TapFilter {
    host: Vec<Pattern>,
    path: Vec<Pattern>,
    method: Vec<Pattern>,
    listener: Vec<Pattern>,
    headers: Vec<(HeaderName, Vec<Pattern>)>,
    status: Vec<RangeInclusive<u16>>,
    flags: ResponseFlags,
    slower: Option<Duration>,
    rule: Vec<Pattern>,
    destination: Vec<Pattern>,
    cluster: Vec<Pattern>,
    endpoint: Vec<Pattern>,
    count: usize,
}

/// Head of a request.
pub struct TapHead<'a> {
    /// Authority.
    pub authority: &'a str,
    /// Path and query.
    pub path: &'a str,
    /// Method.
    pub method: &'a str,
    /// Headers of the client.
    pub headers: &'a HeaderMap,
    /// Address of the listener.
    pub listener: &'a dyn Display,
    /// Port of the listener.
    pub port: u16,
}

/// Outcome of a request.
#[derive(Clone, Copy, Debug)]
pub struct TapOutcome {
    /// Status; 0 for none.
    pub status: u16,
    /// Response flags.
    pub flags: ResponseFlags,
    /// Time from the begin to the end.
    pub duration: Duration,
}

impl TapFilter {
    /// Parses conditions such as `host=shop.example`.
    ///
    /// # Errors
    ///
    /// The first mistake.
    pub fn parse<'a>(conditions: impl IntoIterator<Item = &'a str>) -> Result<Self, String> {
        let mut filter = Self::default();
        for condition in conditions {
            let (name, value) = condition.split_once('=').ok_or_else(|| {
                format!("{condition:?} is not a filter; write NAME=VALUE, as in status=5xx")
            })?;
            filter.add(name, value)?;
        }
        Ok(filter)
    }

    /// Adds a condition.
    ///
    /// # Errors
    ///
    /// If no condition has this name, or the value is none of its values.
    pub fn add(&mut self, name: &str, value: &str) -> Result<(), String> {
        self.count += 1;
        if self.count > CONDITIONS_MAX {
            return Err(format!("a filter has at most {CONDITIONS_MAX} conditions"));
        }
        let pattern = Pattern::new(value);
        match name {
            "host" => self.host.push(Pattern::new(&value.to_ascii_lowercase())),
            "path" => self.path.push(pattern),
            "method" => {
                let methods = value.split(',').map(str::to_ascii_uppercase);
                self.method.extend(methods.map(|one| Pattern::new(&one)));
            }
            "listener" => self.listener.push(pattern),
            "status" => {
                for text in value.split(',') {
                    self.status.push(status(text)?);
                }
            }
            "flag" => {
                for text in value.split(',') {
                    let wrong = |_| {
                        format!("flag: {text:?} is no response flag; write for example UH or UF")
                    };
                    self.flags |= text.parse::<ResponseFlags>().map_err(wrong)?;
                }
            }
            "slower" => {
                self.slower = Some(duration(value).map_err(|error| format!("slower: {error}"))?)
            }
            "rule" => self.rule.push(pattern),
            "destination" => self.destination.push(pattern),
            "cluster" => self.cluster.push(pattern),
            "endpoint" => self.endpoint.push(pattern),
            _ => match name.strip_prefix("header:") {
                Some(header) => self.add_header(header, pattern)?,
                None => return Err(format!("unknown filter {name:?}; filters are {FIELDS}")),
            },
        }
        Ok(())
    }

    fn add_header(&mut self, name: &str, pattern: Pattern) -> Result<(), String> {
        let wrong = |_| format!("header: {name:?} is no name of a header");
        let name: HeaderName = name.parse().map_err(wrong)?;
        if is_secret_header(name.as_str()) {
            return Err(format!(
                "header: {name} holds credentials, which a filter would put into logs and histories; filter by another one"
            ));
        }
        match self.headers.iter_mut().find(|(other, _)| *other == name) {
            Some((_, patterns)) => patterns.push(pattern),
            None => self.headers.push((name, vec![pattern])),
        }
        Ok(())
    }

    /// Whether the end of a request decides as well as its head.
    pub(super) fn has_outcome(&self) -> bool {
        let patterns = [&self.rule, &self.destination, &self.cluster, &self.endpoint];
        !self.status.is_empty()
            || self.flags != ResponseFlags::NONE
            || self.slower.is_some()
            || patterns.iter().any(|patterns| !patterns.is_empty())
    }

    /// Whether the head of a request is as the filter says.
    pub(super) fn matches_head(&self, head: &TapHead<'_>) -> bool {
        one(&self.method, head.method)
            && (self.host.is_empty() || one(&self.host, &normalize_host(head.authority)))
            && self.matches_path(head.path)
            && self.matches_listener(head)
            && self.headers.iter().all(|(name, patterns)| {
                let values = head.headers.get_all(name).into_iter();
                let mut texts = values.filter_map(|value| value.to_str().ok());
                texts.any(|text| one(patterns, text))
            })
    }

    /// A pattern with a query is compared with path and query, and else with the path.
    fn matches_path(&self, path: &str) -> bool {
        let alone = path.split('?').next().unwrap_or_default();
        let is_met = |pattern: &Pattern| match pattern.has('?') {
            true => pattern.matches(path),
            false => pattern.matches(alone),
        };
        self.path.is_empty() || self.path.iter().any(is_met)
    }

    fn matches_listener(&self, head: &TapHead<'_>) -> bool {
        if self.listener.is_empty() {
            return true;
        }
        let (address, port) = (head.listener.to_string(), head.port.to_string());
        any(&self.listener, [&*address, &*port].into_iter())
    }

    /// Whether the outcome of a request is as the filter says, as far as it is known without its way.
    pub(super) fn may_match(&self, outcome: TapOutcome) -> bool {
        let is_status = |range: &RangeInclusive<u16>| range.contains(&outcome.status);
        let has_flag = outcome.flags.bits() & self.flags.bits() != 0;
        (self.status.is_empty() || self.status.iter().any(is_status))
            && (self.flags == ResponseFlags::NONE || has_flag)
            && self.slower.is_none_or(|time| outcome.duration >= time)
    }

    /// Whether the way of a request is as the filter says. Clusters and endpoints are those of all attempts.
    pub(super) fn matches(&self, request: &TappedRequest) -> bool {
        let rule = request.rule.iter();
        let rule = rule.flat_map(|rule| [&*rule.name, &*rule.object]);
        let destination = request.destination.iter();
        let destination = destination.flat_map(|one| [&*one.host, &*one.name]);
        let clusters = request.attempts.iter().map(|one| &*one.cluster);
        let clusters = clusters.flat_map(|key| [key, key.rsplit('/').next().unwrap_or(key)]);
        let endpoints = request.attempts.iter().map(|one| &*one.endpoint);
        any(&self.rule, rule)
            && any(&self.destination, destination)
            && any(&self.cluster, clusters)
            && any(&self.endpoint, endpoints)
    }
}

/// Parses `503`, `5xx` or `500-504`.
fn status(text: &str) -> Result<RangeInclusive<u16>, String> {
    let wrong = || format!("status: {text:?} is no status; write 503, 5xx or 500-504");
    if let Some(class) = text.strip_suffix("xx") {
        let class: u16 = class.parse().map_err(|_| wrong())?;
        return match class {
            1..=5 => Ok(class * 100..=class * 100 + 99),
            _ => Err(wrong()),
        };
    }
    let (from, to) = text.split_once('-').unwrap_or((text, text));
    let number = |text: &str| text.parse::<u16>().ok().filter(|status| *status < 600);
    match (number(from), number(to)) {
        (Some(from), Some(to)) if from <= to => Ok(from..=to),
        _ => Err(wrong()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{TappedAttempt, TappedDestination, TappedRule};
    use super::*;

    fn head<'a>(headers: &'a HeaderMap, path: &'a str) -> TapHead<'a> {
        TapHead {
            authority: "Shop.Example:8080",
            path,
            method: "GET",
            headers,
            listener: &"0.0.0.0:8080",
            port: 8080,
        }
    }

    #[test]
    fn heads_are_compared_by_all_names_and_any_value_of_a_name() {
        let headers: HeaderMap = [("x-user", "u7"), ("x-user", "u8")]
            .map(|(name, value)| (HeaderName::from_static(name), value.parse().unwrap()))
            .into_iter()
            .collect();
        for (conditions, expected) in [
            (&[][..], true),
            (&["host=shop.example"], true),
            (&["host=SHOP.*"], true),
            (&["host=other.example"], false),
            (&["host=other.example", "host=*.example"], true),
            (&["host=shop.example", "method=POST"], false),
            (&["method=post,get"], true),
            (&["path=/cart*"], true),
            (&["path=/cart"], true),
            (&["path=/cart?page=*"], true),
            (&["path=/cart?page=3"], false),
            (&["listener=8080"], true),
            (&["listener=0.0.0.0:*"], true),
            (&["listener=80"], false),
            (&["header:x-user=u8"], true),
            (&["header:X-User=u9"], false),
            (&["header:x-none=*"], false),
            (&["status=5xx"], true),
        ] {
            let filter = TapFilter::parse(conditions.iter().copied()).unwrap();
            let found = filter.matches_head(&head(&headers, "/cart?page=2"));
            assert_eq!(found, expected, "{conditions:?}");
        }
    }

    #[test]
    fn outcomes_are_compared_before_the_way_is_known() {
        let outcome = TapOutcome {
            status: 503,
            flags: ResponseFlags::UH | ResponseFlags::URX,
            duration: Duration::from_millis(200),
        };
        for (condition, expected) in [
            ("status=5xx", true),
            ("status=503", true),
            ("status=500-502,504", false),
            ("status=0", false),
            ("flag=UH", true),
            ("flag=UF,URX", true),
            ("flag=UF", false),
            ("slower=200ms", true),
            ("slower=1s", false),
        ] {
            let filter = TapFilter::parse([condition]).unwrap();
            assert!(filter.has_outcome());
            assert_eq!(filter.may_match(outcome), expected, "{condition}");
        }
    }

    #[test]
    fn clusters_and_endpoints_of_all_attempts_are_compared() {
        let attempt = |cluster: &str, endpoint: &str| TappedAttempt {
            cluster: cluster.to_owned(),
            endpoint: endpoint.to_owned(),
            ..TappedAttempt::default()
        };
        let request = TappedRequest {
            rule: Some(TappedRule {
                name: "testers".to_owned(),
                object: "VirtualService/shop/cart".to_owned(),
                ..TappedRule::default()
            }),
            destination: Some(TappedDestination {
                name: "outbound|80|v2|cart.internal".to_owned(),
                host: "cart.internal".to_owned(),
                ..TappedDestination::default()
            }),
            attempts: vec![
                attempt("eu/eu-1/prod/c1", "10.0.0.1:80"),
                attempt("c2", "10.0.0.2:80"),
            ],
            ..TappedRequest::default()
        };
        for (condition, expected) in [
            ("cluster=c1", true),
            ("cluster=eu/*", true),
            ("cluster=c2", true),
            ("cluster=c3", false),
            ("endpoint=10.0.0.2:*", true),
            ("rule=testers", true),
            ("rule=VirtualService/*/cart", true),
            ("rule=other", false),
            ("destination=cart.*", true),
            ("destination=outbound|80|v2|*", true),
        ] {
            let filter = TapFilter::parse([condition]).unwrap();
            assert_eq!(filter.matches(&request), expected, "{condition}");
        }
    }

    #[test]
    fn mistakes_are_named() {
        for (condition, part) in [
            ("hots=a", "filters are host, path"),
            ("status", "write NAME=VALUE"),
            ("status=6xx", "write 503, 5xx or 500-504"),
            ("status=504-500", "write 503"),
            ("flag=XX", "no response flag"),
            ("slower=200", "not a duration"),
            ("header:=x", "no name of a header"),
            ("header:Authorization=x", "holds credentials"),
            ("header:cookie=x", "holds credentials"),
            ("header:x-access-token=x", "holds credentials"),
        ] {
            let error = TapFilter::parse([condition]).unwrap_err();
            assert!(error.contains(part), "{condition}: {error}");
        }
        let many = vec!["status=1xx"; CONDITIONS_MAX + 1];
        assert!(TapFilter::parse(many).is_err());
    }
}
