//! Conditions on query parameters: names and values are compared raw, percent-escapes and `+` stay as they are.

use super::TextMatch;

/// A condition on one query parameter.
#[derive(Clone, Debug)]
pub struct QueryMatch {
    /// Name of the parameter, case-sensitive.
    pub name: Box<str>,
    /// Condition on its first value.
    pub value: TextMatch,
}

impl QueryMatch {
    /// Whether the parameter is present and its first value matches.
    pub fn matches(&self, query: Option<&str>) -> bool {
        first_value(query, &self.name).is_some_and(|value| self.value.matches(value.as_bytes()))
    }
}

/// Value of the first parameter named `name`: empty for `?name` and `?name=`, `None` if it is missing.
pub fn first_value<'q>(query: Option<&'q str>, name: &str) -> Option<&'q str> {
    query?
        .split('&')
        .map(|parameter| parameter.split_once('=').unwrap_or((parameter, "")))
        .find_map(|(key, value)| (key == name).then_some(value))
}
