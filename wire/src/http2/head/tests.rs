use super::super::hpack::ENTRY_OVERHEAD;
use super::super::hpack::table::Name;
use super::*;

fn gather(mut builder: Builder, fields: &[(&str, &str)]) -> Builder {
    for (name, value) in fields {
        if builder.wants(name.len() + value.len() + ENTRY_OVERHEAD) {
            builder.field(Field::parse(
                Name::parse(name.as_bytes()),
                value.as_bytes(),
                false,
            ));
        }
    }
    builder
}

fn request(fields: &[(&str, &str)]) -> Result<Request, Flaw> {
    gather(Builder::head(HeaderMap::new(), 10_000), fields).into_request()
}

const GET: [(&str, &str); 4] = [
    (":method", "GET"),
    (":scheme", "http"),
    (":authority", "a.test"),
    (":path", "/x?y"),
];

#[test]
fn request_head_is_parsed_into_its_parts() {
    let made = request(&[&GET[..], &[("x-a", "1"), ("x-a", "2"), ("te", "trailers")]].concat());
    let made = made.unwrap();
    assert_eq!(made.method, Method::GET);
    assert_eq!(made.uri, "http://a.test/x?y");
    assert_eq!(made.headers.get_all("x-a").iter().count(), 2);
    assert_eq!(made.content_length, None);
    let made = request(&[(":method", "OPTIONS"), (":scheme", "http"), (":path", "*")]).unwrap();
    assert_eq!((made.uri.path(), made.uri.authority()), ("*", None));
    let made = request(&[(":method", "CONNECT"), (":authority", "a:80")]).unwrap();
    assert_eq!(made.uri, "a:80");
    let made = request(
        &[
            &[(":method", "CONNECT"), (":protocol", "websocket")],
            &GET[1..],
        ]
        .concat(),
    );
    assert_eq!(made.unwrap().protocol.unwrap(), "websocket");
}

#[test]
fn invalid_heads_are_malformed() {
    for without in 0..4 {
        let mut fields = GET.to_vec();
        let (name, _) = fields.remove(without);
        assert_eq!(request(&fields).is_err(), name != ":authority", "{name}");
        let mut fields = GET.to_vec();
        fields.push(fields[without]);
        assert!(request(&fields).is_err(), "twice {name}");
        let mut fields = GET.to_vec();
        let last = fields.remove(without);
        fields.extend([("x", "y"), last]);
        assert!(request(&fields).is_err(), "late {name}");
    }
    for (name, value) in [
        (":status", "200"),
        (":other", "x"),
        (":", "x"),
        (":protocol", "websocket"),
        ("X-Upper", "x"),
        ("x y", "x"),
        ("", "x"),
        ("x:y", "x"),
        ("x-a", " x"),
        ("x-a", "x\t"),
        ("x-a", "x\0y"),
        ("x-a", "x\ry"),
        ("x-a", "x\ny"),
        ("connection", "close"),
        ("connection", "keep-alive"),
        ("keep-alive", "1"),
        ("proxy-connection", "close"),
        ("transfer-encoding", "chunked"),
        ("upgrade", "h2c"),
        ("te", "gzip"),
        ("te", "trailers, gzip"),
        ("content-length", ""),
        ("content-length", "-1"),
        ("content-length", "+1"),
        ("content-length", "1, 1"),
        ("content-length", "0x1"),
        ("content-length", "99999999999999999999"),
        ("content-length", "9223372036854775808"),
    ] {
        let fields = [&GET[..], &[(name, value)]].concat();
        assert_eq!(
            request(&fields).unwrap_err(),
            Flaw::Malformed,
            "{name}: {value:?}"
        );
    }
    let fields = [
        &GET[..],
        &[("content-length", "1"), ("content-length", "1")],
    ]
    .concat();
    assert!(request(&fields).is_err());
    for (place, value) in [
        (0, ""),
        (0, "G T"),
        (1, "ht tp"),
        (2, ""),
        (2, "a b"),
        (2, "a/b"),
        (3, ""),
        (3, "x"),
        (3, "http://a/"),
        (3, "/x y"),
        (3, "/x#y"),
        (3, "*"),
    ] {
        let mut fields = GET.to_vec();
        fields[place].1 = value;
        assert!(request(&fields).is_err(), "{:?}", fields[place]);
    }
    for fields in [
        &[(":method", "CONNECT")][..],
        &[(":method", "CONNECT"), (":authority", "a"), (":path", "/")],
        &[
            (":method", "CONNECT"),
            (":authority", "a"),
            (":scheme", "http"),
        ],
        &[
            (":method", "CONNECT"),
            (":authority", "a"),
            (":protocol", "x"),
        ],
    ] {
        assert!(request(fields).is_err(), "{fields:?}");
    }
}

#[test]
fn trailers_have_no_pseudo_headers() {
    let trailers = |fields| gather(Builder::trailers(1000), fields).into_trailers();
    assert_eq!(trailers(&[("x-sum", "1")]).unwrap()["x-sum"], "1");
    assert_eq!(trailers(&[(":path", "/")]), Err(Flaw::Malformed));
    assert_eq!(trailers(&[("connection", "x")]), Err(Flaw::Malformed));
}

#[test]
fn header_list_size_includes_overhead_per_field() {
    let size: usize = GET
        .iter()
        .map(|(name, value)| name.len() + value.len() + 32)
        .sum();
    let made = |max| gather(Builder::head(HeaderMap::new(), max), &GET).into_request();
    assert!(made(size).is_ok());
    assert_eq!(made(size - 1).unwrap_err(), Flaw::TooLarge);
    // size is checked first
    let large = "y".repeat(10_000);
    let fields = [&GET[..], &[("x", &large), ("X", "y")]].concat();
    assert_eq!(request(&fields).unwrap_err(), Flaw::TooLarge);
}

#[test]
fn extended_connect_protocol_must_be_one_token() {
    for (protocol, fits) in [
        ("websocket", true),
        ("connect-udp", true),
        ("foo/2", true),
        ("", false),
        ("websocket, h2c", false),
        ("web socket", false),
    ] {
        let pseudo = [(":method", "CONNECT"), (":protocol", protocol)];
        let made = request(&[&pseudo[..], &GET[1..]].concat());
        assert_eq!(made.is_ok(), fits, "{protocol:?}");
    }
}
