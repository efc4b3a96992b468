//! What a port speaks, as far as its own words tell.
//!
//! Source: Istio's protocol selection; `kubernetes.io/h2c` is Kubernetes' standard application protocol.

/// The word that decides what a port speaks: its `appProtocol`, else the prefix of its name up to the first `-` if that is a
/// known one, else what is declared.
pub fn named<'a>(app_protocol: Option<&'a str>, name: &'a str, declared: &'a str) -> &'a str {
    let by_name = name.split_once('-').map_or(name, |(prefix, _)| prefix);
    let others = ["http", "https", "tcp", "tls", "mongo", "redis", "mysql"];
    let is_known = is_http2(by_name) || is_among(&others, by_name);
    match app_protocol {
        Some(app_protocol) => app_protocol,
        // its framing is over HTTP/1.1
        None if name.to_ascii_lowercase().starts_with("grpc-web") => "http",
        None if is_known => by_name,
        None => declared,
    }
}

/// Whether such a word stands for something over HTTP/2.
pub fn is_http2(word: &str) -> bool {
    is_among(
        &["http2", "grpc", "h2c", "kubernetes.io/h2c", "grpc-web"],
        word,
    )
}

/// Whether what such a word stands for has paths.
pub fn has_paths(word: &str) -> bool {
    !is_among(&["tcp", "tls", "https", "mongo", "redis", "mysql"], word)
}

fn is_among(known: &[&str], word: &str) -> bool {
    known.iter().any(|known| known.eq_ignore_ascii_case(word))
}
