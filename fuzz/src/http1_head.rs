//! Fuzz target: arbitrary bytes from a downstream HTTP/1 peer. The result does not depend on how the bytes are split,
//! and hyper parses the same requests with the same ends. A request that only our decoder refuses is refused for a
//! listed reason.

mod reasons;

use std::cell::RefCell;
use std::convert::Infallible;

use bytes::BytesMut;
use http_body_util::{BodyExt as _, Empty};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{HeaderMap, Method, Request, Response, StatusCode, Uri, Version};
use hyper_util::rt::TokioIo;
use proxy::codec::check::{self, Http10};
use proxy::codec::refusal::Refusal;
use traffic::route::{normalize_host, normalize_path};
use wire::http1::request::decoder::{Decoder, Limits, Piece};

use self::reasons::Refused;

/// Limits that inputs of a few hundred bytes reach.
const LIMITS: Limits = Limits {
    head_bytes_max: 512,
    headers_max: 8,
};

/// Request.
#[derive(Debug, PartialEq, Eq)]
struct Message {
    method: Method,
    uri: Uri,
    version: Version,
    headers: HeaderMap,
    body: Vec<u8>,
    trailers: Option<HeaderMap>,
    /// Whether the request was read completely.
    complete: bool,
}

impl Message {
    fn of<B>(request: &Request<B>) -> Self {
        Self {
            method: request.method().clone(),
            uri: request.uri().clone(),
            version: request.version(),
            headers: request.headers().clone(),
            body: Vec::new(),
            trailers: None,
            complete: false,
        }
    }
}

/// Result of our decoder.
#[derive(Debug, Default, PartialEq, Eq)]
struct Read {
    messages: Vec<Message>,
    refused: Option<Refused>,
}

/// Reads the bytes with our decoder, split in several ways, and with hyper.
pub fn run(bytes: &[u8]) {
    let ours = read(bytes, bytes.len().max(1));
    for piece in [1, 2, 3, 7, 64] {
        assert_eq!(read(bytes, piece), ours, "cut into pieces of {piece}");
    }
    compare(bytes, &ours, &read_by_hyper(bytes));
}

/// Compares the results of both parsers. A request that only hyper accepts must be refused for a reason in [`reasons`].
/// Hyper accepts every request that we accept, except targets in which we escape characters that a URI must not
/// contain.
fn compare(bytes: &[u8], ours: &Read, theirs: &[Message]) {
    for (ours, theirs) in ours.messages.iter().zip(theirs) {
        let ours_head = (&ours.method, &ours.uri, ours.version, &ours.headers);
        let theirs_head = (&theirs.method, &theirs.uri, theirs.version, &theirs.headers);
        assert_eq!(ours_head, theirs_head);
        if ours.complete {
            let ours_body = (&ours.body, &ours.trailers);
            assert_eq!(ours_body, (&theirs.body, &theirs.trailers));
            assert!(theirs.complete, "hyper sees no end of {ours:?}");
        } else {
            assert!(theirs.body.starts_with(&ours.body));
        }
    }
    let (count, more) = (ours.messages.len(), theirs.len());
    if count > more {
        let first = &ours.messages[more];
        assert!(has_escapes(first, bytes), "only we see {first:?}");
        return;
    }
    let cut_short = ours.messages.last().filter(|message| !message.complete);
    let longer = cut_short.is_some_and(|message| {
        let theirs = &theirs[count - 1];
        theirs.complete || theirs.body.len() > message.body.len()
    });
    if longer || count < more {
        let more = &theirs[count - usize::from(longer)..];
        let refused = ours.refused.expect("hyper reads on only what we refuse");
        assert!(
            refused.is_listed(bytes, LIMITS),
            "{refused:?} is not on the list, and hyper reads {more:?}"
        );
    }
}

/// Whether the target of a message has escaped characters that a URI must not contain.
fn has_escapes(message: &Message, bytes: &[u8]) -> bool {
    let target = message.uri.to_string();
    let characters = [("%22", b'"'), ("%3C", b'<'), ("%3E", b'>'), ("%60", b'`')];
    let mut characters = characters.iter();
    characters.any(|(escape, byte)| target.contains(escape) && bytes.contains(byte))
}

/// Reads the bytes in pieces of this size, up to the first request after which the connection ends.
fn read(bytes: &[u8], piece: usize) -> Read {
    let mut reader = Reader {
        decoder: Decoder::new(LIMITS),
        input: BytesMut::new(),
        read: Read::default(),
        came: 0,
        began: 0,
        persistent: true,
    };
    for piece in bytes.chunks(piece) {
        reader.input.extend_from_slice(piece);
        reader.came += piece.len();
        if let Err(refusal) = reader.drain() {
            let taken = reader.taken();
            let is_body = reader.decoder.is_in_body();
            reader.read.refused = Some(Refused {
                refusal,
                began: reader.began,
                line: is_body.then_some(taken),
            });
            break;
        }
    }
    reader.read
}

/// Our decoder with its input.
struct Reader {
    decoder: Decoder,
    input: BytesMut,
    read: Read,
    /// Number of bytes received.
    came: usize,
    /// Offset at which the current head (including empty lines before it) or body begins.
    began: usize,
    persistent: bool,
}

impl Reader {
    /// Returns the number of bytes that the decoder has consumed.
    fn taken(&self) -> usize {
        self.came - self.input.len()
    }

    /// Reads the available bytes.
    fn drain(&mut self) -> Result<(), Refusal> {
        loop {
            if let Some(message) = self.read.messages.last_mut()
                && !message.complete
            {
                match self.decoder.body(&mut self.input)? {
                    Piece::Data(bytes) => message.body.extend_from_slice(&bytes),
                    Piece::End(trailers) => {
                        message.trailers = trailers;
                        message.complete = true;
                        self.began = self.taken();
                    }
                    Piece::More => return Ok(()),
                }
                continue;
            }
            if !self.persistent || self.input.is_empty() {
                return Ok(());
            }
            let head = self.decoder.head(&mut self.input, &mut HeaderMap::new())?;
            let Some(head) = head else {
                return Ok(());
            };
            check_head(&head.request);
            self.began = self.taken();
            self.persistent = head.persistent;
            self.read.messages.push(Message::of(&head.request));
        }
    }
}

/// Reads the bytes with hyper.
fn read_by_hyper(bytes: &[u8]) -> Vec<Message> {
    let seen = RefCell::new(Vec::new());
    let service = service_fn(|request: Request<Incoming>| {
        let index = seen.borrow().len();
        seen.borrow_mut().push(Message::of(&request));
        let seen = &seen;
        let mut response = Response::new(Empty::<Bytes>::new());
        if *request.method() == Method::CONNECT {
            // no tunnel, so that what follows are requests
            *response.status_mut() = StatusCode::NOT_FOUND;
        }
        async move {
            let mut body = request.into_body();
            while let Some(frame) = body.frame().await {
                // a body that ends too early is the peer's fault; the connection then ends by itself
                let Ok(frame) = frame else {
                    return Ok::<_, Infallible>(response);
                };
                let message = &mut seen.borrow_mut()[index];
                match frame.into_data() {
                    Ok(data) => message.body.extend_from_slice(&data),
                    Err(frame) => message.trailers = frame.into_trailers().ok(),
                }
            }
            seen.borrow_mut()[index].complete = true;
            Ok(response)
        }
    });
    let io = TokioIo::new(tokio::io::join(bytes, tokio::io::sink()));
    // the end of the bytes is not that of the last request's answer
    let connection = http1::Builder::new()
        .half_close(true)
        .serve_connection(io, service);
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    // Bytes that are no HTTP end in an error, which is what they should do.
    let _ = runtime
        .expect("a runtime without I/O opens nothing")
        .block_on(connection);
    seen.into_inner()
}

/// Checks a head as the exchange does, and checks the properties that later code relies on.
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
