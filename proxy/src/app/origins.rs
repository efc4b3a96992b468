//! Origins of settings that resources have values for.

use config_loader::diagnostic::codes::istio::MC105;
use config_loader::{Diagnostic, Severity};
use serde_json::{Value, json};

/// A setting in effect that a resource has a value for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingOrigin {
    /// Name of the flag.
    pub flag: &'static str,
    /// Value in effect.
    pub value: String,
    /// Flag, variable or resource that has this value.
    pub origin: String,
    /// Kind of this origin.
    pub kind: OriginKind,
    /// Value of the resource that comes first, and the resource, if a flag or a variable has another one.
    pub instead_of: Option<(String, String)>,
}

/// Kind of an origin; later ones win.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OriginKind {
    /// The mesh configuration.
    Mesh,
    /// Settings of this proxy alone.
    Own,
    /// The command line or the environment.
    Flag,
}

impl SettingOrigin {
    /// Adds the settings to `/config_dump`.
    pub fn added_to(mut dump: Value, settings: &[Self]) -> Value {
        dump["settings"] = settings.iter().map(Self::dump).collect();
        dump
    }

    fn dump(&self) -> Value {
        let instead_of = self.instead_of.as_ref();
        let instead_of =
            instead_of.map(|(value, origin)| json!({"value": value, "origin": origin}));
        json!({
            "flag": self.flag,
            "value": self.value,
            "origin": self.origin,
            "instead_of": instead_of,
        })
    }

    /// Returns a finding about a resource whose value has no effect.
    pub fn finding(&self) -> Option<Diagnostic> {
        let (value, resource) = self.instead_of.as_ref()?;
        let message = format!(
            "{resource} says --{}={value}, and has no effect: {} is {}",
            self.flag, self.origin, self.value
        );
        let file = resource.as_str().into();
        let mut found = Diagnostic::about_file(Severity::Warning, MC105, file, message);
        found.help("remove one of them");
        Some(found)
    }
}
