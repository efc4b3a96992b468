//! Form of the log records that variables turn on: the text of Istio, and the keys of the JSON format as attributes.

use std::sync::Arc;

use config_loader::parse_log_format;
use traffic::filter::LogValue;

use crate::telemetry::{AccessLogFormat, RecordFormat};

/// Keys of the JSON format, with the operators that have their values. The time is a field of the record.
const ATTRIBUTES: [(&str, &str); 27] = [
    ("route_name", "%ROUTE_NAME%"),
    ("method", "%REQ(:METHOD)%"),
    ("path", "%REQ(X-ENVOY-ORIGINAL-PATH?:PATH)%"),
    ("protocol", "%PROTOCOL%"),
    ("response_code", "%RESPONSE_CODE%"),
    ("response_flags", "%RESPONSE_FLAGS%"),
    ("response_code_details", "%RESPONSE_CODE_DETAILS%"),
    (
        "connection_termination_details",
        "%CONNECTION_TERMINATION_DETAILS%",
    ),
    ("bytes_received", "%BYTES_RECEIVED%"),
    ("bytes_sent", "%BYTES_SENT%"),
    ("duration", "%DURATION%"),
    (
        "upstream_service_time",
        "%RESP(X-ENVOY-UPSTREAM-SERVICE-TIME)%",
    ),
    ("x_forwarded_for", "%REQ(X-FORWARDED-FOR)%"),
    ("user_agent", "%REQ(USER-AGENT)%"),
    ("request_id", "%REQ(X-REQUEST-ID)%"),
    ("authority", "%REQ(:AUTHORITY)%"),
    ("upstream_host", "%UPSTREAM_HOST%"),
    ("upstream_cluster", "%UPSTREAM_CLUSTER%"),
    ("upstream_local_address", "%UPSTREAM_LOCAL_ADDRESS%"),
    ("downstream_local_address", "%DOWNSTREAM_LOCAL_ADDRESS%"),
    ("downstream_remote_address", "%DOWNSTREAM_REMOTE_ADDRESS%"),
    ("requested_server_name", "%REQUESTED_SERVER_NAME%"),
    (
        "upstream_transport_failure_reason",
        "%UPSTREAM_TRANSPORT_FAILURE_REASON%",
    ),
    ("destination_cluster", "%STRAIT_CLUSTER%"),
    ("destination_tier", "%STRAIT_TIER%"),
    (
        "upstream_request_attempt_count",
        "%UPSTREAM_REQUEST_ATTEMPT_COUNT%",
    ),
    ("downstream_peer_uri_san", "%DOWNSTREAM_PEER_URI_SAN%"),
];

/// Returns the form.
pub(super) fn format() -> Result<RecordFormat, String> {
    let mut attributes = Vec::with_capacity(ATTRIBUTES.len());
    for (key, operator) in ATTRIBUTES {
        if let LogValue::Text(value) = &parse_log_format(operator)?.root {
            attributes.push((Arc::from(key), Arc::new(value.clone())));
        }
    }
    Ok(RecordFormat {
        body: AccessLogFormat::Text,
        attributes,
    })
}
