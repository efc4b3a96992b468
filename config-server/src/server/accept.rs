//! Content negotiation by the `Accept` header.

use http::HeaderMap;
use http::header::ACCEPT;

use crate::api::lines::Form;
use crate::api::openapi;
use crate::api::params::Params;
use crate::api::table::Include;
use crate::status::Failure;

/// Negotiated response format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Accepted {
    /// JSON in this representation.
    Json(Form),
    /// Aggregated discovery document of this API version.
    Discovery(&'static str),
    /// OpenAPI v2 document in protobuf.
    OpenApi2,
}

/// Returns the first entry of `Accept` that can be served.
///
/// # Errors
/// 406 if no entry can be served.
pub(super) fn accepted(headers: &HeaderMap, params: &Params) -> Result<Accepted, Failure> {
    let values = headers
        .get_all(ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok());
    let mut wishes = values.flat_map(|value| value.split(',')).peekable();
    if wishes.peek().is_none() {
        return Ok(Accepted::Json(Form::Object));
    }
    let include = match params.get("includeObject") {
        "None" => Include::None,
        "Object" => Include::Object,
        _ => Include::Metadata,
    };
    wishes
        .find_map(|wish| one(wish, include))
        .ok_or_else(not_acceptable)
}

/// Returns a 406 failure.
pub(super) fn not_acceptable() -> Failure {
    let message = "only the following media types are accepted: application/json";
    Failure::new(http::StatusCode::NOT_ACCEPTABLE, "NotAcceptable", message)
}

fn one(wish: &str, include: Include) -> Option<Accepted> {
    let mut parts = wish.split(';').map(str::trim);
    let media = parts.next()?;
    if [
        openapi::protobuf::MEDIA_TYPE,
        openapi::protobuf::CONTENT_TYPE,
    ]
    .contains(&media)
    {
        return Some(Accepted::OpenApi2);
    }
    let mut kind = "";
    let mut version = "";
    for (name, value) in parts.filter_map(|part| part.split_once('=')) {
        match name {
            "as" => kind = value,
            "v" => version = value,
            _ => {}
        }
    }
    let is_json = ["application/json", "application/*", "*/*", ""].contains(&media);
    match (kind, version) {
        _ if !is_json => None,
        ("", _) => Some(Accepted::Json(Form::Object)),
        ("Table", "v1") => Some(Accepted::Json(Form::Table(include))),
        ("PartialObjectMetadata" | "PartialObjectMetadataList", "v1") => {
            Some(Accepted::Json(Form::MetadataOnly))
        }
        ("APIGroupDiscoveryList", "v2") => Some(Accepted::Discovery("v2")),
        ("APIGroupDiscoveryList", "v2beta1") => Some(Accepted::Discovery("v2beta1")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(accept: &str) -> Result<Accepted, Failure> {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, accept.parse().unwrap());
        accepted(&headers, &Params::default())
    }

    #[test]
    fn first_form_that_is_served_is_taken() {
        let kubectl = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json";
        let table = Accepted::Json(Form::Table(Include::Metadata));
        assert_eq!(read(kubectl), Ok(table));
        let newer =
            "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";
        assert_eq!(read(newer), Ok(Accepted::Discovery("v2")));
        let any = "application/vnd.kubernetes.protobuf, */*";
        assert_eq!(read(any), Ok(Accepted::Json(Form::Object)));
        assert_eq!(read(openapi::protobuf::MEDIA_TYPE), Ok(Accepted::OpenApi2));
        assert_eq!(read("text/html").unwrap_err().code, 406);
    }
}
