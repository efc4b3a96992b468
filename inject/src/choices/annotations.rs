//! Reader of annotations: those of the pod win over those of its namespace.

use serde_json::{Map, Value, json};

use crate::context::Context;
use crate::json::annotation;
use crate::report::Refusal;

/// Reader of annotations.
pub(super) struct Annotations<'a> {
    pub(super) pod: &'a Value,
    pub(super) context: &'a Context<'a>,
}

impl<'a> Annotations<'a> {
    /// Returns the value of an annotation.
    pub(super) fn get(&self, name: &str) -> Option<&'a str> {
        let namespace = &self.context.namespace.annotations;
        annotation(self.pod, name).or_else(|| namespace.get(name).map(String::as_str))
    }

    /// Returns the value of an annotation, parsed.
    pub(super) fn parsed<T>(
        &self,
        name: &str,
        expected: &str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Result<Option<T>, Refusal> {
        let Some(text) = self.get(name) else {
            return Ok(None);
        };
        let parsed = parse(text.trim());
        parsed
            .map(Some)
            .ok_or_else(|| Refusal::value(name, text, expected))
    }

    /// Returns whether an annotation is true.
    pub(super) fn switch(&self, name: &str) -> Result<Option<bool>, Refusal> {
        self.parsed(name, "\"true\" or \"false\"", |text| text.parse().ok())
    }

    /// Sets a list of ports or ranges.
    pub(super) fn list(
        &self,
        name: &str,
        check: fn(&str, bool) -> Result<(), &'static str>,
        star: bool,
        value: &mut String,
    ) -> Result<(), Refusal> {
        if let Some(text) = self.get(name) {
            check(text, star)
                .map_err(|fix| Refusal::value(name, text, fix.trim_start_matches("write ")))?;
            text.trim().clone_into(value);
        }
        Ok(())
    }

    /// Returns a JSON mapping of names to volumes or mounts, as a list.
    pub(super) fn named(&self, name: &str) -> Result<Vec<Value>, Refusal> {
        let expected = "a JSON object of names, such as {\"data\": {\"emptyDir\": {}}}";
        let map = self.parsed(name, expected, |text| {
            let map: Map<String, Value> = serde_json::from_str(text).ok()?;
            map.values().all(Value::is_object).then_some(map)
        })?;
        let items = map.unwrap_or_default().into_iter().map(|(name, value)| {
            let mut item = json!({"name": name});
            crate::json::merge(&mut item, &value);
            item["name"] = name.into();
            item
        });
        Ok(items.collect())
    }
}
