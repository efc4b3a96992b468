use std::sync::Arc;

use proptest::prelude::*;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, RootCertStore};

use super::*;

/// Returns the client hello of rustls.
fn rustls_hello(name: &str, alpn: &[&[u8]]) -> Vec<u8> {
    let provider = rustls::crypto::aws_lc_rs::default_provider();
    let mut config = ClientConfig::builder_with_provider(Arc::new(provider))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth();
    config.alpn_protocols = alpn.iter().map(|name| name.to_vec()).collect();
    let name = ServerName::try_from(name.to_owned()).unwrap();
    let mut client = ClientConnection::new(Arc::new(config), name).unwrap();
    let mut bytes = Vec::new();
    client.write_tls(&mut bytes).unwrap();
    bytes
}

fn prefixed(width: usize, content: &[u8]) -> Vec<u8> {
    let length = (content.len() as u32).to_be_bytes();
    [&length[4 - width..], content].concat()
}

fn extension(kind: u16, data: &[u8]) -> Vec<u8> {
    [&kind.to_be_bytes()[..], &prefixed(2, data)].concat()
}

fn sni(name: &[u8]) -> Vec<u8> {
    let entry = [&[0][..], &prefixed(2, name)].concat();
    extension(0, &prefixed(2, &entry))
}

/// Returns a client hello with these extensions in one record; `None` for no extension list.
fn hello(extensions: Option<&[Vec<u8>]>) -> Vec<u8> {
    record(&handshake(extensions))
}

fn handshake(extensions: Option<&[Vec<u8>]>) -> Vec<u8> {
    let mut body = vec![3, 3];
    body.extend([7; 32]);
    body.extend(prefixed(1, &[9; 32]));
    body.extend(prefixed(2, &[0x13, 0x01]));
    body.extend(prefixed(1, &[0]));
    if let Some(extensions) = extensions {
        body.extend(prefixed(2, &extensions.concat()));
    }
    [&[1][..], &prefixed(3, &body)].concat()
}

fn record(content: &[u8]) -> Vec<u8> {
    [&[22, 3, 1][..], &prefixed(2, content)].concat()
}

fn name_of(bytes: &[u8]) -> Result<Option<Option<String>>, HelloError> {
    let parsed = parse(bytes)?;
    Ok(parsed.map(|hello| hello.server_name.map(String::from)))
}

#[test]
fn real_client_hello_is_parsed() {
    let bytes = rustls_hello("Shop.Example", &[b"h2", b"http/1.1"]);
    let parsed = parse(&bytes).unwrap().unwrap();
    assert_eq!(parsed.server_name.as_deref(), Some("shop.example"));
    assert_eq!(parsed.alpn().collect::<Vec<_>>(), [&b"h2"[..], b"http/1.1"]);
    assert_eq!(parsed.version, 0x0304);
    let bytes = rustls_hello("192.0.2.1", &[]);
    let parsed = parse(&bytes).unwrap().unwrap();
    assert_eq!(parsed.server_name, None, "an address is no name");
    assert_eq!(parsed.alpn().count(), 0);
}

#[test]
fn client_hello_without_extensions_is_parsed() {
    let parsed = parse(&hello(None)).unwrap().unwrap();
    assert_eq!(
        parsed,
        ClientHello {
            version: 0x0303,
            ..ClientHello::default()
        }
    );
}

#[test]
fn server_names_are_normalized_or_rejected() {
    for (name, expected) in [
        (&b"a.com"[..], Ok("a.com")),
        (b"A.Com.", Ok("a.com")),
        (
            b"outbound_.80_._.s.default.svc.cluster.local",
            Ok("outbound_.80_._.s.default.svc.cluster.local"),
        ),
        (b"", Err(HelloError::Name)),
        (b".", Err(HelloError::Name)),
        (b"a\0.com", Err(HelloError::Name)),
        (b"a.com/x", Err(HelloError::Name)),
        ("\u{e9}.com".as_bytes(), Err(HelloError::Name)),
        (&[b'a'; 256], Err(HelloError::Name)),
    ] {
        let found = name_of(&hello(Some(&[sni(name)])));
        let expected = expected.map(|name| Some(Some(name.to_owned())));
        assert_eq!(found, expected, "{:?}", name.escape_ascii());
    }
}

#[test]
fn bytes_other_than_a_client_hello_have_distinct_errors() {
    let too_long = [&[22, 3, 1, 0x40, 0, 1][..], &[0, 0x40, 0]].concat();
    let mut alert_inside = record(&handshake(None)[..10]);
    alert_inside.extend([21, 3, 3, 0, 2, 1, 0]);
    let twice = hello(Some(&[sni(b"a.com"), sni(b"b.com")]));
    let short = hello(Some(&[extension(0, &[0, 9, 0])]));
    for (bytes, expected) in [
        (&b"GET / HTTP/1.1\r\n"[..], HelloError::NotTls),
        (b"PRI * HTTP/2.0", HelloError::NotTls),
        (&[0x80, 0x2e, 1, 3, 1], HelloError::NotTls),
        (&[22, 2], HelloError::NotTls),
        (&[21, 3, 1, 0, 2, 2, 40], HelloError::NotTls),
        (&[22, 3, 3, 0, 4, 2, 0, 0, 0], HelloError::NotHello),
        (&[22, 3, 1, 0, 0], HelloError::Malformed),
        (&[22, 3, 1, 0xff, 0xff], HelloError::Malformed),
        (&too_long, HelloError::TooLarge),
        (&alert_inside, HelloError::Malformed),
        (&twice, HelloError::Malformed),
        (&short, HelloError::Malformed),
    ] {
        assert_eq!(parse(bytes), Err(expected), "{:?}", bytes.escape_ascii());
    }
}

#[test]
fn endless_records_are_too_large() {
    // each record carries one byte of a message that never ends
    let mut bytes = Vec::new();
    for byte in handshake(Some(&[extension(21, &[0; 12_000])])) {
        bytes.extend(record(&[byte]));
    }
    assert_eq!(
        parse(&bytes[..HELLO_BYTES_MAX + 1]),
        Err(HelloError::TooLarge)
    );
}

proptest! {
    #[test]
    fn truncated_hello_needs_more_bytes_and_fragments_parse_the_same(
        cut in 0_usize..10_000,
        sizes in prop::collection::vec(1_usize..300, 1..4),
    ) {
        let whole = rustls_hello("a.example", &[b"istio", b"h2"]);
        let parsed = parse(&whole).unwrap().unwrap();
        prop_assert_eq!(parse(&whole[..cut % whole.len()]), Ok(None));
        let mut content = &whole[5..];
        let mut fragmented = Vec::new();
        for size in sizes.iter().cycle() {
            if content.is_empty() {
                break;
            }
            let (piece, rest) = content.split_at((*size).min(content.len()));
            fragmented.extend(record(piece));
            content = rest;
        }
        prop_assert_eq!(parse(&fragmented[..fragmented.len() - 1]), Ok(None));
        fragmented.extend(b"and what follows");
        prop_assert_eq!(parse(&fragmented).unwrap().unwrap(), parsed);
    }

    #[test]
    fn verdicts_do_not_change_with_more_bytes(
        bytes in prop::collection::vec(any::<u8>(), 0..200),
        cut in 0_usize..200,
    ) {
        let bytes = [&[22, 3, 1, 0, 190, 1, 0, 0, 180][..], &bytes].concat();
        let early = parse(&bytes[..cut.min(bytes.len())]);
        if early != Ok(None) {
            prop_assert_eq!(early, parse(&bytes));
        }
    }
}
