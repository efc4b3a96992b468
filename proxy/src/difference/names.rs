//! Hosts that names of virtual hosts stand for.

/// Name of a host below a wildcard that no rule names.
const OTHER_LABEL: &str = "strait-other";

/// Returns a host that a name of a virtual host stands for.
pub(super) fn witness(name: &str) -> String {
    match name.strip_prefix('*') {
        Some("") => format!("{OTHER_LABEL}.example"),
        Some(rest) => format!("{OTHER_LABEL}{rest}"),
        None => name.to_owned(),
    }
}
