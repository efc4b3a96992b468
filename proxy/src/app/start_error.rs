//! Why the proxy does not start.

use std::fmt;

/// Why the proxy did not start, or how it failed, in words for a person.
#[derive(Debug)]
pub struct StartError {
    text: String,
    /// Whether nothing that the user gave is the reason.
    pub internal: bool,
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for StartError {}

/// Something that the user gave cannot be used.
pub(super) fn failed<E: fmt::Display>(what: &str) -> impl FnOnce(E) -> StartError + '_ {
    move |error| StartError {
        text: format!("{what}: {error}"),
        internal: false,
    }
}

/// The system refuses what a proxy needs, or the proxy has a fault.
pub(super) fn broken<E: fmt::Display>(what: &str) -> impl FnOnce(E) -> StartError + '_ {
    move |error| StartError {
        internal: true,
        ..failed(what)(error)
    }
}
