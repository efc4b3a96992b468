//! Uploads that are answered before they end, and clients that disconnect during an upload.

use std::io::{BufRead, BufReader, ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::rc::Rc;
use std::sync::mpsc::{Receiver, channel};

use futures_util::stream;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::Frame;
use hyper::{Request, Response, StatusCode};
use proxy::exchange::downstream::body::Switched;
use proxy::exchange::{Connection, DownstreamBody};
use proxy::telemetry::Counter;
use rand::rngs::SmallRng;
use rand::{RngExt as _, SeedableRng as _};
use tokio::io::AsyncReadExt;

use crate::support::DEADLINE;
use crate::support::downstream::{Downstream, settings};
use crate::support::raw::{GET, Raw};

/// Body of an upload; `None` if it was incomplete.
type Outcome = Option<Vec<u8>>;

/// Starts a server that answers at once and reads the body afterwards, like an endpoint that replies early.
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

/// Starts a server that reads the body, and answers 400 if it is incomplete.
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
fn response_that_breaks_off_is_never_taken_for_whole() {
    let downstream = Downstream::start(&settings(), || {
        |_: Rc<Connection>, _: Request<DownstreamBody>| async move {
            let piece = Frame::data(bytes::Bytes::from_static(b"half"));
            let pieces = [Ok(piece), Err(std::io::Error::other("breaks off"))];
            Response::new(StreamBody::new(stream::iter(pieces)))
        }
    });
    // only a reset tells that a body which the end of the connection delimits is not whole
    for (version, is_reset) in [("1.0", true), ("1.1", false)] {
        let mut client = TcpStream::connect(downstream.address()).unwrap();
        client.set_read_timeout(Some(DEADLINE)).unwrap();
        write!(client, "GET / HTTP/{version}\r\nHost: a\r\n\r\n").unwrap();
        let mut bytes = Vec::new();
        let read = client.read_to_end(&mut bytes);
        let kind = read.err().map(|error| error.kind());
        assert_eq!(
            kind,
            is_reset.then_some(ErrorKind::ConnectionReset),
            "{version}"
        );
        assert!(!bytes.ends_with(b"0\r\n\r\n"), "no last chunk: {version}");
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
                        let mut connection = connection.await.unwrap().connection;
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

/// Serialized request, and its body.
struct Upload {
    bytes: Vec<u8>,
    body: Vec<u8>,
}

fn upload(rng: &mut SmallRng) -> Upload {
    // around what is read at once, and what may wait to be taken
    let longest = [0, 1, 100, 5_000, 20_000, 70_000][rng.random_range(0..6)];
    let body: Vec<u8> = (0..rng.random_range(0..=longest))
        .map(|_| rng.random())
        .collect();
    let mut bytes = b"POST / HTTP/1.1\r\nHost: a.test\r\n".to_vec();
    if rng.random_bool(0.3) {
        bytes.extend_from_slice(b"Expect: 100-continue\r\n");
    }
    if rng.random_bool(0.5) {
        bytes.extend_from_slice(format!("Content-Length: {}\r\n\r\n", body.len()).as_bytes());
        bytes.extend_from_slice(&body);
        return Upload { bytes, body };
    }
    bytes.extend_from_slice(b"Transfer-Encoding: chunked\r\n\r\n");
    let mut rest = &body[..];
    while !rest.is_empty() {
        let size = rng.random_range(1..=rest.len().min(30_000));
        bytes.extend_from_slice(format!("{size:X};x=y\r\n").as_bytes());
        bytes.extend_from_slice(&rest[..size]);
        bytes.extend_from_slice(b"\r\n");
        rest = &rest[size..];
    }
    bytes.extend_from_slice(b"0\r\n\r\n");
    Upload { bytes, body }
}

/// Reads a response of either framing after interim responses, and returns its body.
fn read_reply(reader: &mut impl BufRead) -> Vec<u8> {
    let line = |reader: &mut dyn BufRead| {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        assert!(line.ends_with("\r\n"), "a whole line: {line:?}");
        line.trim_end().to_owned()
    };
    let mut status = line(reader);
    while status == "HTTP/1.1 100 Continue" {
        assert_eq!(line(reader), "");
        status = line(reader);
    }
    assert_eq!(status, "HTTP/1.1 200 OK");
    let mut length = None;
    loop {
        let field = line(reader);
        if let Some(value) = field.strip_prefix("content-length: ") {
            length = Some(value.parse().unwrap());
        } else if field.is_empty() {
            break;
        }
    }
    let mut body = Vec::new();
    loop {
        let size = length.unwrap_or_else(|| usize::from_str_radix(&line(reader), 16).unwrap());
        let start = body.len();
        body.resize(start + size, 0);
        reader.read_exact(&mut body[start..]).unwrap();
        match length {
            Some(_) => return body,
            None => assert_eq!(line(reader), ""),
        }
        if size == 0 {
            return body;
        }
    }
}

#[test]
fn random_pipelined_uploads_are_echoed_in_order() {
    let downstream = Downstream::start(&settings(), || {
        |_: Rc<Connection>, request: Request<DownstreamBody>| async move {
            Response::new(request.into_body())
        }
    });
    for seed in 0..60 {
        let mut rng = SmallRng::seed_from_u64(seed);
        let uploads: Vec<_> = (0..rng.random_range(1..8))
            .map(|_| upload(&mut rng))
            .collect();
        let stream = TcpStream::connect(downstream.address()).unwrap();
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        stream.set_nodelay(true).unwrap();
        let bytes: Vec<u8> = uploads
            .iter()
            .flat_map(|upload| upload.bytes.clone())
            .collect();
        let mut writer = stream.try_clone().unwrap();
        let writing = std::thread::spawn(move || {
            let mut rest = &bytes[..];
            while !rest.is_empty() {
                let most = [1, 10, 1_000, 40_000][rng.random_range(0..4)];
                let (piece, after) = rest.split_at(rng.random_range(1..=most.min(rest.len())));
                writer.write_all(piece).unwrap();
                rest = after;
            }
        });
        let mut reader = BufReader::new(stream);
        for (number, upload) in uploads.iter().enumerate() {
            let body = read_reply(&mut reader);
            assert!(
                body == upload.body,
                "upload {number} of seed {seed} comes back"
            );
        }
        writing.join().unwrap();
    }
    assert_eq!(downstream.counter(Counter::TaskPanics), 0);
}
