//! `/ui`: the page of all proxies, for browsers. It has no data: its script asks the API, with a token that its user enters.

use http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY};
use http::{HeaderValue, Response};

use crate::api::respond::{self, Body};
use crate::status::Failure;

/// Returns the page, or the file of it with a path.
///
/// # Errors
/// 404 if there is no such file.
pub(super) fn show(path: &str) -> Result<Response<Body>, Failure> {
    let asset = match path {
        "/ui" => Some(web::fleet_page()),
        path => web::find(path),
    };
    let asset = asset.ok_or_else(Failure::unknown_path)?;
    let mut response = Response::new(respond::full(asset.text));
    for (name, value) in [
        (CONTENT_TYPE, asset.content_type),
        (CONTENT_SECURITY_POLICY, web::POLICY),
        (REFERRER_POLICY, "no-referrer"),
    ] {
        let value = HeaderValue::from_static(value);
        response.headers_mut().insert(name, value);
    }
    Ok(response)
}
