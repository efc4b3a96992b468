//! Any bytes as what a downstream peer sends over HTTP/1: where requests begin and end does not depend on how the bytes
//! arrive, and the parser behind our framing never sees a request that the framing did not count.

use std::cell::Cell;
use std::convert::Infallible;

use http_body_util::{BodyExt as _, Empty};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use proxy::codec::check::{self, Http10};
use proxy::codec::framing::{Framing, Limits, StreamPosition, Verdict};
use proxy::codec::refusal::Refusal;
use proxy::route::{normalize_host, normalize_path};

/// Small, so that inputs of a few hundred bytes reach them.
const LIMITS: Limits = Limits {
    head_bytes_max: 512,
    headers_max: 8,
};

/// What the framing made of some bytes.
#[derive(Debug, PartialEq, Eq)]
struct Read {
    heads: u32,
    place: StreamPosition,
    refusal: Option<Refusal>,
}

/// Reads the bytes with our framing, cut in several ways, then with the parser.
pub fn run(bytes: &[u8]) {
    let mut framing = Framing::new(LIMITS);
    let verdict = framing.feed(bytes);
    let (passed, refusal) = match verdict {
        Verdict::Hold(passed) => (passed, None),
        Verdict::Pass => (bytes.len(), None),
        Verdict::Refuse(passed, refusal) => (passed, Some(refusal)),
    };
    let whole = Read {
        heads: framing.heads(),
        place: framing.place(),
        refusal,
    };
    for piece in [1, 2, 3, 7, 64] {
        assert_eq!(
            read_in_pieces(bytes, piece),
            whole,
            "cut into pieces of {piece}"
        );
    }
    let parsed = parse(&bytes[..passed]);
    assert!(
        parsed <= whole.heads,
        "the parser sees {parsed} requests, the framing {}",
        whole.heads
    );
}

fn read_in_pieces(bytes: &[u8], piece: usize) -> Read {
    let mut framing = Framing::new(LIMITS);
    let mut refusal = None;
    for piece in bytes.chunks(piece) {
        match framing.feed(piece) {
            Verdict::Hold(_) => break,
            Verdict::Pass => {}
            Verdict::Refuse(_, why) => {
                refusal = Some(why);
                break;
            }
        }
    }
    Read {
        heads: framing.heads(),
        place: framing.place(),
        refusal,
    }
}

/// Serves what our framing let pass, and returns how many requests the parser saw.
fn parse(bytes: &[u8]) -> u32 {
    let seen = Cell::new(0);
    let service = service_fn(|request: Request<Incoming>| {
        seen.set(seen.get() + 1);
        check_head(&request);
        async {
            // A body that ends too early is the peer's fault; the connection then ends by itself.
            let _ = request.into_body().collect().await;
            Ok::<_, Infallible>(Response::new(Empty::<Bytes>::new()))
        }
    });
    let io = TokioIo::new(tokio::io::join(bytes, tokio::io::sink()));
    let connection = http1::Builder::new().serve_connection(io, service);
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    // Bytes that are no HTTP end in an error, which is what they should do.
    let _ = runtime
        .expect("a runtime without I/O opens nothing")
        .block_on(connection);
    seen.get()
}

/// What the exchange asks of every head, and what later code relies on.
fn check_head<B>(request: &Request<B>) {
    if check::head(request, Http10::Accept).is_err() {
        return;
    }
    if let Ok(path) = normalize_path(request.uri().path()) {
        let climbs = path.split('/').any(|segment| segment == "..");
        assert!(!climbs, "no dot segments are left in {path:?}");
        assert!(!path.contains('\\'), "no backslash is left in {path:?}");
    }
    let host = request
        .headers()
        .get(hyper::header::HOST)
        .and_then(|host| host.to_str().ok());
    if let Some(host) = host {
        let host = normalize_host(host);
        assert!(
            !host.bytes().any(|byte| byte.is_ascii_uppercase()),
            "lower case: {host:?}"
        );
    }
}
