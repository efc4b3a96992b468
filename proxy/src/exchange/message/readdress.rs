//! Request target and Host in the form of the upstream's protocol.

use http::uri::{Authority, PathAndQuery, Scheme};
use hyper::header::{HOST, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Uri, Version};

use crate::exchange::message::headers::X_STRAIT_FROM_CLUSTER;
use crate::upstream::Protocol;
use traffic::cluster::RemoteGateway;
use traffic::filter;

/// Converts the request for the upstream's protocol: origin form and Host for HTTP/1 (RFC 9112, section 3.2.1), scheme
/// and authority in the target for HTTP/2 (RFC 9113, section 8.3.1).
pub fn readdress(
    parts: &mut Parts,
    protocol: Protocol,
    scheme: filter::Scheme,
    authority: Option<HeaderValue>,
) {
    match protocol {
        Protocol::Http1 => {
            parts.version = Version::HTTP_11;
            if parts.uri.authority().is_some() {
                let path = parts.uri.path_and_query().cloned();
                parts.uri = path.map_or_else(Uri::default, Uri::from);
            }
            if let Some(authority) = authority {
                parts.headers.insert(HOST, authority);
            }
        }
        Protocol::Http2 => {
            parts.version = Version::HTTP_2;
            let host = parts.headers.remove(HOST);
            let authority = authority.or(host);
            let mut uri = std::mem::take(&mut parts.uri).into_parts();
            uri.scheme = Some(match scheme {
                filter::Scheme::Http => Scheme::HTTP,
                filter::Scheme::Https => Scheme::HTTPS,
            });
            uri.authority = authority.and_then(|value| Authority::try_from(value.as_bytes()).ok());
            if uri.path_and_query.is_none() {
                uri.path_and_query = Some(PathAndQuery::from_static("/"));
            }
            parts.uri = Uri::from_parts(uri).unwrap_or_default();
        }
    }
}

/// Prepares the request for the gateway of another cluster: adds the header with its origin, and the gateway's path
/// prefix.
pub fn by_gateway(parts: &mut Parts, hop: &RemoteGateway) {
    if let Some(from) = &hop.from {
        parts.headers.insert(X_STRAIT_FROM_CLUSTER, from.clone());
    }
    if !hop.path_prefix.is_empty() {
        prefix(parts, &hop.path_prefix);
    }
}

/// Adds a prefix to the path, except for CONNECT and `*`, which have none.
fn prefix(parts: &mut Parts, prefix: &str) {
    let path = parts.uri.path_and_query().map(PathAndQuery::as_str);
    let Some(path) = path.filter(|path| path.starts_with('/')) else {
        return;
    };
    let Ok(whole) = PathAndQuery::try_from(format!("{prefix}{path}")) else {
        return;
    };
    let mut uri = std::mem::take(&mut parts.uri).into_parts();
    uri.path_and_query = Some(whole);
    parts.uri = Uri::from_parts(uri).unwrap_or_default();
}
