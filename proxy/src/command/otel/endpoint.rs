//! Addresses of collectors in flags and variables.

use http::Uri;
use http::uri::PathAndQuery;

use crate::telemetry::{OtlpEndpoint, OtlpProtocol, OtlpSignal};

/// Parses the URL of the flag, whose scheme says the protocol.
pub(super) fn endpoint_of_flag(url: &str, signal: OtlpSignal) -> Result<OtlpEndpoint, String> {
    let (protocol, plain) = match url.split_once("://") {
        Some(("grpc", rest)) => (OtlpProtocol::Grpc, format!("http://{rest}")),
        Some(("grpcs", rest)) => (OtlpProtocol::Grpc, format!("https://{rest}")),
        _ => (OtlpProtocol::Http, url.to_owned()),
    };
    endpoint(&plain, protocol, signal, true)
}

/// Parses an `http` or `https` URL for a signal. A URL for all signals gets the path of this one appended.
pub(super) fn endpoint(
    url: &str,
    protocol: OtlpProtocol,
    signal: OtlpSignal,
    is_base: bool,
) -> Result<OtlpEndpoint, String> {
    let wrong = || {
        format!(
            "{url:?} is no URL; write for example http://collector:4318 or grpc://collector:4317"
        )
    };
    let uri: Uri = url.parse().map_err(|_| wrong())?;
    let is_tls = match uri.scheme_str() {
        Some("http") => false,
        Some("https") => true,
        _ => return Err(wrong()),
    };
    let host = uri.host().ok_or_else(wrong)?;
    if uri
        .authority()
        .is_some_and(|whole| whole.as_str().contains('@'))
    {
        return Err(format!(
            "the URL of {host} has credentials, which are not sent: write a header `authorization` by --otlp-header or \
             OTEL_EXPORTER_OTLP_HEADERS"
        ));
    }
    let path = match (protocol, is_base) {
        (OtlpProtocol::Grpc, _) => signal.grpc_path().to_owned(),
        (OtlpProtocol::Http, false) | (OtlpProtocol::Zipkin, _) => uri
            .path_and_query()
            .map_or("/", PathAndQuery::as_str)
            .to_owned(),
        (OtlpProtocol::Http, true) => {
            let path = uri.path().trim_end_matches('/');
            // the flag may have the path of traces
            let base = path.strip_suffix(OtlpSignal::Traces.http_path());
            let query = uri
                .query()
                .map_or(String::new(), |query| format!("?{query}"));
            format!("{}{}{query}", base.unwrap_or(path), signal.http_path())
        }
    };
    Ok(OtlpEndpoint {
        protocol,
        is_tls,
        host: host
            .trim_start_matches('[')
            .trim_end_matches(']')
            .to_owned(),
        port: uri.port_u16().unwrap_or(match protocol {
            OtlpProtocol::Grpc => 4317,
            OtlpProtocol::Http => 4318,
            OtlpProtocol::Zipkin => 9411,
        }),
        path: PathAndQuery::try_from(path).map_err(|_| wrong())?,
    })
}
