//! Application protocol of a port, from `appProtocol` and the port's name.
//!
//! Source: Istio's ConvertProtocol; `kubernetes.io/h2c` and similar values are standard application protocols of
//! Kubernetes. Applies to Services and their equivalents; a port of a ServiceEntry uses its `protocol` field.

/// Returns the word that determines the protocol of a port: `appProtocol`, otherwise the name, each up to the first
/// `-`. Returns `declared` if there is no `appProtocol` and the name has no known word.
pub fn named<'a>(app_protocol: Option<&'a str>, name: &'a str, declared: &'a str) -> &'a str {
    let others = ["http", "https", "tcp", "tls", "mongo", "redis", "mysql"];
    match app_protocol.map(word) {
        Some(decided) => decided,
        None if is_http2(word(name)) || is_among(&others, word(name)) => word(name),
        None => declared,
    }
}

/// Returns a text up to its first `-`, except that `grpc-web` is kept whole.
fn word(text: &str) -> &str {
    match text.get(..GRPC_WEB.len()) {
        Some(start) if start.eq_ignore_ascii_case(GRPC_WEB) => start,
        _ => text.split_once('-').map_or(text, |(start, _)| start),
    }
}

/// Protocol word of gRPC-Web.
pub const GRPC_WEB: &str = "grpc-web";

/// Whether a protocol word means HTTP/2. As in Istio, gRPC-Web does, because servers that translate it to gRPC support
/// both.
pub fn is_http2(word: &str) -> bool {
    is_among(
        &["http2", "grpc", "h2c", "kubernetes.io/h2c", GRPC_WEB],
        word,
    )
}

/// Whether the protocol of a word has URL paths.
pub fn has_paths(word: &str) -> bool {
    let opaque = [
        "tcp",
        "tls",
        "https",
        "kubernetes.io/wss",
        "mongo",
        "redis",
        "mysql",
    ];
    !is_among(&opaque, word)
}

fn is_among(known: &[&str], word: &str) -> bool {
    known.iter().any(|known| known.eq_ignore_ascii_case(word))
}
