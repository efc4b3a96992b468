//! Label selectors and field selectors.

use serde_json::Value;

use crate::object;
use crate::resources::Resource;
use crate::status::Failure;

/// Label and field selectors of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selector {
    labels: Vec<Requirement>,
    fields: Vec<FieldRequirement>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Requirement {
    key: String,
    test: Test,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Test {
    In(Vec<String>),
    NotIn(Vec<String>),
    Exists,
    Absent,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct FieldRequirement {
    /// JSON pointer to the field, such as `/metadata/name`.
    pointer: String,
    value: String,
    equals: bool,
}

/// Returns the fields that field selectors of a resource support.
fn fields_of(resource: &Resource) -> &'static [&'static str] {
    match (resource.group, resource.kind) {
        ("", "Namespace") => &["metadata.name", "status.phase"],
        ("", "Secret") => &["metadata.name", "metadata.namespace", "type"],
        ("", "Service") => &[
            "metadata.name",
            "metadata.namespace",
            "spec.clusterIP",
            "spec.type",
        ],
        _ => &["metadata.name", "metadata.namespace"],
    }
}

impl Selector {
    /// Parses the label and field selectors of a request.
    ///
    /// # Errors
    /// 400 if a selector is malformed or uses an unsupported field.
    pub fn read(labels: &str, fields: &str, resource: &Resource) -> Result<Selector, Failure> {
        Ok(Selector {
            labels: label_requirements(labels)?,
            fields: field_requirements(fields, fields_of(resource))?,
        })
    }

    /// Whether the selector matches every object.
    pub fn is_everything(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    /// Whether the selector matches the object.
    pub fn selects(&self, object: &Value) -> bool {
        let labels = &object::metadata(object)["labels"];
        self.labels.iter().all(|needed| {
            let value = labels[&*needed.key].as_str();
            let is_one = |of: &[String]| value.is_some_and(|value| of.iter().any(|v| v == value));
            match &needed.test {
                Test::In(values) => is_one(values),
                Test::NotIn(values) => !is_one(values),
                Test::Exists => value.is_some(),
                Test::Absent => value.is_none(),
            }
        }) && self.fields.iter().all(|needed| {
            let value = object.pointer(&needed.pointer).and_then(Value::as_str);
            (value.unwrap_or("") == needed.value) == needed.equals
        })
    }
}

fn field_requirements(text: &str, known: &[&str]) -> Result<Vec<FieldRequirement>, Failure> {
    let mut needed = Vec::new();
    for part in text.split(',').filter(|part| !part.is_empty()) {
        let (name, value, equals) = if let Some((name, value)) = part.split_once("!=") {
            (name, value, false)
        } else if let Some((name, value)) = part.split_once("==") {
            (name, value, true)
        } else if let Some((name, value)) = part.split_once('=') {
            (name, value, true)
        } else {
            let message = format!("invalid selector: '{text}'; can't understand '{part}'");
            return Err(Failure::bad_request(message));
        };
        if !known.contains(&name) {
            return Err(Failure::bad_request(format!(
                "field label not supported: {name}"
            )));
        }
        needed.push(FieldRequirement {
            pointer: format!("/{}", name.replace('.', "/")),
            value: value.to_owned(),
            equals,
        });
    }
    Ok(needed)
}

fn label_requirements(text: &str) -> Result<Vec<Requirement>, Failure> {
    let malformed = |why: &str| {
        let message = format!("unable to parse requirement: {why}, in label selector {text:?}");
        Failure::bad_request(message)
    };
    let mut needed = Vec::new();
    for part in split_outside_parentheses(text) {
        let part = part.trim();
        if part.is_empty() {
            return Err(malformed("found ',', expected: identifier"));
        }
        let requirement = requirement(part).ok_or_else(|| malformed(part))?;
        if !is_label_key(&requirement.key) {
            return Err(malformed(&format!(
                "{:?} is not a label key",
                requirement.key
            )));
        }
        if let Test::In(values) | Test::NotIn(values) = &requirement.test
            && let Some(wrong) = values.iter().find(|value| !is_label_value(value))
        {
            return Err(malformed(&format!("{wrong:?} is not a label value")));
        }
        needed.push(requirement);
    }
    Ok(needed)
}

fn split_outside_parentheses(text: &str) -> Vec<&str> {
    if text.trim().is_empty() {
        return Vec::new();
    }
    let mut depth = 0_u32;
    text.split(|c| {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    })
    .collect()
}

fn requirement(part: &str) -> Option<Requirement> {
    let of = |key: &str, test| {
        let key = key.trim().to_owned();
        Some(Requirement { key, test })
    };
    let one = |value: &str| vec![value.trim().to_owned()];
    if let Some(key) = part.strip_prefix('!') {
        return of(key, Test::Absent);
    }
    if let Some(open) = part.find('(') {
        let values = part[open + 1..].strip_suffix(')')?;
        let values = values.split(',').map(|v| v.trim().to_owned()).collect();
        let mut words = part[..open].split_whitespace();
        let (key, operator) = (words.next()?, words.next()?);
        return match (operator, words.next()) {
            ("in", None) => of(key, Test::In(values)),
            ("notin", None) => of(key, Test::NotIn(values)),
            _ => None,
        };
    }
    if let Some((key, value)) = part.split_once("!=") {
        return of(key, Test::NotIn(one(value)));
    }
    if let Some((key, value)) = part.split_once("==").or_else(|| part.split_once('=')) {
        return of(key, Test::In(one(value)));
    }
    of(part, Test::Exists)
}

fn is_label_key(key: &str) -> bool {
    let name = key.rsplit('/').next().unwrap_or("");
    let is_fine = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
    !name.is_empty() && key.chars().all(is_fine)
}

fn is_label_value(value: &str) -> bool {
    let is_edge = |c: char| c.is_ascii_alphanumeric();
    let is_fine = |c: char| is_edge(c) || "-_.".contains(c);
    value.len() <= 63
        && value.chars().all(is_fine)
        && value.starts_with(is_edge) == value.ends_with(is_edge)
        && (value.is_empty() || value.starts_with(is_edge))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn service() -> &'static Resource {
        crate::resources::named("", "services").unwrap()
    }

    #[test]
    fn labels_are_selected_by_every_operator() {
        let metadata =
            json!({"name": "n", "namespace": "s", "labels": {"app": "web", "tier": "a"}});
        let object = json!({"metadata": metadata, "spec": {"type": "ClusterIP"}});
        for (selector, expected) in [
            ("", true),
            ("app=web", true),
            ("app==web,tier", true),
            ("app!=web", false),
            ("app in (web, api)", true),
            ("app notin (web)", false),
            ("gone notin (web)", true),
            ("!gone", true),
            ("!app", false),
            ("gone", false),
            ("app in (web),tier=b", false),
        ] {
            assert_eq!(
                Selector::read(selector, "", service())
                    .unwrap()
                    .selects(&object),
                expected,
                "{selector}"
            );
        }
        for (fields, expected) in [
            ("metadata.name=n", true),
            ("metadata.namespace!=s", false),
            ("metadata.name==x", false),
            ("spec.type=ClusterIP", true),
            ("spec.type!=ClusterIP", false),
            ("spec.clusterIP=", true),
        ] {
            assert_eq!(
                Selector::read("", fields, service())
                    .unwrap()
                    .selects(&object),
                expected,
                "{fields}"
            );
        }
    }

    #[test]
    fn malformed_selectors_are_400() {
        for text in [
            "a b", "a in", "a in (b", "=x", ",", "a,,b", "a===", "a=b c", "a=-",
        ] {
            assert!(Selector::read(text, "", service()).is_err(), "{text}");
        }
        let unknown = Selector::read("", "spec.x=1", service()).unwrap_err();
        assert_eq!(unknown.message, "field label not supported: spec.x");
        assert!(Selector::read("", "spec.type=x", Resource::namespaces()).is_err());
    }
}
