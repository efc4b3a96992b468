//! Errors that prevent the start of the proxy.

use std::fmt;

/// Error that prevents the start of the proxy or ends it; its text is for users.
#[derive(Debug)]
pub struct StartError {
    text: String,
    /// Whether the cause is internal rather than a setting of the user.
    pub internal: bool,
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for StartError {}

/// Makes the error for a setting that cannot be used.
pub(super) fn failed<E: fmt::Display>(what: &str) -> impl FnOnce(E) -> StartError + '_ {
    move |error| StartError {
        text: format!("{what}: {error}"),
        internal: false,
    }
}

/// Makes the error for a failed system call or an internal fault.
pub(super) fn broken<E: fmt::Display>(what: &str) -> impl FnOnce(E) -> StartError + '_ {
    move |error| StartError {
        internal: true,
        ..failed(what)(error)
    }
}
