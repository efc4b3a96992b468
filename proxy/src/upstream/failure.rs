//! What a failed attempt means.

use std::error::Error as _;

use crate::error::{Error, Kind};

/// Classifies hyper's error for a request that got no response head.
pub fn before_response(error: hyper::Error) -> Error {
    Error::new(kind(&error)).with_source(error)
}

/// Classifies hyper's error for a response that broke off after its head.
pub fn after_response(error: hyper::Error) -> Error {
    let kind = match kind(&error) {
        Kind::UpstreamRefusedStream => Kind::UpstreamReset,
        kind => kind,
    };
    Error::new(kind).with_source(error)
}

fn kind(error: &hyper::Error) -> Kind {
    if let Some(h2) = find_h2(error) {
        return match h2.reason() {
            // streams above the last one that GOAWAY names were not processed (RFC 9113, section 6.8)
            Some(_) if h2.is_go_away() && h2.is_remote() => Kind::UpstreamRefusedStream,
            Some(h2::Reason::REFUSED_STREAM) if h2.is_reset() => Kind::UpstreamRefusedStream,
            Some(_) if h2.is_reset() && h2.is_remote() => Kind::UpstreamReset,
            Some(h2::Reason::PROTOCOL_ERROR) => Kind::UpstreamProtocol,
            _ => Kind::UpstreamClosed,
        };
    }
    if error.is_user() {
        // the only user of the connection is the body that we stream from downstream
        return Kind::DownstreamBody;
    }
    if error.is_parse() || error.is_parse_too_large() {
        return Kind::UpstreamProtocol;
    }
    Kind::UpstreamClosed
}

fn find_h2(error: &hyper::Error) -> Option<&h2::Error> {
    let mut cause = error.source();
    while let Some(current) = cause {
        if let Some(found) = current.downcast_ref() {
            return Some(found);
        }
        cause = current.source();
    }
    None
}
