//! Parsing of questions into requests.

use super::*;

#[test]
fn urls_are_parsed_as_clients_send_them() {
    for (url, host, target, port) in [
        ("http://a.com", Some("a.com"), "/", Some(80)),
        ("http://a.com:80/x", Some("a.com"), "/x", Some(80)),
        (
            "http://a.com:8080/x?y#z",
            Some("a.com:8080"),
            "/x?y",
            Some(8080),
        ),
        ("https://a.com/x", Some("a.com"), "/x", Some(443)),
        ("a.com/x", Some("a.com"), "/x", Some(80)),
        ("a.com:8080", Some("a.com:8080"), "/", Some(8080)),
        ("http://a.com?y", Some("a.com"), "/?y", Some(80)),
        ("http://[::1]:81/", Some("[::1]:81"), "/", Some(81)),
        ("/only?path", None, "/only?path", None),
    ] {
        let question = Question::parse("GET", url).unwrap();
        let request = question.request();
        let sent = request.headers().get(HOST).map(|v| v.to_str().unwrap());
        assert_eq!(sent, host, "{url}");
        assert_eq!(request.uri().to_string(), target, "{url}");
        assert_eq!(question.port, port, "{url}");
    }
}

#[test]
fn invalid_questions_are_rejected_with_a_message() {
    for (method, url) in [
        ("G T", "/"),
        ("GET", "ftp://a.com/"),
        ("GET", "http:///x"),
        ("GET", "http://a b/"),
        ("GET", "http://u@a.com/"),
        ("GET", "/ä"),
        ("GET", "/a b"),
    ] {
        assert!(Question::parse(method, url).is_err(), "{method} {url}");
    }
}

#[test]
fn headers_are_appended_and_host_is_replaced() {
    let mut question = Question::parse("GET", "http://a.com/").unwrap();
    question.header("X-A: 1").unwrap();
    question.header("x-a:2").unwrap();
    question.header("Host: b.com").unwrap();
    let request = question.request();
    assert_eq!(request.headers().get_all("x-a").iter().count(), 2);
    assert_eq!(request.headers()[HOST], "b.com");
    for wrong in ["x", ": 1", "a b: 1", "x: \u{1}"] {
        assert!(question.header(wrong).is_err(), "{wrong:?}");
    }
}

#[test]
fn listeners_are_named_by_address_or_port() {
    let mut question = Question::parse("GET", "/").unwrap();
    question.at_listener("8080").unwrap();
    assert_eq!(question.listener, Some(ListenerWish::Port(8080)));
    question.at_listener("127.0.0.1:1").unwrap();
    assert!(matches!(question.listener, Some(ListenerWish::Address(_))));
    assert!(question.at_listener("localhost").is_err());
}
