//! Values of a document laid over settings that are known: unknown keys and wrong types are errors.

use config_loader::diagnostic::suggest::nearest;
use serde_json::Value;

use super::words::{Capture, ContainerNames, IdentitySource, Mode, Native};

/// Error of a setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingError {
    /// Keys that lead to the setting.
    pub path: Vec<String>,
    /// Problem and fix.
    pub message: String,
}

impl std::fmt::Display for SettingError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.path.is_empty() {
            true => f.write_str(&self.message),
            false => write!(f, "{}: {}", self.path.join("."), self.message),
        }
    }
}

/// Words of the settings that are not plain texts.
const CHOICES: [(&str, &str); 5] = [
    ("capture", "init, istio-cni or none"),
    ("containerNames", "strait or istio"),
    (
        "identity.source",
        "none, files, istio-ca, strait-ca, workload-api or csi",
    ),
    (
        "interceptionMode",
        "REDIRECT or TPROXY; for no capture, write capture: none",
    ),
    ("nativeSidecar", "auto, true or false"),
];

/// Lays `written` over the known settings.
pub(super) fn lay_over(
    known: &mut Value,
    written: &Value,
    path: &mut Vec<String>,
    errors: &mut Vec<SettingError>,
) {
    let mut wrong = |message: String| {
        let path = path.clone();
        errors.push(SettingError { path, message });
    };
    let dotted = path.join(".");
    let is_open = ["env", "resources"].contains(&&*dotted);
    match (&mut *known, written) {
        (_, Value::Null) => {}
        (Value::Object(known), Value::Object(written)) if !is_open => {
            for (key, value) in written {
                path.push(key.clone());
                match known.get_mut(key) {
                    Some(known) => lay_over(known, value, path, errors),
                    None => {
                        let near = nearest(key, known.keys().map(String::as_str));
                        let near = near
                            .map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
                        let message = format!("unknown setting{near}");
                        let path = path.clone();
                        errors.push(SettingError { path, message });
                    }
                }
                path.pop();
            }
        }
        (known, written) => {
            // YAML reads `true` and `false` as booleans
            let written = match (&known, written) {
                (Value::String(_), Value::Bool(value)) if dotted == "nativeSidecar" => {
                    value.to_string().into()
                }
                (_, written) => written.clone(),
            };
            if std::mem::discriminant(known) != std::mem::discriminant(&written) {
                wrong(format!("expected {}", type_of(known)));
                return;
            }
            let texts = match &written {
                Value::Array(items) => items.iter().all(Value::is_string),
                Value::Object(map) if dotted == "env" => map.values().all(Value::is_string),
                _ => true,
            };
            if !texts {
                wrong("expected texts: quote them".to_owned());
                return;
            }
            match (&mut *known, written) {
                (Value::Object(known), Value::Object(written)) if dotted == "env" => {
                    known.extend(written)
                }
                (known, written) => *known = written,
            }
            let choice = CHOICES.iter().find(|(name, _)| *name == dotted);
            if let Some((_, words)) = choice
                && !is_choice(&dotted, known)
            {
                wrong(format!("write {words}"));
            }
        }
    }
}

fn is_choice(name: &str, value: &Value) -> bool {
    let value = value.clone();
    match name {
        "capture" => serde_json::from_value::<Capture>(value).is_ok(),
        "containerNames" => serde_json::from_value::<ContainerNames>(value).is_ok(),
        "identity.source" => serde_json::from_value::<IdentitySource>(value).is_ok(),
        "interceptionMode" => serde_json::from_value::<Mode>(value).is_ok(),
        _ => serde_json::from_value::<Native>(value).is_ok(),
    }
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Array(_) => "a list",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::Object(_) => "a mapping",
        Value::Null | Value::String(_) => "a text",
    }
}
