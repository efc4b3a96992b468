//! Label selectors of the settings: `app=web,tier!=test,gone,!there`.

use serde_json::Value;

use crate::json::label;

/// Label selector.
pub(crate) struct Selector<'a>(Vec<Requirement<'a>>);

struct Requirement<'a> {
    key: &'a str,
    /// Value; `None` for any.
    value: Option<&'a str>,
    is_negated: bool,
}

impl<'a> Selector<'a> {
    /// Parses a selector.
    ///
    /// # Errors
    ///
    /// Says what to write instead.
    pub(crate) fn parse(text: &'a str) -> Result<Self, &'static str> {
        let requirement = |text: &'a str| {
            let (key, value, is_negated) = match (text.split_once("!="), text.split_once('=')) {
                (Some((key, value)), _) => (key, Some(value), true),
                (None, Some((key, value))) => (key, Some(value.trim_start_matches('=')), false),
                (None, None) => match text.strip_prefix('!') {
                    Some(key) => (key, None, true),
                    None => (text, None, false),
                },
            };
            let is_word = |text: &str| {
                text.bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || b"-_./".contains(&byte))
            };
            let (key, value) = (key.trim(), value.map(str::trim));
            let is_right = !key.is_empty() && is_word(key) && value.is_none_or(is_word);
            is_right.then_some(Requirement {
                key,
                value,
                is_negated,
            })
        };
        let all: Option<Vec<_>> = text
            .split(',')
            .map(|text| requirement(text.trim()))
            .collect();
        all.map(Self)
            .ok_or("write a label selector, such as app=web,tier!=test")
    }

    /// Returns whether the labels of a pod meet the selector.
    pub(crate) fn matches(&self, pod: &Value) -> bool {
        self.0.iter().all(|requirement| {
            let found = label(pod, requirement.key);
            let is_met = match requirement.value {
                Some(value) => found == Some(value),
                None => found.is_some(),
            };
            is_met != requirement.is_negated
        })
    }
}

/// Returns whether any of the selectors matches. Settings have only well-formed ones.
pub(crate) fn any_matches(selectors: &[String], pod: &Value) -> bool {
    let mut parsed = selectors
        .iter()
        .filter_map(|text| Selector::parse(text).ok());
    parsed.any(|selector| selector.matches(pod))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn selector_matches_by_all_its_requirements() {
        let pod = json!({"metadata": {"labels": {"app": "web", "tier": "front"}}});
        for (selector, expected) in [
            ("app=web", true),
            ("app==web,tier", true),
            ("app=web,tier!=front", false),
            ("gone!=x,!gone", true),
            ("gone", false),
        ] {
            assert_eq!(
                any_matches(&[selector.to_owned()], &pod),
                expected,
                "{selector}"
            );
        }
        assert!(Selector::parse("").is_err() && Selector::parse("a in (b)").is_err());
    }
}
