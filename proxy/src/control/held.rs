//! Something whose newest version is refused.

use config_loader::Diagnostic;

/// Something whose newest version is refused.
#[derive(Clone, Debug)]
pub struct Held {
    /// What kind of resource it is.
    pub kind: &'static str,
    /// What it is called.
    pub name: String,
    /// Whether a last good version of it is in effect; otherwise there never was one.
    pub in_force: bool,
    /// Why.
    pub diagnostics: Vec<Diagnostic>,
}
