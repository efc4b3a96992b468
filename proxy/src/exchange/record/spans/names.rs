//! Names of spans, and the route of a request.

use hyper::Method;

use super::kept::Spans;
use crate::snapshot::{Destination, Route};
use traffic::cluster::Split;
use traffic::route::UriMatch;
use traffic::trace::SpanNames;

/// A method for names and attributes: `HTTP` for one that is not known.
pub(super) fn method(method: &Method) -> &str {
    match method.as_str() {
        known @ ("CONNECT" | "DELETE" | "GET" | "HEAD" | "OPTIONS" | "PATCH" | "POST" | "PUT"
        | "TRACE") => known,
        _ => "HTTP",
    }
}

/// The route that a condition on the path describes, without values of a request: the text of the condition, and what
/// follows it.
fn route_of(uri: &UriMatch) -> Option<(&str, &'static str)> {
    match uri {
        UriMatch::Exact { value, .. } => Some((value, "")),
        UriMatch::Prefix { value, .. } => Some((value, "*")),
        UriMatch::Segments(value) => Some((value, "/*")),
        UriMatch::Any | UriMatch::Call(_) | UriMatch::Regex(_) => None,
    }
}

impl Spans {
    fn uri(&self) -> Option<&UriMatch> {
        let (host, rule) = self.found.as_ref()?;
        Some(&host.table.rule(*rule).conditions.uri)
    }

    pub(super) fn route(&self) -> Option<&Route> {
        let (host, rule) = self.found.as_ref()?;
        Some(host.route(*rule))
    }

    /// Parts of `http.route`.
    pub(super) fn http_route(&self) -> Option<[&str; 2]> {
        let (text, rest) = route_of(self.uri()?)?;
        Some([text, rest])
    }

    /// Passes the parts of the name of the server span to `write`.
    pub(super) fn server_name(&self, is_grpc: bool, port: u16, write: impl FnOnce(&[&[u8]])) {
        if self.settings.names == SpanNames::Istio {
            let name = match &self.head.operation {
                Some(operation) => operation.as_bytes().to_vec(),
                None => self.operation(port).into_bytes(),
            };
            return write(&[&name]);
        }
        if is_grpc {
            return write(&[self.call().unwrap_or("grpc").as_bytes()]);
        }
        let method = method(&self.head.method).as_bytes();
        match self.http_route() {
            Some([text, rest]) => write(&[method, b" ", text.as_bytes(), rest.as_bytes()]),
            None => write(&[method]),
        }
    }

    /// Passes the parts of the name of an attempt's span to `write`.
    pub(super) fn attempt_name(&self, is_grpc: bool, cluster: &str, write: impl FnOnce(&[&[u8]])) {
        if self.settings.names == SpanNames::Istio {
            return write(&[b"router ", cluster.as_bytes(), b" egress"]);
        }
        match is_grpc {
            true => write(&[self.call().unwrap_or("grpc").as_bytes()]),
            false => write(&[method(&self.head.method).as_bytes()]),
        }
    }

    /// `package.Service/Method`, if the rule names exactly that.
    fn call(&self) -> Option<&str> {
        match self.uri()? {
            UriMatch::Exact { value, .. } => value.strip_prefix('/'),
            _ => None,
        }
    }

    /// Name that Istio writes for the rule: the destination, or the VirtualService if there are several, and the path.
    fn operation(&self, port: u16) -> String {
        let path = match self.uri() {
            Some(UriMatch::Regex(pattern)) => pattern.written().to_owned(),
            Some(uri) => {
                route_of(uri).map_or("/*".to_owned(), |(text, rest)| format!("{text}{rest}"))
            }
            None => "/*".to_owned(),
        };
        let Some(route) = self.route() else {
            let host = String::from_utf8_lossy(self.authority());
            return format!("{host}{path}");
        };
        let destinations = || route.split.iter().flat_map(Split::entries);
        let mut all = destinations().map(|(_, one)| one);
        match (all.next(), all.next()) {
            (Some(only), None) => format!("{}{path}", address(only)),
            _ => {
                let object = &route.provenance.object;
                let name = object.rsplit('/').next().unwrap_or_default();
                format!("{name}:{port}{path}")
            }
        }
    }
}

/// Host and port of a destination, from the name of its cluster: `outbound|PORT|SUBSET|HOST`.
fn address(destination: &Destination) -> String {
    let mut parts = destination.name.split('|');
    match (parts.next(), parts.next(), parts.next(), parts.next()) {
        (_, Some(port), _, Some(host)) => format!("{host}:{port}"),
        _ => destination.name.to_string(),
    }
}
