//! Outlier detection outcomes of attempts.

use http::HeaderMap;
use hyper::Response;

use traffic::cluster::Outcome;
use traffic::error::{Error, Kind};

/// The outcome of an attempt; `None` for errors that the endpoint did not cause.
pub fn outcome<B>(attempted: &Result<Response<B>, Error>, grpc: bool) -> Option<Outcome> {
    match attempted {
        Ok(response) => {
            let status = response.status().as_u16();
            let grpc_status = || grpc_status(response.headers());
            let status = if grpc {
                grpc_status().unwrap_or(status)
            } else {
                status
            };
            Some(Outcome::Status(status))
        }
        Err(error) => of_failure(error.kind()),
    }
}

/// The outcome of a failure; `None` if the endpoint did not cause it.
pub fn of_failure(kind: Kind) -> Option<Outcome> {
    match kind {
        Kind::ConnectFailed
        | Kind::UpstreamClosed
        | Kind::UpstreamProtocol
        | Kind::UpstreamRefusedStream
        | Kind::UpstreamReset => Some(Outcome::Failed),
        Kind::ConnectTimeout | Kind::RequestTimeout | Kind::AttemptTimeout => {
            Some(Outcome::TimedOut)
        }
        Kind::DownstreamBody
        | Kind::DownstreamTimeout
        | Kind::InvalidBackend
        | Kind::NoCluster
        | Kind::NoHealthyUpstream
        | Kind::NoOriginalDestination
        | Kind::Overflow => None,
    }
}

/// HTTP status for the gRPC status of a response without a body, as in Envoy.
fn grpc_status(headers: &HeaderMap) -> Option<u16> {
    let status = headers.get("grpc-status")?.to_str().ok()?;
    Some(match status.parse::<u8>().ok()? {
        0 => 200,
        1 => 499,
        3 | 9 | 11 => 400,
        4 => 504,
        5 => 404,
        6 | 10 => 409,
        7 => 403,
        8 => 429,
        12 => 501,
        14 => 503,
        16 => 401,
        _ => 500,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grpc_errors_without_a_body_are_errors() {
        for (status, grpc, outcome) in [
            ("14", true, 503),
            ("4", true, 504),
            ("13", true, 500),
            ("12", true, 501),
            ("0", true, 200),
            ("99", true, 500),
            ("14", false, 200),
        ] {
            let mut response = Response::new(());
            let value = status.parse().unwrap();
            response.headers_mut().insert("grpc-status", value);
            let found = super::outcome(&Ok(response), grpc);
            assert_eq!(found, Some(Outcome::Status(outcome)), "{status} {grpc}");
        }
        let failed = |kind| super::outcome::<()>(&Err(Error::new(kind)), false);
        assert_eq!(failed(Kind::ConnectFailed), Some(Outcome::Failed));
        assert_eq!(failed(Kind::AttemptTimeout), Some(Outcome::TimedOut));
        assert_eq!(failed(Kind::Overflow), None);
    }
}
