//! Files of the live page as replies.

use http::header::{CONTENT_SECURITY_POLICY, REFERRER_POLICY};
use http::{HeaderValue, StatusCode};
use web::Asset;

use super::reply::Reply;

/// Returns the page.
pub(super) fn page() -> Reply {
    reply(web::live_page())
}

/// Returns a file of the page, by its path.
pub(super) fn find(path: &str) -> Option<Reply> {
    web::find(path).map(reply)
}

fn reply(asset: &Asset) -> Reply {
    Reply::new(StatusCode::OK, asset.content_type, asset.text.into())
        .with_header(
            CONTENT_SECURITY_POLICY,
            HeaderValue::from_static(web::POLICY),
        )
        .with_header(REFERRER_POLICY, HeaderValue::from_static("no-referrer"))
}
