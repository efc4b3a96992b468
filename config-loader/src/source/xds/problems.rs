//! Diagnostics about xDS servers.

use tonic::{Code, Status};

use crate::diagnostic::codes::common::{SRC007, SRC008, SRC010, SRC011};
use crate::diagnostic::{Diagnostic, Severity};
use crate::source::errors::SourceError;
use crate::source::stream::causes::{certificate_help, plain, with_causes};
use crate::source::stream::report::Key;
use crate::source::stream::stall::{Stalled, is_caused_by};

/// Returns a diagnostic: the stream ended, or could not be opened.
pub(super) fn ended(server: &str, status: &Status, is_settled: bool) -> Diagnostic {
    match status.code() {
        Code::Unauthenticated | Code::PermissionDenied => match is_closed_generator(status) {
            true => closed_generator(server, status),
            false => unauthorized(server, status),
        },
        _ => unreachable(server, &in_words(status), is_settled),
    }
}

/// Returns the reason under which the end of a stream is counted.
pub(super) fn reason(status: &Status) -> SourceError {
    match status.code() {
        _ if is_caused_by::<Stalled>(status) => SourceError::Stalled,
        Code::Unauthenticated => SourceError::Unauthorized,
        Code::PermissionDenied => SourceError::Forbidden,
        Code::Unimplemented => SourceError::NotServed,
        Code::DeadlineExceeded => SourceError::Timeout,
        Code::ResourceExhausted => SourceError::Throttled,
        Code::OutOfRange => SourceError::TooLarge,
        Code::Aborted => SourceError::Expired,
        Code::Unavailable => SourceError::Unreachable,
        Code::Internal => SourceError::ServerError,
        _ => SourceError::Other,
    }
}

fn in_words(status: &Status) -> String {
    match (status.message(), std::error::Error::source(status)) {
        ("", None) => status.code().description().to_owned(),
        (message, None) => message.to_owned(),
        ("", Some(cause)) => with_causes(cause),
        (message, Some(cause)) => format!("{message}: {}", with_causes(cause)),
    }
}

/// Returns a diagnostic: the server cannot be reached.
pub(super) fn unreachable(server: &str, reason: &str, is_settled: bool) -> Diagnostic {
    let is_tls = server.starts_with("xds+plaintext:")
        && (reason.contains("frame with invalid size") || reason.contains("broken pipe"));
    // A server with TLS does one or the other, by chance.
    let plain = match is_tls {
        true => "the server does not speak HTTP/2 without TLS, or closed the connection".to_owned(),
        false => plain(reason),
    };
    let message = format!("the xDS server cannot be followed: {plain}");
    let mut found = Diagnostic::about_file(Severity::Error, SRC007, server.into(), message);
    let fallback = match is_settled {
        _ if is_tls => {
            "write xds:// and --control-ca if the server speaks TLS; it is connected to again, at least every 5 s"
        }
        true => "what it sent last stays in effect; it is connected to again, at least every 5 s",
        false => {
            "check the address, --control-ca and the network; it is connected to again, at least every 5 s"
        }
    };
    found.help(certificate_help(reason).unwrap_or(fallback));
    found
}

fn unauthorized(server: &str, status: &Status) -> Diagnostic {
    let message = format!(
        "the xDS server does not accept the credentials: {}",
        in_words(status)
    );
    let mut found = Diagnostic::about_file(Severity::Error, SRC008, server.into(), message);
    found.help(
        "renew the file of --control-token or --control-cert, which is read again at each attempt; what the server sent last \
         stays in effect",
    );
    found
}

/// Whether istiod refuses to serve resources to this workload. Since Istio 1.32 only workloads of its root namespace
/// get them.
fn is_closed_generator(status: &Status) -> bool {
    status.message().contains("the api generator")
}

fn closed_generator(server: &str, status: &Status) -> Diagnostic {
    let message = format!(
        "istiod serves its resources to workloads of its root namespace only, since Istio 1.32: {}",
        in_words(status)
    );
    let mut found = Diagnostic::about_file(Severity::Error, SRC008, server.into(), message);
    found.help(
        "read them from the API server (--control kubernetes://); or run the proxy in the root namespace (istio-system), with TLS \
         and the token of a service account there (--control-token); or let istiod serve them to everyone who reaches it \
         (ENABLE_XDS_API_GENERATOR_AUTH=false)",
    );
    found
}

/// Returns a diagnostic: resources of a response cannot be read.
pub(super) fn unreadable(server: &str, resources: &[String]) -> Diagnostic {
    let message = format!(
        "resources of the xDS server cannot be read: {}",
        resources.join("; ")
    );
    let mut found = Diagnostic::about_file(Severity::Error, SRC010, server.into(), message);
    found.help("the server was told (NACK); the last version of each of them that could be read stays in effect");
    found
}

/// Returns a diagnostic: resources have unknown fields.
pub(super) fn unknown_fields(server: &str, fields: &[String]) -> Diagnostic {
    let message = format!("fields of resources are not known: {}", fields.join("; "));
    let mut found = Diagnostic::about_file(Severity::Warning, SRC011, server.into(), message);
    found.help("they have no effect; a newer version of the proxy may know them");
    found
}

/// Returns a diagnostic: the server sends no response for these types.
pub(super) fn silent(server: &str, types: &[Key]) -> Diagnostic {
    let message = format!("the xDS server sends no answer for {}", types.join(", "));
    let mut found = Diagnostic::about_file(Severity::Warning, SRC007, server.into(), message);
    found.help("they are not waited for any longer; what the server sends later takes effect");
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_of_istiod_say_what_to_do() {
        let needs = "the api generator requires an authenticated control-plane identity";
        let denied = "the api generator is restricted to the control-plane (root) namespace";
        for status in [
            Status::unauthenticated(needs),
            Status::permission_denied(denied),
        ] {
            let found = ended("xds://istiod:15012", &status, false);
            assert_eq!(found.code, SRC008);
            assert!(found.message.contains("root namespace only"), "{found:?}");
            let help = found.help.unwrap_or_default();
            assert!(help.contains("--control kubernetes://"), "{help}");
            assert!(help.contains("ENABLE_XDS_API_GENERATOR_AUTH"), "{help}");
        }
        let expired = Status::unauthenticated("token expired");
        let found = ended("xds://istiod:15012", &expired, false);
        assert!(found.message.contains("credentials"), "{found:?}");
    }

    #[test]
    fn plaintext_to_a_server_with_tls_has_its_own_help() {
        let about = |server: &str, reason: &str| {
            let found = ended(server, &Status::unavailable(reason), false);
            (found.message, found.help.unwrap_or_default())
        };
        for reason in [
            "h2 protocol error: http2 error: frame with invalid size",
            "stream closed because of a broken pipe",
        ] {
            let (message, help) = about("xds+plaintext://control:15010", reason);
            assert!(message.contains("HTTP/2 without TLS"), "{message}");
            assert!(help.starts_with("write xds:// and --control-ca"), "{help}");
            let (_, help) = about("xds://control:15010", reason);
            assert!(help.starts_with("check the address"), "{help}");
        }
        let (_, help) = about("xds+plaintext://control:15010", "Connection refused");
        assert!(help.starts_with("check the address"), "{help}");
    }
}
