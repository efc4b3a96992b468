//! HTTP/2 frames as text, for test tables.
//!
//! A script is a list of steps, separated by ` / `:
//!
//! - `KIND FLAGS STREAM PAYLOAD` sends a frame. `KIND` is the name of a frame type or its number. `FLAGS` are letters:
//!   `e` END_STREAM, `a` ACK, `h` END_HEADERS, `p` PADDED, `y` PRIORITY, `-` none.
//! - `bytes PAYLOAD` sends bytes that are not necessarily a frame.
//! - `xN` before one of them repeats it N times; a stream that is written as `N+` then increases by two each time.
//!   Several frames, separated by ` & `, are repeated together.
//! - `await KIND STREAM` reads until a frame of this kind arrives; `await end STREAM` until the stream has ended.
//! - `close` ends the connection.
//!
//! A `PAYLOAD` has the escapes of tables, and `{name=value; name=value}` for fields in HPACK without indexing, `[N]`
//! for a number of 32 bits, `<N>` for N zero bytes, and `<N:xx>` for N bytes of that value. `get`, `head` and `post`
//! among the fields represent the fields of such a request.

use super::frames::{
    CONTINUATION, DATA, END_HEADERS, END_STREAM, Frame, GOAWAY, HEADERS, PADDED, PING, PRIORITY,
    PUSH_PROMISE, RST_STREAM, SETTINGS, WINDOW_UPDATE,
};
use super::table::unescape;

/// Frame types by name.
const KINDS: [(&str, u8); 10] = [
    ("DATA", DATA),
    ("HEADERS", HEADERS),
    ("PRIORITY", PRIORITY),
    ("RST_STREAM", RST_STREAM),
    ("SETTINGS", SETTINGS),
    ("PUSH_PROMISE", PUSH_PROMISE),
    ("PING", PING),
    ("GOAWAY", GOAWAY),
    ("WINDOW_UPDATE", WINDOW_UPDATE),
    ("CONTINUATION", CONTINUATION),
];

/// Step of a script.
#[derive(Debug)]
pub enum Step {
    Send(Vec<u8>),
    /// Reads until a frame of this kind arrives.
    AwaitFrame {
        kind: u8,
        stream: u32,
    },
    /// Reads until the stream has ended.
    AwaitEnd {
        stream: u32,
    },
    Close,
}

/// Parses a script; adjacent bytes are sent together. `scheme` is that of the requests.
pub fn parse(text: &str, scheme: &str) -> Vec<Step> {
    let mut steps = Vec::new();
    for step in text.split(" / ").map(str::trim) {
        let step = match step.split_once(' ') {
            _ if step == "close" => Step::Close,
            Some(("await", frame)) => awaited(frame),
            _ => Step::Send(bytes(step, scheme)),
        };
        match (steps.last_mut(), step) {
            (Some(Step::Send(before)), Step::Send(more)) => before.extend(more),
            (_, step) => steps.push(step),
        }
    }
    steps
}

fn awaited(frame: &str) -> Step {
    let (kind, stream) = frame.split_once(' ').unwrap_or((frame, "0"));
    let stream = stream.parse().unwrap();
    match kind {
        "end" => Step::AwaitEnd { stream },
        kind => Step::AwaitFrame {
            kind: kind_of(kind),
            stream,
        },
    }
}

fn kind_of(name: &str) -> u8 {
    let known = KINDS.iter().find(|(known, _)| *known == name);
    known.map_or_else(|| name.parse().expect(name), |(_, kind)| *kind)
}

fn flags(letters: &str) -> u8 {
    let flag = |letter| match letter {
        'e' | 'a' => END_STREAM,
        'h' => END_HEADERS,
        'p' => PADDED,
        'y' => 0x20,
        '-' => 0,
        other => panic!("no flag: {other}"),
    };
    letters.chars().map(flag).fold(0, |all, flag| all | flag)
}

fn bytes(step: &str, scheme: &str) -> Vec<u8> {
    let repeated = step.strip_prefix('x').and_then(|rest| {
        let (count, step) = rest.split_once(' ')?;
        Some((count.parse::<u32>().ok()?, step))
    });
    let (count, step) = repeated.unwrap_or((1, step));
    let frames: Vec<Draft> = step
        .split(" & ")
        .map(|text| Draft::parse(text, scheme))
        .collect();
    let rounds = (0..count).flat_map(|round| frames.iter().map(move |frame| frame.bytes(round)));
    rounds.flatten().collect()
}

/// Frame whose stream may depend on the repetition.
enum Draft {
    Bytes(Vec<u8>),
    Frame {
        kind: u8,
        flags: u8,
        first: u32,
        growth: u32,
        payload: Vec<u8>,
    },
}

impl Draft {
    fn parse(text: &str, scheme: &str) -> Self {
        if let Some(bytes) = text.strip_prefix("bytes ") {
            return Self::Bytes(payload(bytes, scheme));
        }
        let mut columns = text.splitn(4, ' ');
        let mut column = || columns.next();
        let kind = kind_of(column().expect(text));
        let flags = flags(column().expect(text));
        let stream = column().expect(text);
        let (first, growth) = stream
            .strip_suffix('+')
            .map_or((stream, 0), |first| (first, 2));
        Self::Frame {
            kind,
            flags,
            first: first.parse().expect(text),
            growth,
            payload: payload(column().unwrap_or_default(), scheme),
        }
    }

    fn bytes(&self, round: u32) -> Vec<u8> {
        match self {
            Self::Bytes(bytes) => bytes.clone(),
            Self::Frame {
                kind,
                flags,
                first,
                growth,
                payload,
            } => Frame::bytes(*kind, *flags, first + growth * round, payload),
        }
    }
}

fn payload(text: &str, scheme: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find(['{', '[', '<']) {
        bytes.extend(unescape(&rest[..at]));
        let end = match rest.as_bytes()[at] {
            b'{' => '}',
            b'[' => ']',
            _ => '>',
        };
        let (inner, after) = rest[at + 1..].split_once(end).expect(text);
        match end {
            '}' => bytes.extend(block(inner, scheme)),
            ']' => bytes.extend(inner.parse::<u32>().unwrap().to_be_bytes()),
            _ => {
                let (count, value) = inner.split_once(':').unwrap_or((inner, "0"));
                let value = u8::from_str_radix(value, 16).unwrap();
                bytes.resize(bytes.len() + count.parse::<usize>().unwrap(), value);
            }
        }
        rest = after;
    }
    bytes.extend(unescape(rest));
    bytes
}

fn block(fields: &str, scheme: &str) -> Vec<u8> {
    let mut block = Vec::new();
    for field in fields.split("; ") {
        match field {
            "get" | "head" | "post" => {
                let method = field.to_uppercase();
                let request = [
                    (":method", &*method),
                    (":scheme", scheme),
                    (":path", "/"),
                    (":authority", "a.test"),
                ];
                for (name, value) in request {
                    literal(&mut block, name.as_bytes(), value.as_bytes());
                }
            }
            field => {
                let at = field.char_indices().skip(1).find(|(_, char)| *char == '=');
                let at = at.map_or(0, |(at, _)| at);
                literal(
                    &mut block,
                    &unescape(&field[..at]),
                    &unescape(&field[at + 1..]),
                );
            }
        }
    }
    block
}

/// Encodes a field without indexing and with a literal name (RFC 7541, section 6.2.2).
pub fn literal(block: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    block.push(0);
    for text in [name, value] {
        assert!(text.len() < 127, "one byte holds the length");
        block.push(u8::try_from(text.len()).unwrap());
        block.extend_from_slice(text);
    }
}
