//! Changes of headers that another service asks for.

use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use wire::http1::response::decoder::is_too_late;

/// Way in which a header is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetHeader {
    /// Beside values that it has.
    Append,
    /// Unless it has a value.
    IfAbsent,
    /// In place of its values.
    Overwrite,
    /// In place of its values, if it has any.
    IfPresent,
}

/// Headers to set, in their order.
#[derive(Clone, Debug, Default)]
pub struct HeaderChanges(pub Vec<(HeaderName, HeaderValue, SetHeader)>);

impl HeaderChanges {
    /// Sets the headers.
    pub fn apply(&self, headers: &mut HeaderMap) {
        for (name, value, how) in &self.0 {
            match (how, headers.contains_key(name)) {
                (SetHeader::Append, _) => drop(headers.append(name, value.clone())),
                (SetHeader::IfAbsent, true) | (SetHeader::IfPresent, false) => {}
                _ => drop(headers.insert(name, value.clone())),
            }
        }
    }
}

/// Whether a header of an answer may be copied: not one that frames or addresses a message.
pub fn is_copied(name: &HeaderName) -> bool {
    let others = [
        "expect",
        "http2-settings",
        "keep-alive",
        "proxy-connection",
        "x-strait-from-cluster",
    ];
    !is_too_late(name) && !others.contains(&name.as_str())
}
