//! What a port speaks, as far as `appProtocol` and the port's name tell.
//!
//! Source: Istio's ConvertProtocol; `kubernetes.io/h2c` and the like are Kubernetes' standard application protocols.
//! They count for Services and for what represents one; a port of a ServiceEntry speaks what its `protocol` says.

/// The word that decides what a port speaks: its `appProtocol`, else its name, each up to the first `-`; what is
/// declared where there is no `appProtocol` and the name is not a known word.
pub fn named<'a>(app_protocol: Option<&'a str>, name: &'a str, declared: &'a str) -> &'a str {
    let others = ["http", "https", "tcp", "tls", "mongo", "redis", "mysql"];
    match app_protocol.map(word) {
        Some(decided) => decided,
        None if is_http2(word(name)) || is_among(&others, word(name)) => word(name),
        None => declared,
    }
}

/// A text up to its first `-`, except that `grpc-web` has one of its own.
fn word(text: &str) -> &str {
    match text.get(..GRPC_WEB.len()) {
        Some(start) if start.eq_ignore_ascii_case(GRPC_WEB) => start,
        _ => text.split_once('-').map_or(text, |(start, _)| start),
    }
}

/// The word for gRPC-Web.
pub const GRPC_WEB: &str = "grpc-web";

/// Whether such a word represents something over HTTP/2. As in Istio, gRPC-Web does: what translates it into gRPC
/// speaks both.
pub fn is_http2(word: &str) -> bool {
    is_among(
        &["http2", "grpc", "h2c", "kubernetes.io/h2c", GRPC_WEB],
        word,
    )
}

/// Whether what such a word represents has paths.
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
