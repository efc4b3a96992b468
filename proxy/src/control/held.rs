//! Resources and files whose newest version is rejected.

use config_loader::Diagnostic;

/// Resource or file whose newest version is rejected.
#[derive(Clone, Debug)]
pub struct HeldObject {
    /// Kind of the resource.
    pub kind: &'static str,
    /// Name of the resource.
    pub name: String,
    /// Whether the last good version is in effect; otherwise there is none.
    pub in_force: bool,
    /// Reasons of the rejection.
    pub diagnostics: Vec<Diagnostic>,
}
