//! Forwarding of trailers, by protocol and by announcement.

use std::io::{Read, Write};
use std::sync::mpsc;
use std::sync::{Arc, Mutex};

use http_body_util::{BodyExt, StreamBody};
use hyper::body::Frame;
use hyper::{HeaderMap, Request, Response};

use crate::support::DEADLINE;
use crate::support::client::{Client, Front};
use crate::support::mesh::{everything_to, everything_to_address};
use crate::support::origin::{Back, Body, Origin, RawOrigin, empty, read_head};
use crate::support::proxy::Proxy;
use crate::support::raw::Raw;

/// Returns a body with a trailer `x-sum: 42`.
fn summed() -> Body {
    let mut trailers = HeaderMap::new();
    trailers.insert("x-sum", "42".parse().unwrap());
    let frames = [
        Ok(Frame::data("body".into())),
        Ok(Frame::trailers(trailers)),
    ];
    StreamBody::new(futures_util::stream::iter(frames)).boxed_unsync()
}

/// Reads a chunked body to its end, including trailers.
fn read_chunked(stream: &mut impl Read) -> String {
    let mut bytes = Vec::new();
    let mut byte = [0];
    while !bytes.ends_with(b"\r\n\r\n") && matches!(stream.read(&mut byte), Ok(1)) {
        bytes.push(byte[0]);
    }
    String::from_utf8(bytes).unwrap()
}

#[test]
fn request_trailers_reach_http1_endpoints_announced_or_not() {
    let (tell, told) = mpsc::channel();
    let tell = Arc::new(Mutex::new(tell));
    let origin = RawOrigin::start(move |_, mut stream| {
        while !read_head(&mut stream).is_empty() {
            let body = read_chunked(&mut stream);
            tell.lock().unwrap().send(body).unwrap();
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
        }
    });
    let proxy = Proxy::with(|edge| everything_to_address(edge, Back::H1, origin.address));
    let mut client = Raw::connect(proxy.edge);
    for announced in ["Trailer: x-sum\r\n", ""] {
        let head =
            format!("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n{announced}\r\n");
        client
            .send(head)
            .send("4\r\nbody\r\n0\r\nx-sum: 42\r\n\r\n");
        assert_eq!(client.reply().status, 200);
        let body = told.recv_timeout(DEADLINE).unwrap();
        assert_eq!(body, "4\r\nbody\r\n0\r\nx-sum: 42\r\n\r\n", "{announced:?}");
    }
}

#[tokio::test]
async fn request_trailers_reach_http2_endpoints_announced_or_not() {
    let origin = Origin::start(Back::H2, |request| async move {
        let body = request.into_body().collect().await.unwrap();
        let sum = body.trailers().and_then(|trailers| trailers.get("x-sum"));
        let mut response = Response::new(empty());
        if let Some(sum) = sum {
            response.headers_mut().insert("x-saw", sum.clone());
        }
        response
    });
    let proxy = Proxy::with(|edge| everything_to(edge, &origin));
    let mut client = Client::connect(Front::H2, proxy.edge).await;
    let request = Request::post("http://a.test/").body(summed()).unwrap();
    assert_eq!(client.call(request).await.header("x-saw"), Some("42"));
    // HTTP/1 clients need not announce them either.
    let mut client = Raw::connect(proxy.edge);
    client.send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
    let reply = client.send("4\r\nbody\r\n0\r\nx-sum: 42\r\n\r\n").reply();
    assert!(reply.has("x-saw: 42"), "{reply:?}");
}

#[tokio::test]
async fn response_trailers_reach_clients_that_accept_them() {
    let raw = RawOrigin::start(|_, mut stream| {
        loop {
            let head = read_head(&mut stream);
            let announced = match head.split(' ').nth(1) {
                Some("/announced") => "Trailer: x-sum\r\n",
                Some(_) => "",
                None => return,
            };
            let head = format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n{announced}\r\n");
            let _ = stream.write_all(head.as_bytes());
            let _ = stream.write_all(b"4\r\nbody\r\n0\r\nx-sum: 42\r\n\r\n");
        }
    });
    let origin = Origin::start(Back::H2, |request| async move {
        let mut response = Response::new(summed());
        if request.uri().path() == "/announced" {
            let headers = response.headers_mut();
            headers.insert("trailer", "x-sum".parse().unwrap());
        }
        response
    });
    for (back, address) in [(Back::H1, raw.address), (Back::H2, origin.address)] {
        let proxy = Proxy::with(|edge| everything_to_address(edge, back, address));
        // An HTTP/1 client has to ask for trailers, and the origin to announce them (RFC 9110, section 6.5.1).
        for (front, path, te, passes) in [
            (Front::H1, "/announced", true, true),
            (Front::H1, "/announced", false, false),
            (Front::H1, "/silent", true, false),
            (Front::H2, "/announced", true, true),
            (Front::H2, "/announced", false, true),
            (Front::H2, "/silent", false, true),
        ] {
            let mut client = Client::connect(front, proxy.edge).await;
            let mut request = Request::get(format!("http://a.test{path}"));
            if te {
                request = request.header("te", "trailers");
            }
            let answer = client.call(request.body(empty()).unwrap()).await;
            assert_eq!(answer.text(), "body");
            let sum = answer
                .trailers
                .is_some_and(|trailers| trailers["x-sum"] == "42");
            assert_eq!(sum, passes, "{back:?} to {front:?}, {path}, te: {te}");
        }
    }
}

#[test]
fn sensitive_fields_in_trailers_are_removed() {
    let (tell, told) = mpsc::channel();
    let tell = Arc::new(Mutex::new(tell));
    let origin = RawOrigin::start(move |_, mut stream| {
        while !read_head(&mut stream).is_empty() {
            let body = read_chunked(&mut stream);
            tell.lock().unwrap().send(body).unwrap();
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
        }
    });
    let proxy = Proxy::with(|edge| everything_to_address(edge, Back::H1, origin.address));
    let mut client = Raw::connect(proxy.edge);
    for (trailers, passed) in [
        ("x-sum: 42\r\nAuthorization: Bearer x\r\n", "x-sum: 42\r\n"),
        (
            "X-Forwarded-Client-Cert: By=a\r\nX-Envoy-Retry-On: 5xx\r\n",
            "",
        ),
        (
            "Transfer-Encoding: chunked\r\nContent-Length: 5\r\nHost: b\r\n",
            "",
        ),
    ] {
        client
            .send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
            .send(format!("4\r\nbody\r\n0\r\n{trailers}\r\n"));
        assert_eq!(client.reply().status, 200, "{trailers}");
        let body = told.recv_timeout(DEADLINE).unwrap();
        assert_eq!(
            body,
            format!("4\r\nbody\r\n0\r\n{passed}\r\n"),
            "{trailers}"
        );
    }
}
