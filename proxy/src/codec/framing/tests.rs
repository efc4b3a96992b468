use proptest::prelude::*;

use super::*;

const LIMITS: Limits = Limits {
    head_bytes_max: 512,
    headers_max: 8,
};

/// Feeds all bytes at once; returns the verdict, the number of valid heads, and the final position.
fn read(bytes: &[u8]) -> (Verdict, u32, StreamPosition) {
    let mut framing = Framing::new(LIMITS);
    let verdict = framing.feed(bytes);
    (verdict, framing.heads(), framing.place())
}

/// Feeds in pieces; the bytes passed on in all, the refusal if any, how many heads were good, and where it ended.
fn read_cut(bytes: &[u8], cuts: &[usize]) -> (usize, Option<Refusal>, u32, StreamPosition) {
    let mut framing = Framing::new(LIMITS);
    let mut cuts: Vec<_> = cuts.iter().map(|cut| cut % (bytes.len() + 1)).collect();
    cuts.extend([0, bytes.len()]);
    cuts.sort_unstable();
    let mut passed = 0;
    let mut refusal = None;
    for piece in cuts.windows(2) {
        match framing.feed(&bytes[piece[0]..piece[1]]) {
            Verdict::Pass => passed = piece[1],
            Verdict::Hold(length) => {
                passed = piece[0] + length;
                break;
            }
            Verdict::Refuse(length, why) => {
                passed = piece[0] + length;
                refusal = Some(why);
                break;
            }
        }
    }
    (passed, refusal, framing.heads(), framing.place())
}

#[test]
fn valid_requests_are_accepted() {
    for (bytes, heads, place) in [
        (&b""[..], 0, StreamPosition::Between),
        (b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", 1, StreamPosition::Between),
        (b"\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", 1, StreamPosition::Between),
        (b"GET / HTTP/1.1\r\nHost: a\r\n", 0, StreamPosition::Head),
        (b"GET / HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n\r\n", 2, StreamPosition::Between),
        (b"POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc", 1, StreamPosition::Between),
        (b"POST / HTTP/1.1\r\ncontent-length:3\r\n\r\nab", 1, StreamPosition::Body),
        (b"POST / HTTP/1.1\r\nContent-Length: 0\r\n\r\n", 1, StreamPosition::Between),
        (
            b"POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\n\r\n\rGET / HTTP/1.1\r\n\r\n",
            2,
            StreamPosition::Between,
        ),
        (
            b"POST / HTTP/1.1\r\nTransfer-Encoding: Chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
            1,
            StreamPosition::Between,
        ),
        (
            b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nA;x=\"y\"\r\n0123456789\r\n0\r\nx-t: 1\r\n\r\nG",
            1,
            StreamPosition::Head,
        ),
        (
            b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n\r\n\r\r\n0\r\n\r\n",
            1,
            StreamPosition::Between,
        ),
    ] {
        assert_eq!(read(bytes), (Verdict::Pass, heads, place), "{:?}", bytes.escape_ascii());
    }
}

#[test]
fn ambiguous_heads_are_rejected() {
    for (headers, expected) in [
        (&b"Content-Length: 3\r\nTransfer-Encoding: chunked"[..], Refusal::Framing),
        (b"Transfer-Encoding: chunked\r\nContent-Length: 3", Refusal::Framing),
        (b"Content-Length: 3\r\nContent-Length: 3", Refusal::Framing),
        (b"Content-Length: 3\r\nContent-Length: 4", Refusal::Framing),
        (b"Content-Length: 3, 3", Refusal::Framing),
        (b"Content-Length: +3", Refusal::Framing),
        (b"Content-Length: -1", Refusal::Framing),
        (b"Content-Length: 0x3", Refusal::Framing),
        (b"Content-Length: ", Refusal::Framing),
        (b"Content-Length: 3 3", Refusal::Framing),
        (b"Content-Length: 18446744073709551616", Refusal::Framing),
        (
            b"Content-Length: 00000000000000000000000000000000000000000000000000000000000000000000003",
            Refusal::Framing,
        ),
        (b"Transfer-Encoding: identity", Refusal::Framing),
        (b"Transfer-Encoding: gzip, chunked", Refusal::Framing),
        (b"Transfer-Encoding: chunked, chunked", Refusal::Framing),
        (b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", Refusal::Framing),
        (b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity", Refusal::Framing),
        (b"Transfer-Encoding: \x0bchunked", Refusal::Framing),
        (b"Transfer-Encoding: \"chunked\"", Refusal::Framing),
        (b"Transfer-Encoding:", Refusal::Framing),
        (b"X: a\r\n b", Refusal::Header),
        (b"X: a\r\n\tb", Refusal::Header),
        (b"X: a\rb", Refusal::Header),
        (b"X: a\nTransfer-Encoding: chunked", Refusal::Header),
        (b"X: a\r\rY: b", Refusal::Header),
    ] {
        let bytes = [b"POST / HTTP/1.1\r\nHost: a\r\n", headers, b"\r\n\r\n"].concat();
        let refused = (Verdict::Refuse(0, expected), 0, StreamPosition::Refused);
        assert_eq!(read(&bytes), refused, "{:?}", headers.escape_ascii());
    }
}

#[test]
fn a_target_with_a_fragment_is_rejected() {
    for (line, refused) in [
        (&b"GET /a#b HTTP/1.1"[..], true),
        (b"GET /a?b#c HTTP/1.1", true),
        (b"GET # HTTP/1.1", true),
        (b"GET http://a#b HTTP/1.1", true),
        (b"GET /a%23b HTTP/1.1", false),
        // a token may hold it
        (b"G#T / HTTP/1.1", false),
    ] {
        let bytes = [b"\r\n", line, b"\r\nX: #\r\n\r\n"].concat();
        let (_, found, ..) = read_cut(&bytes, &[]);
        assert_eq!(
            found == Some(Refusal::Target),
            refused,
            "{}",
            line.escape_ascii()
        );
        for at in 0..bytes.len() {
            let (_, cut, ..) = read_cut(&bytes, &[at]);
            assert_eq!(cut, found, "{} cut at {at}", line.escape_ascii());
        }
    }
}

#[test]
fn malformed_chunks_are_rejected() {
    for body in [
        &b"\r\n"[..],
        b"x\r\n",
        b"0x3\r\nabc\r\n",
        b"+3\r\nabc\r\n",
        b"-3\r\nabc\r\n",
        b"3 \r\nabc\r\n",
        b" 3\r\nabc\r\n",
        b"3\nabc\r\n",
        b"3\rabc\r\n",
        b"3;a\nb\r\nabc\r\n",
        b"3\r\nabcd\r\n",
        b"3\r\nabc\n",
        b"3\r\nabc0\r\n",
        b"00000000000000003\r\nabc\r\n",
        b"10000000000000000\r\nabc\r\n",
        b"0\r\nx: a\r\n b\r\n\r\n",
        b"0\r\nx: a\nb\r\n\r\n",
    ] {
        let bytes = [
            b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n",
            body,
        ]
        .concat();
        let (verdict, heads, place) = read(&bytes);
        let refused = matches!(verdict, Verdict::Refuse(_, Refusal::Chunk));
        assert!(refused, "{:?}: {verdict:?}", body.escape_ascii());
        assert_eq!((heads, place), (1, StreamPosition::Refused));
    }
}

#[test]
fn request_before_a_malformed_one_is_accepted() {
    let good = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    let bad = b"GET / HTTP/1.1\r\nX: a\nb\r\n\r\n";
    let (verdict, heads, _) = read(&[&good[..], bad].concat());
    assert_eq!(verdict, Verdict::Refuse(good.len(), Refusal::Header));
    assert_eq!(heads, 1);
}

#[test]
fn head_limits_are_enforced() {
    let many: String = (0..8).map(|number| format!("x{number}: y\r\n")).collect();
    let fits = format!("GET / HTTP/1.1\r\n{many}\r\n");
    assert_eq!(read(fits.as_bytes()).0, Verdict::Pass);
    let fields = format!("GET / HTTP/1.1\r\n{many}one: more\r\n\r\n");
    let bytes = format!("GET /{} HTTP/1.1\r\n", "a".repeat(512));
    let endless = "x".repeat(513);
    let empty = "\r\n".repeat(300);
    // Which of its two faults such a line is refused for must not depend on how it arrives.
    let malformed_behind_limit = format!("{endless}\r\rx");
    for text in [fields, bytes, endless, empty, malformed_behind_limit] {
        let refused = Verdict::Refuse(0, Refusal::HeadersTooLarge);
        assert_eq!(read(text.as_bytes()).0, refused);
    }
    let start = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
    for body in [
        format!("3;{}\r\n", "x".repeat(512)),
        format!("0\r\n{}\r\n", "x: y\r\n".repeat(9)),
        format!("0\r\nx: {}\r\n", "y".repeat(512)),
    ] {
        let (verdict, ..) = read(format!("{start}{body}").as_bytes());
        assert!(
            matches!(verdict, Verdict::Refuse(_, Refusal::Chunk)),
            "{body}"
        );
    }
}

#[test]
fn bytes_after_an_upgrade_wait_for_its_response() {
    for head in [
        &b"GET / HTTP/1.1\r\nUpgrade: websocket\r\n\r\n"[..],
        b"CONNECT a:443 HTTP/1.1\r\n\r\n",
    ] {
        let bytes = [head, b"GET / HTTP/1.1\r\n\r\n"].concat();
        let mut framing = Framing::new(LIMITS);
        assert_eq!(framing.feed(&bytes), Verdict::Hold(head.len()));
        assert_eq!(
            (framing.heads(), framing.place()),
            (1, StreamPosition::Held)
        );
        framing.resume();
        assert_eq!(framing.feed(&bytes[head.len()..]), Verdict::Pass);
        assert_eq!(
            (framing.heads(), framing.place()),
            (2, StreamPosition::Between)
        );

        let mut framing = Framing::new(LIMITS);
        framing.feed(head);
        framing.tunnel();
        assert_eq!(framing.feed(b"\0\n\r anything"), Verdict::Pass);
    }
}

/// Pieces that requests and attacks on them are made of.
fn any_stream() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop::sample::select(vec![
        "GET / HTTP/1.1\r\n",
        "POST /x HTTP/1.1\r\n",
        "Host: a\r\n",
        "Content-Length: 5\r\n",
        "Transfer-Encoding: chunked\r\n",
        "Transfer-Encoding: gzip\r\n",
        "Upgrade: h2c\r\n",
        "X-Long: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n",
        "\r\n",
        "\r",
        "\n",
        " ",
        "5\r\nhello\r\n",
        "0\r\n",
        "hello",
        "0\r\n\r\n",
        "3;x\r\n",
    ]);
    prop::collection::vec(piece, 0..14).prop_map(|pieces| pieces.concat().into_bytes())
}

proptest! {
    #[test]
    fn verdict_does_not_depend_on_segmentation(
        bytes in any_stream(),
        cuts in prop::collection::vec(any::<usize>(), 0..8),
    ) {
        let (passed, refusal, heads, place) = read_cut(&bytes, &[]);
        let (cut_passed, cut_refusal, cut_heads, cut_place) = read_cut(&bytes, &cuts);
        prop_assert_eq!((refusal, heads, place), (cut_refusal, cut_heads, cut_place));
        // Pieces of a bad head may have passed before it turned out bad; never less than what was good.
        prop_assert!(cut_passed >= passed);
    }

    #[test]
    fn any_bytes_are_parsed_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        read(&bytes);
    }
}
