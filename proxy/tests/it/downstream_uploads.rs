//! Uploads whose response is there before their end, and clients that leave within one.

use std::rc::Rc;
use std::sync::mpsc::{Receiver, channel};

use http_body_util::{BodyExt, Full};
use hyper::{Request, Response, StatusCode};
use proxy::exchange::downstream::body::Switched;
use proxy::exchange::{Connection, DownstreamBody};
use tokio::io::AsyncReadExt;

use crate::support::DEADLINE;
use crate::support::downstream::{Downstream, settings};
use crate::support::raw::{GET, Raw};

/// The body of an upload, or nothing if it broke off.
type Outcome = Option<Vec<u8>>;

/// Answers at once, and reads the body meanwhile, as with an endpoint that replies early.
fn early() -> (Downstream, Receiver<Outcome>) {
    let (tell, told) = channel();
    let downstream = Downstream::start(&settings(), move || {
        let tell = tell.clone();
        move |_: Rc<Connection>, request: Request<DownstreamBody>| {
            let tell = tell.clone();
            async move {
                tokio::task::spawn_local(async move {
                    let body = request.into_body().collect().await;
                    let _ = tell.send(body.ok().map(|body| body.to_bytes().to_vec()));
                });
                Response::new(Full::<bytes::Bytes>::default())
            }
        }
    });
    (downstream, told)
}

/// Reads the body, and answers 400 if it breaks off.
fn patient() -> Downstream {
    Downstream::start(&settings(), || {
        |_: Rc<Connection>, request: Request<DownstreamBody>| async move {
            let mut response = Response::new(Full::<bytes::Bytes>::default());
            if request.into_body().collect().await.is_err() {
                *response.status_mut() = StatusCode::BAD_REQUEST;
            }
            response
        }
    })
}

#[test]
fn rest_of_an_upload_arrives_after_its_early_response() {
    let (downstream, told) = early();
    for (version, connection, persistent) in [
        ("HTTP/1.1", "x", true),
        ("HTTP/1.1", "close", false),
        ("HTTP/1.0", "x", false),
        ("HTTP/1.0", "keep-alive", true),
    ] {
        let mut client = Raw::connect(downstream.address());
        client.send(format!(
            "POST / {version}\r\nHost: a.test\r\nConnection: {connection}\r\nContent-Length: 10\r\n\r\nhello"
        ));
        assert_eq!(client.reply().status, 200, "{version} {connection}");
        client.send("world");
        let body = told.recv_timeout(DEADLINE).unwrap();
        assert_eq!(body.unwrap(), b"helloworld", "{version} {connection}");
        match persistent {
            true => {
                assert_eq!(client.send(GET).reply().status, 200);
                assert_eq!(told.recv_timeout(DEADLINE).unwrap().unwrap(), b"");
            }
            false => assert!(client.is_closed(), "{version} {connection}"),
        }
    }
}

#[test]
fn upload_breaks_off_as_soon_as_its_client_leaves() {
    let (downstream, told) = early();
    for body in [
        "content-length: 10\r\n\r\nhello",
        "transfer-encoding: chunked\r\n\r\n5\r\nhel",
    ] {
        let mut client = Raw::connect(downstream.address());
        client.send(format!("POST / HTTP/1.1\r\nHost: a.test\r\n{body}"));
        assert_eq!(client.reply().status, 200);
        drop(client);
        assert_eq!(told.recv_timeout(DEADLINE).unwrap(), None, "{body}");
    }
}

#[test]
fn upload_breaks_off_at_a_malformed_chunk_after_its_response() {
    let (downstream, told) = early();
    let mut client = Raw::connect(downstream.address());
    client.send("POST / HTTP/1.1\r\nHost: a.test\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello");
    assert_eq!(client.reply().status, 200);
    client.send("\r\nx\r\n");
    assert_eq!(told.recv_timeout(DEADLINE).unwrap(), None);
    assert!(client.is_closed());
}

#[test]
fn client_that_ends_within_a_body_gets_the_reply() {
    let downstream = patient();
    for body in [
        "content-length: 10\r\n\r\nhello",
        "transfer-encoding: chunked\r\n\r\n5\r\nhel",
    ] {
        let mut client = Raw::connect(downstream.address());
        client.send(format!("POST / HTTP/1.1\r\nHost: a.test\r\n{body}"));
        client.finish();
        let reply = client.reply();
        assert_eq!(reply.status, 400, "{body}");
        assert!(reply.has("connection: close"), "{reply:?}");
        assert!(client.is_closed());
    }
}

#[test]
fn other_protocols_are_refused_before_their_head_could_end() {
    let downstream = patient();
    for bytes in [
        &b"SSH-2.0-OpenSSH\r\n"[..],
        b"\0\x01\x02",
        b"GE(T ",
        b"\r\n\r\n\xff",
        b"GET / HTTP/9.1\r\n",
        b"GET /\r\n",
        b"GET / HTTP/1.1\r\na\0b: c\r\n",
        b"GET / HTTP/1.1\r\na: b\r\n c: d\r\n",
    ] {
        let mut client = Raw::connect(downstream.address());
        let reply = client.send(bytes).reply();
        assert_eq!(reply.status, 400, "{}", bytes.escape_ascii());
        assert!(
            reply.headers.iter().any(|line| line.starts_with("date: ")),
            "{reply:?}"
        );
    }
}

#[test]
fn tunnel_begins_behind_the_body_of_its_request() {
    let (tell, told) = channel();
    let downstream = Downstream::start(&settings(), move || {
        let tell = tell.clone();
        move |_: Rc<Connection>, mut request: Request<DownstreamBody>| {
            let tell = tell.clone();
            async move {
                let switched = request.body_mut().take_switched();
                tokio::task::spawn_local(async move {
                    let body = request.into_body().collect().await.unwrap();
                    let mut bytes = [0; 3];
                    if let Some(Switched::Connection(connection)) = switched {
                        let mut connection = connection.await.unwrap();
                        connection.read_exact(&mut bytes).await.unwrap();
                    }
                    let _ = tell.send((body.to_bytes().to_vec(), bytes));
                });
                let mut response = Response::new(Full::<bytes::Bytes>::default());
                *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
                response
            }
        }
    });
    let mut client = Raw::connect(downstream.address());
    client.send(
        "POST / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: x\r\nContent-Length: 4\r\n\r\nab",
    );
    assert_eq!(client.reply().status, 101);
    client.send("cdefg");
    let told = told.recv_timeout(DEADLINE).unwrap();
    assert_eq!(told, (b"abcd".to_vec(), *b"efg"));
}
