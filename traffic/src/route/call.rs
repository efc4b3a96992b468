//! Conditions on the service and the method of a gRPC call.

use super::TextMatch;

/// Condition on the path of a call: `/SERVICE/METHOD` (gRPC over HTTP/2, "Requests").
#[derive(Clone, Debug)]
pub struct CallMatch {
    service: Option<TextMatch>,
    method: Option<TextMatch>,
    /// Both as text, for explanations.
    written: Box<str>,
}

impl CallMatch {
    /// Creates a condition; `None` for any service or method.
    pub fn new(service: Option<TextMatch>, method: Option<TextMatch>) -> Self {
        let wanted = |part: &Option<TextMatch>| {
            let wanted = part.as_ref().map(|part| part.wanted().to_owned());
            wanted.unwrap_or_else(|| "*".to_owned())
        };
        Self {
            written: format!("/{}/{}", wanted(&service), wanted(&method)).into(),
            service,
            method,
        }
    }

    /// Whether the first segments of a path are the service, and the last one the method.
    pub fn matches(&self, path: &[u8]) -> bool {
        let Some(call) = path.strip_prefix(b"/") else {
            return false;
        };
        let Some(slash) = call.iter().rposition(|byte| *byte == b'/') else {
            return false;
        };
        let (service, method) = (&call[..slash], &call[slash + 1..]);
        let holds = |part: &Option<TextMatch>, got: &[u8]| {
            part.as_ref().is_none_or(|wanted| wanted.matches(got))
        };
        holds(&self.service, service) && holds(&self.method, method)
    }

    /// Wanted service and method, with `*` for any.
    pub fn written(&self) -> &str {
        &self.written
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::pattern::Pattern;

    #[test]
    fn service_and_method_are_matched_whole() {
        let exact = |text: &str| Some(TextMatch::Exact(text.into()));
        let regex = |text: &str| {
            let regex = regex::bytes::Regex::new(&format!(r"\A(?:{text})\z")).unwrap();
            Some(TextMatch::Regex(Pattern::new(text.into(), Arc::new(regex))))
        };
        for (service, method, path, expected) in [
            (None, exact("Echo"), "/a.B/Echo", true),
            (None, exact("Echo"), "/a.B/EchoTwo", false),
            (None, exact("Echo"), "/Echo", false),
            (None, exact("Echo"), "/a.B/Echo/", false),
            (regex("a\\..*"), None, "/a.B/Echo", true),
            (regex("a\\..*"), None, "/b.a.B/Echo", false),
            (regex("a|b"), regex("E.*"), "/b/Echo", true),
            (regex("a|b"), regex("E.*"), "/bc/Echo", false),
            (exact("a"), regex("E"), "/a/Echo", false),
        ] {
            let wanted = CallMatch::new(service, method);
            let found = wanted.matches(path.as_bytes());
            assert_eq!(found, expected, "{} {path}", wanted.written());
        }
    }
}
