//! Translates extended CONNECT of HTTP/2 (RFC 8441) to an HTTP/1 upgrade, and the response back.
//!
//! Routes, filters and upstreams see a GET with `Upgrade`, as in Envoy.

use http::header::{
    CONNECTION, CONTENT_LENGTH, HeaderName, HeaderValue, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY,
    UPGRADE,
};
use http::{Method, Request, Response, StatusCode};

/// Headers of a 101 response to remove: meaningless in HTTP/2, and a length would delimit the tunnel.
const OF_HTTP1: [HeaderName; 4] = [CONNECTION, CONTENT_LENGTH, UPGRADE, SEC_WEBSOCKET_ACCEPT];

/// Turns an extended CONNECT into an upgrade to the given protocol.
pub(super) fn to_upgrade<B>(request: &mut Request<B>, upgrade: HeaderValue) {
    *request.method_mut() = Method::GET;
    let headers = request.headers_mut();
    headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
    if upgrade.as_bytes().eq_ignore_ascii_case(b"websocket") {
        // HTTP/1 requires a key, HTTP/2 has none (RFC 8441, section 5)
        headers.insert(SEC_WEBSOCKET_KEY, websocket_key(rand::random()));
    }
    headers.insert(UPGRADE, upgrade);
}

/// Turns the response to an upgrade into the response to an extended CONNECT; `false` for a 2xx, which would be taken
/// for a tunnel.
pub(super) fn to_connected<B>(response: &mut Response<B>) -> bool {
    if response.status() == StatusCode::SWITCHING_PROTOCOLS {
        *response.status_mut() = StatusCode::OK;
        for name in OF_HTTP1 {
            response.headers_mut().remove(name);
        }
        return true;
    }
    !response.status().is_success()
}

/// Returns a key of a WebSocket handshake: 16 bytes in Base64 (RFC 6455, section 4.1).
fn websocket_key(bytes: [u8; 16]) -> HeaderValue {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = [b'='; 24];
    for (three, four) in bytes.chunks(3).zip(text.chunks_mut(4)) {
        let mut padded = [0; 4];
        padded[1..=three.len()].copy_from_slice(three);
        let bits = u32::from_be_bytes(padded);
        for (index, digit) in four.iter_mut().take(three.len() + 1).enumerate() {
            *digit = ALPHABET[(bits >> (18 - 6 * index)) as usize & 63];
        }
    }
    HeaderValue::from_bytes(&text).expect("Base64 is visible ASCII")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn websocket_keys_are_base64() {
        // the example of RFC 6455, section 1.3
        assert_eq!(
            websocket_key(*b"the sample nonce"),
            "dGhlIHNhbXBsZSBub25jZQ=="
        );
        assert_eq!(websocket_key([0xff; 16]), "/////////////////////w==");
    }

    #[test]
    fn extended_connect_becomes_an_upgrade() {
        for (protocol, keyed) in [("websocket", true), ("other", false)] {
            let request = Request::connect("http://a.test/chat").body(());
            let mut request = request.expect("valid");
            to_upgrade(&mut request, HeaderValue::from_static(protocol));
            assert_eq!(request.method(), Method::GET);
            assert_eq!(request.headers()[UPGRADE], protocol);
            assert_eq!(request.headers()[CONNECTION], "upgrade");
            assert_eq!(request.headers().contains_key(SEC_WEBSOCKET_KEY), keyed);
        }
    }

    #[test]
    fn switching_protocols_becomes_200() {
        let mut response = Response::builder()
            .status(101)
            .header(CONNECTION, "upgrade")
            .header(UPGRADE, "websocket")
            .header(SEC_WEBSOCKET_ACCEPT, "x")
            .header("sec-websocket-protocol", "chat")
            .body(())
            .expect("valid");
        assert!(to_connected(&mut response));
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(response.headers().len(), 1);
        assert!(!to_connected(&mut response), "no success of its own");
        *response.status_mut() = StatusCode::FORBIDDEN;
        assert!(to_connected(&mut response));
    }
}
