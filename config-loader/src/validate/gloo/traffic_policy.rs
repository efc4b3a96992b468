//! Selection of traffic by an applied policy: its request matchers and source selectors. An unknown condition is an
//! error, because ignoring it would apply the policy to more traffic than it selects.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::re2::{Budget, Extent};
use crate::resource::gloo::{PolicyTarget, WorkloadSelector};
use crate::resource::istio::{HeaderKey, HeaderMatch, HttpMatch, Pattern, QueryMatch, StringMatch};
use crate::span::Line;
use crate::validate::scalar;

/// Field names of the request matchers: the current and the former one.
const REQUESTS: [&str; 2] = ["httpRequestMatchers", "requestMatchers"];

/// Field names of a path condition. In the former form, all except the last also stand outside `uri`.
const PATHS: [&str; 4] = ["exact", "prefix", "regex", "suffix"];

/// Returns the traffic that a policy selects.
///
/// # Errors
/// The reason for which the selection cannot be read.
pub(super) fn target(spec: &Value, regexes: &Budget) -> Result<PolicyTarget, String> {
    let mut target = PolicyTarget::default();
    let Some(spec) = spec.as_object() else {
        return Ok(target);
    };
    for selector in At::root(spec, regexes).objects("sourceSelector")? {
        target.sources.push(workload_selector(&selector)?);
    }
    for name in REQUESTS {
        for matcher in At::root(spec, regexes).objects(name)? {
            target.requests.push(request_matcher(&matcher)?);
        }
    }
    // one that takes every request says the same as none
    if target.requests.iter().any(takes_all) {
        target.requests.clear();
    }
    Ok(target)
}

fn takes_all(matcher: &HttpMatch) -> bool {
    let all_paths = match &matcher.uri {
        None => true,
        Some(StringMatch::Prefix(prefix)) => matches!(&**prefix, "" | "/"),
        Some(_) => false,
    };
    all_paths
        && matcher.method.is_none()
        && matcher.headers.is_empty()
        && matcher.without_headers.is_empty()
        && matcher.query_params.is_empty()
}

/// Returns the workload selector. The current form has its fields inside `kubeWorkloadMatcher`, the former one next to
/// it.
fn workload_selector(at: &At<'_>) -> Result<WorkloadSelector, String> {
    at.knows(&["kubeWorkloadMatcher", "labels", "namespaces", "clusters"])?;
    let inner = at.object("kubeWorkloadMatcher")?;
    let of = inner.as_ref().unwrap_or(at);
    if let Some(inner) = &inner {
        inner.knows(&["labels", "namespaces", "clusters"])?;
    }
    Ok(WorkloadSelector {
        labels: of.labels("labels")?,
        namespaces: of.texts("namespaces")?,
        clusters: of.texts("clusters")?,
    })
}

fn request_matcher(at: &At<'_>) -> Result<HttpMatch, String> {
    at.knows(&[
        "name",
        "uri",
        "exact",
        "prefix",
        "regex",
        "headers",
        "queryParameters",
        "method",
    ])?;
    let uri = at.object("uri")?;
    if let Some(uri) = &uri {
        uri.knows(&["exact", "prefix", "regex", "suffix", "ignoreCase"])?;
    }
    let ignore_case = match &uri {
        Some(uri) => uri.flag("ignoreCase")?,
        None => false,
    };
    let mut matcher = HttpMatch {
        name: at.text("name")?.into(),
        ignore_uri_case: ignore_case,
        uri: path(uri.as_ref().unwrap_or(at), ignore_case)?,
        ..HttpMatch::default()
    };
    let method = at.text("method")?;
    matcher.method = (!method.is_empty()).then(|| StringMatch::Exact(method.into()));
    for header in at.objects("headers")? {
        header.knows(&["name", "value", "regex", "invertMatch"])?;
        let name = header.text("name")?;
        if !scalar::is_header_name(name) {
            return Err(format!("`{}` is no name of a header", header.path("name")));
        }
        let condition = HeaderMatch {
            key: HeaderKey::Named(name.to_ascii_lowercase().into()),
            value: value(&header)?,
            line: Line(0),
        };
        match header.flag("invertMatch")? {
            true => matcher.without_headers.push(condition),
            false => matcher.headers.push(condition),
        }
    }
    for parameter in at.objects("queryParameters")? {
        parameter.knows(&["name", "value", "regex"])?;
        matcher.query_params.push(QueryMatch {
            name: parameter.text("name")?.into(),
            value: value(&parameter)?,
            line: Line(0),
        });
    }
    Ok(matcher)
}

/// Returns the path condition, if there is one.
fn path(at: &At<'_>, ignore_case: bool) -> Result<Option<StringMatch>, String> {
    let mut written = PATHS.into_iter().filter(|name| at.has(name));
    let Some(name) = written.next() else {
        return Ok(None);
    };
    if let Some(other) = written.next() {
        let (one, other) = (at.path(name), at.path(other));
        return Err(format!("`{one}` and `{other}` exclude each other"));
    }
    let text = at.text(name)?;
    let pattern = |source: &str| at.pattern(source, name);
    Ok(Some(match name {
        "exact" => StringMatch::Exact(text.into()),
        "prefix" => StringMatch::Prefix(text.into()),
        "regex" => StringMatch::Regex(pattern(text)?),
        _ => {
            let case = if ignore_case { "(?i)" } else { "" };
            let source = format!("{case}(?s:.*){}", regex::escape(text));
            StringMatch::Regex(pattern(&source)?)
        }
    }))
}

/// Returns the condition on the value of a header or query parameter. Without one, any value matches.
fn value(at: &At<'_>) -> Result<StringMatch, String> {
    let text = at.text("value")?;
    Ok(match (at.flag("regex")?, text) {
        (true, text) => StringMatch::Regex(at.pattern(text, "value")?),
        (false, "") => StringMatch::Present,
        (false, text) => StringMatch::Exact(text.into()),
    })
}

/// Mapping, with its path within the policy.
struct At<'v> {
    object: &'v Map<String, Value>,
    path: String,
    /// Budget of the regular expressions of the object that contains the policy.
    regexes: &'v Budget,
}

impl<'v> At<'v> {
    fn root(object: &'v Map<String, Value>, regexes: &'v Budget) -> Self {
        Self {
            object,
            path: String::new(),
            regexes,
        }
    }

    fn path(&self, name: &str) -> String {
        match &*self.path {
            "" => name.to_owned(),
            path => format!("{path}.{name}"),
        }
    }

    fn of(&self, value: &'v Value, path: String) -> Result<Self, String> {
        let regexes = self.regexes;
        match value.as_object() {
            Some(object) => Ok(Self {
                object,
                path,
                regexes,
            }),
            None => Err(format!("`{path}` is no mapping")),
        }
    }

    /// Compiles the regular expression `source` of the field `name`.
    fn pattern(&self, source: &str, name: &str) -> Result<Pattern, String> {
        let compiled = match source {
            "" => Err("it is empty".to_owned()),
            source if source.len() > scalar::REGEX_BYTES_MAX => Err(format!(
                "it has more than {} bytes",
                scalar::REGEX_BYTES_MAX
            )),
            source => self.regexes.compile(source, Extent::Whole),
        };
        match compiled {
            Ok(regex) => Ok(Pattern {
                source: source.into(),
                regex,
            }),
            Err(problem) => Err(format!(
                "`{}` is no regular expression of RE2: {problem}",
                self.path(name)
            )),
        }
    }

    fn get(&self, name: &str) -> Option<&'v Value> {
        self.object.get(name).filter(|value| !value.is_null())
    }

    fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    fn knows(&self, names: &[&str]) -> Result<(), String> {
        let mut keys = self.object.keys();
        match keys.find(|key| !names.contains(&key.as_str())) {
            Some(key) => Err(format!("`{}` is not known", self.path(key))),
            None => Ok(()),
        }
    }

    fn object(&self, name: &str) -> Result<Option<At<'v>>, String> {
        let value = self.get(name);
        value
            .map(|value| self.of(value, self.path(name)))
            .transpose()
    }

    fn list(&self, name: &str) -> Result<&'v [Value], String> {
        match self.get(name) {
            None => Ok(&[]),
            Some(Value::Array(entries)) => Ok(entries),
            Some(_) => Err(format!("`{}` is no list", self.path(name))),
        }
    }

    fn objects(&self, name: &str) -> Result<Vec<At<'v>>, String> {
        let entries = self.list(name)?.iter().enumerate();
        entries
            .map(|(index, entry)| self.of(entry, format!("{}[{index}]", self.path(name))))
            .collect()
    }

    fn text(&self, name: &str) -> Result<&'v str, String> {
        match self.get(name) {
            None => Ok(""),
            Some(Value::String(text)) => Ok(text),
            Some(_) => Err(format!("`{}` is no text", self.path(name))),
        }
    }

    fn flag(&self, name: &str) -> Result<bool, String> {
        match self.get(name) {
            None => Ok(false),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(_) => Err(format!("`{}` is neither true nor false", self.path(name))),
        }
    }

    fn texts(&self, name: &str) -> Result<Vec<Arc<str>>, String> {
        let wrong = || format!("`{}` is no list of texts", self.path(name));
        let entries = self.list(name)?.iter();
        entries
            .map(|entry| entry.as_str().map(Arc::from).ok_or_else(wrong))
            .collect()
    }

    fn labels(&self, name: &str) -> Result<BTreeMap<String, String>, String> {
        let Some(inner) = self.object(name)? else {
            return Ok(BTreeMap::new());
        };
        let keys = inner.object.keys();
        keys.map(|key| Ok((key.clone(), inner.text(key)?.to_owned())))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Formats the conditions as text.
    fn said(matcher: &HttpMatch) -> String {
        let text = |value: &StringMatch| match value {
            StringMatch::Exact(text) => format!("={text}"),
            StringMatch::Prefix(text) => format!("{text}*"),
            StringMatch::Present => "is there".to_owned(),
            StringMatch::Regex(pattern) => format!("~{}", pattern.source),
        };
        let header = |header: &HeaderMatch| match &header.key {
            HeaderKey::Named(name) => format!("{name} {}", text(&header.value)),
            HeaderKey::Claim(_) => "claim".to_owned(),
        };
        let mut all = Vec::new();
        let case = if matcher.ignore_uri_case {
            " (any case)"
        } else {
            ""
        };
        all.extend(
            matcher
                .uri
                .iter()
                .map(|uri| format!("uri {}{case}", text(uri))),
        );
        all.extend(
            matcher
                .method
                .iter()
                .map(|method| format!("method {}", text(method))),
        );
        all.extend(matcher.headers.iter().map(header));
        let without = matcher.without_headers.iter();
        all.extend(without.map(|one| format!("not {}", header(one))));
        let query = matcher.query_params.iter();
        all.extend(query.map(|one| format!("?{} {}", one.name, text(&one.value))));
        all.join(", ")
    }

    #[test]
    fn matchers_are_parsed_in_every_form() {
        for (written, expected) in [
            (json!([{"uri": {"prefix": "/a"}}]), "uri /a*"),
            (
                json!([{"uri": {"exact": "/A", "ignoreCase": true}}]),
                "uri =/A (any case)",
            ),
            (json!([{"uri": {"regex": "/a.+"}}]), "uri ~/a.+"),
            (json!([{"uri": {"suffix": ".js"}}]), "uri ~(?s:.*)\\.js"),
            (
                json!([{"uri": {"suffix": ".js", "ignoreCase": true}}]),
                "uri ~(?i)(?s:.*)\\.js (any case)",
            ),
            (json!([{"prefix": "/old"}]), "uri /old*"),
            (
                json!([{"exact": "/old", "method": "PUT"}]),
                "uri =/old, method =PUT",
            ),
            (
                json!([{"regex": "/o.d"}, {"prefix": "/b"}]),
                "uri ~/o.d | uri /b*",
            ),
            (
                json!([{"headers": [{"name": "X-A"}, {"name": "b", "value": "1"}, {"name": "c", "value": "[0-9]", "regex": true}]}]),
                "x-a is there, b =1, c ~[0-9]",
            ),
            (
                json!([{"headers": [{"name": "a", "invertMatch": true}, {"name": "b", "value": "1", "invertMatch": true}]}]),
                "not a is there, not b =1",
            ),
            (
                json!([{"queryParameters": [{"name": "a"}, {"name": "b", "value": "1"}, {"name": "c", "value": "x+", "regex": true}]}]),
                "?a is there, ?b =1, ?c ~x+",
            ),
            // whatever takes every request
            (json!([]), ""),
            (json!([{"name": "all"}]), ""),
            (json!([{"prefix": "/"}]), ""),
            (json!([{"prefix": "/a"}, {"uri": {}}]), ""),
        ] {
            let spec = json!({"httpRequestMatchers": written});
            let target = target(&spec, &Budget::default()).unwrap();
            let all: Vec<_> = target.requests.iter().map(said).collect();
            assert_eq!(all.join(" | "), expected, "{spec}");
        }
        let older = json!({"requestMatchers": [{"prefix": "/a"}]});
        assert_eq!(
            said(&target(&older, &Budget::default()).unwrap().requests[0]),
            "uri /a*"
        );
    }

    #[test]
    fn sources_are_parsed_in_every_form() {
        let fields =
            json!({"labels": {"app": "edge"}, "namespaces": ["ns1"], "clusters": ["c1", "c2"]});
        for written in [json!([{"kubeWorkloadMatcher": fields}]), json!([fields])] {
            let target = target(&json!({"sourceSelector": written}), &Budget::default()).unwrap();
            let [one] = &*target.sources else {
                panic!("{:?}", target.sources)
            };
            assert_eq!(one.labels["app"], "edge");
            assert_eq!((&*one.namespaces[0], one.clusters.len()), ("ns1", 2));
        }
        let everybody = target(
            &json!({"sourceSelector": [{"kubeWorkloadMatcher": {}}]}),
            &Budget::default(),
        )
        .unwrap();
        assert!(everybody.sources[0].labels.is_empty());
        assert!(
            target(&Value::Null, &Budget::default())
                .unwrap()
                .sources
                .is_empty()
        );
    }

    #[test]
    fn unsupported_matchers_are_reported_with_their_location() {
        for (spec, expected) in [
            (
                json!({"httpRequestMatchers": [{"uri": {"regex": "/(?=a)"}}]}),
                "`httpRequestMatchers[0].uri.regex` is no regular expression of RE2: look-around",
            ),
            (
                json!({"httpRequestMatchers": [{}, {"port": 80}]}),
                "`httpRequestMatchers[1].port` is not known",
            ),
            (
                json!({"httpRequestMatchers": [{"uri": {"exact": "/a", "prefix": "/"}}]}),
                "`httpRequestMatchers[0].uri.exact` and `httpRequestMatchers[0].uri.prefix` exclude each other",
            ),
            (
                json!({"httpRequestMatchers": [{"headers": [{"name": "a b"}]}]}),
                "`httpRequestMatchers[0].headers[0].name` is no name of a header",
            ),
            (
                json!({"httpRequestMatchers": [{"headers": [{"name": "a", "value": 1}]}]}),
                "`httpRequestMatchers[0].headers[0].value` is no text",
            ),
            (
                json!({"httpRequestMatchers": {"prefix": "/a"}}),
                "`httpRequestMatchers` is no list",
            ),
            (
                json!({"sourceSelector": [{"vmMatcher": {}}]}),
                "`sourceSelector[0].vmMatcher` is not known",
            ),
            (
                json!({"sourceSelector": [{"kubeWorkloadMatcher": {"namespaces": "ns1"}}]}),
                "`sourceSelector[0].kubeWorkloadMatcher.namespaces` is no list",
            ),
        ] {
            let problem = target(&spec, &Budget::default()).unwrap_err();
            assert!(problem.starts_with(expected), "{problem}");
        }
    }
}
