use proptest::prelude::*;

use super::*;

fn map(fields: &[(&'static str, &'static str)]) -> HeaderMap {
    let fields = fields.iter();
    let fields = fields.map(|(name, value)| {
        (
            HeaderName::from_static(name),
            HeaderValue::from_static(value),
        )
    });
    fields.collect()
}

fn message(body: &[u8]) -> Vec<u8> {
    let mut message = vec![0];
    message.put_u32(u32::try_from(body.len()).unwrap());
    message.extend_from_slice(body);
    message
}

fn decode<'p>(pieces: impl IntoIterator<Item = &'p [u8]>) -> Result<Vec<u8>, BadBase64> {
    let mut decoder = Decoder::default();
    let mut decoded = Vec::new();
    for piece in pieces {
        decoded.extend_from_slice(&decoder.decode(piece)?);
    }
    match decoder.is_complete() {
        true => Ok(decoded),
        false => Err(BadBase64),
    }
}

fn encode<'p>(pieces: impl IntoIterator<Item = &'p [u8]>, end: Option<&HeaderMap>) -> String {
    let mut encoder = Encoder::new(true);
    let mut encoded = Vec::new();
    for piece in pieces {
        encoded.extend_from_slice(&encoder.data(Bytes::copy_from_slice(piece)));
    }
    encoded.extend_from_slice(&match end {
        Some(trailers) => encoder.trailers(trailers),
        None => encoder.finish(),
    });
    assert!(encoder.is_complete());
    String::from_utf8(encoded).unwrap()
}

#[test]
fn request_heads_are_translated_as_envoy_does() {
    let (binary, text) = (Some((false, false)), Some((true, true)));
    for (content_type, accept, expected) in [
        (BINARY, "*/*", binary),
        (BINARY_PROTO, BINARY_PROTO, binary),
        (TEXT, TEXT, text),
        (TEXT_PROTO, TEXT_PROTO, text),
        (TEXT, "*/*", Some((true, false))),
        (BINARY, TEXT, Some((false, true))),
        (BINARY, "application/grpc-web-text, */*", binary),
        ("application/grpc-web+json", "*/*", None),
        ("application/grpc-web+proto; charset=utf-8", "*/*", None),
        ("APPLICATION/GRPC-WEB", "*/*", None),
        ("application/grpc", "*/*", None),
        ("text/plain", TEXT, None),
    ] {
        let mut headers = map(&[
            ("content-type", content_type),
            ("accept", accept),
            ("content-length", "7"),
        ]);
        let before = headers.clone();
        let found = translate_request(&mut headers);
        let found = found.map(|text| (text.request, text.response));
        assert_eq!(found, expected, "{content_type} {accept}");
        let after = map(&[
            ("content-type", "application/grpc"),
            ("accept", accept),
            ("te", "trailers"),
            ("grpc-accept-encoding", "identity"),
        ]);
        let expected = if expected.is_some() { &after } else { &before };
        assert_eq!(&headers, expected, "{content_type}");
    }
    let mut own = map(&[("content-type", BINARY), ("grpc-accept-encoding", "gzip")]);
    translate_request(&mut own);
    assert_eq!(own["grpc-accept-encoding"], "gzip");
    assert_eq!(translate_request(&mut HeaderMap::new()), None);
}

#[test]
fn response_heads_are_translated_as_envoy_does() {
    for (status, content_type, ended, is_understood) in [
        (200, "application/grpc", false, true),
        (200, "application/grpc+proto", false, true),
        (200, "application/grpc", true, true),
        (200, "application/grpc-web+proto", false, true),
        (200, "Application/gRPC-Web ; a=b", false, true),
        (200, "application/grpc-web-text", false, false),
        (200, "text/html", false, false),
        (404, "text/html", true, true),
        (500, "application/grpc", false, false),
    ] {
        let mut headers = map(&[("content-type", content_type), ("content-length", "7")]);
        let status = StatusCode::from_u16(status).unwrap();
        let found = translate_response(status, &mut headers, ended, false);
        assert_eq!(found, is_understood, "{status} {content_type} {ended}");
        assert_eq!(headers, map(&[("content-type", BINARY_PROTO)]));
        translate_response(status, &mut headers, ended, true);
        assert_eq!(headers, map(&[("content-type", TEXT_PROTO)]));
    }
}

#[test]
fn base64_is_decoded_quantum_by_quantum() {
    for (text, expected) in [
        ("", Ok("")),
        ("QQ==", Ok("A")),
        ("QUI=", Ok("AB")),
        ("QUJD", Ok("ABC")),
        ("QQ==QUJDQUI=", Ok("AABCAB")),
        ("QQ==QQ==", Ok("AA")),
        // not canonical
        ("QR==", Err(BadBase64)),
        ("QUJ=", Err(BadBase64)),
        ("QQ", Err(BadBase64)),
        ("QQ=", Err(BadBase64)),
        ("QUJDRA", Err(BadBase64)),
        ("Q===", Err(BadBase64)),
        ("====", Err(BadBase64)),
        ("=QQ=", Err(BadBase64)),
        ("QQ=A", Err(BadBase64)),
        ("****", Err(BadBase64)),
        ("QUJ-", Err(BadBase64)),
        ("QUJD\n", Err(BadBase64)),
        ("QUJD\r\nQUJD", Err(BadBase64)),
    ] {
        let expected = expected.map(|text| text.as_bytes().to_vec());
        assert_eq!(decode([text.as_bytes()]), expected, "{text:?}");
        assert_eq!(decode(text.as_bytes().chunks(1)), expected, "{text:?}");
    }
}

#[test]
fn each_message_has_its_own_padding() {
    let trailers = map(&[("grpc-status", "0")]);
    let body = [message(b"one"), message(b""), message(b"three!")].concat();
    let expected = "AAAAAANvbmU=AAAAAAA=AAAAAAZ0aHJlZSE=gAAAAA9ncnBjLXN0YXR1czowDQo=";
    assert_eq!(encode([&*body], Some(&trailers)), expected);
    assert_eq!(encode([&body[..4]], None), "AAAAAA==");
    assert_eq!(encode([], None), "");
}

#[test]
fn trailers_are_the_last_frame() {
    let trailers = map(&[("grpc-status", "0"), ("grpc-message", "a b"), ("x-t", "1")]);
    let mut encoder = Encoder::new(false);
    let piece = Bytes::from_static(b"any");
    assert_eq!(encoder.data(piece.clone()), piece);
    let expected = b"\x80\0\0\0(grpc-status:0\r\ngrpc-message:a b\r\nx-t:1\r\n";
    assert_eq!(encoder.trailers(&trailers), expected[..]);
    assert!(encoder.is_complete());
    assert_eq!(encoder.finish(), "");
}

#[test]
fn long_message_is_encoded_without_being_buffered() {
    let mut encoder = Encoder::new(true);
    let prefix = encoder.data(Bytes::from_static(&[0, 0xff, 0xff, 0xff, 0xff]));
    assert_eq!(prefix.len(), 4);
    let piece = Bytes::from(vec![0; 30_000]);
    assert!(encoder.data(piece).len() >= 40_000);
}

/// Text in which any byte may occur.
fn any_text() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![
        8 => prop::sample::select(b"AQUJDgw+/".to_vec()),
        2 => Just(b'='),
        1 => any::<u8>(),
    ];
    prop::collection::vec(byte, 0..40)
}

proptest! {
    #[test]
    fn decoding_does_not_depend_on_segmentation(text in any_text(), cuts in cuts()) {
        prop_assert_eq!(decode(cut(&text, &cuts)), decode([&*text]));
    }

    #[test]
    fn encoding_does_not_depend_on_segmentation(
        bodies in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..20), 0..6),
        cuts in cuts(),
        truncated in 0_usize..5,
    ) {
        let messages: Vec<Vec<u8>> = bodies.iter().map(|body| message(body)).collect();
        let body = messages.concat();
        let body = &body[..body.len().saturating_sub(truncated)];
        let trailers = map(&[("grpc-status", "0")]);
        let whole = encode([body], Some(&trailers));
        prop_assert_eq!(&encode(cut(body, &cuts), Some(&trailers)), &whole);
        let end = b"\x80\0\0\0\x0fgrpc-status:0\r\n";
        prop_assert_eq!(decode([whole.as_bytes()]), Ok([body, end].concat()));
        if truncated == 0 {
            let each: String = messages.iter().map(|one| STANDARD.encode(one)).collect();
            prop_assert_eq!(whole, each + &STANDARD.encode(end));
        }
    }
}

fn cuts() -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(0_usize..7, 1..20)
}

/// Splits bytes into pieces with the lengths `cuts`, repeated.
fn cut<'b>(mut bytes: &'b [u8], cuts: &[usize]) -> Vec<&'b [u8]> {
    let mut pieces = Vec::new();
    let mut lengths = cuts.iter().cycle().take(200);
    while let Some(length) = lengths.next().filter(|_| !bytes.is_empty()) {
        let (piece, rest) = bytes.split_at((*length).min(bytes.len()));
        pieces.push(piece);
        bytes = rest;
    }
    pieces.push(bytes);
    pieces
}
