//! Random expressions of the subset, for random requests, have the value that the crate `cel` gives them; where that is an
//! error, there is none.

use std::collections::HashMap;
use std::sync::Arc;

use cel::objects::Value as Other;
use cel::{Context, Program};
use http::{HeaderMap, HeaderName, HeaderValue};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::super::context::Finished;
use super::*;
use crate::pattern::Pattern;

/// A request, and its response if there is one.
#[derive(Clone, Debug)]
struct Sent {
    method: &'static str,
    path: &'static str,
    host: &'static str,
    header: Option<&'static str>,
    user_agent: Option<&'static str>,
    code: u16,
}

fn sent() -> impl Strategy<Value = Sent> {
    let text = |texts: &'static [&'static str]| prop::sample::select(texts);
    let parts = (
        text(&["GET", "POST"]),
        text(&["/", "/a", "/a/b?q=1"]),
        text(&["a", "Shop.Example:80"]),
        prop::option::of(text(&["1", "a", "GET"])),
        prop::option::of(text(&["kube-probe/1", "a"])),
        prop::sample::select(&[0, 200, 404, 503][..]),
    );
    parts.prop_map(|(method, path, host, header, user_agent, code)| Sent {
        method,
        path,
        host,
        header,
        user_agent,
        code,
    })
}

/// Generators of expressions by the type of their value.
#[derive(Clone)]
struct Texts {
    bools: BoxedStrategy<String>,
    numbers: BoxedStrategy<String>,
    strings: BoxedStrategy<String>,
}

impl Texts {
    fn leaves() -> Self {
        let select = |texts: &'static [&'static str]| {
            prop::sample::select(texts).prop_map(str::to_owned).boxed()
        };
        Self {
            bools: select(&[
                "true",
                "false",
                "has(request.useragent)",
                "has(response.code)",
                "('x-a' in request.headers)",
                "request.useragent.startsWith('kube')",
                "(response.code >= 400)",
            ]),
            numbers: select(&[
                "0",
                "1",
                "2",
                "(-3)",
                "404",
                "9223372036854775807",
                "response.code",
                "size(request.path)",
            ]),
            strings: select(&[
                "''",
                "'a'",
                "'GET'",
                "\"/a\"",
                "r'1'",
                "request.method",
                "request.path",
                "request.host",
                "request.headers['x-a']",
                "request.useragent",
            ]),
        }
    }

    /// Expressions with one more level.
    fn deeper(&self) -> Self {
        let Self {
            bools,
            numbers,
            strings,
        } = self.clone();
        let operators = |texts: &'static [&'static str]| prop::sample::select(texts);
        let of_two = |values: &BoxedStrategy<String>, texts| {
            let pair = (values.clone(), operators(texts), values.clone());
            pair.prop_map(|(one, operator, other)| format!("({one} {operator} {other})"))
        };
        let choice = |values: &BoxedStrategy<String>| {
            let parts = (bools.clone(), values.clone(), values.clone());
            parts.prop_map(|(condition, yes, no)| format!("({condition} ? {yes} : {no})"))
        };
        let within = |values: &BoxedStrategy<String>| {
            let parts = (values.clone(), values.clone(), values.clone());
            parts.prop_map(|(one, first, second)| format!("({one} in [{first}, {second}])"))
        };
        let compared = &["==", "!=", "<", "<=", ">", ">="][..];
        let call = (
            strings.clone(),
            operators(&["contains", "startsWith", "endsWith"]),
            strings.clone(),
        );
        Self {
            bools: prop_oneof![
                bools.clone(),
                of_two(&bools, &["&&", "||", "==", "!="]),
                of_two(&numbers, compared),
                of_two(&strings, compared),
                bools.clone().prop_map(|one| format!("!({one})")),
                call.prop_map(|(one, name, other)| format!("{one}.{name}({other})")),
                choice(&bools),
                within(&numbers),
                within(&strings),
            ]
            .boxed(),
            numbers: prop_oneof![
                numbers.clone(),
                of_two(&numbers, &["+", "-", "*", "/", "%"]),
                strings.clone().prop_map(|one| format!("size({one})")),
                choice(&numbers),
            ]
            .boxed(),
            strings: prop_oneof![strings.clone(), of_two(&strings, &["+"]), choice(&strings)]
                .boxed(),
        }
    }
}

/// Returns the printed value, unless it is an error.
fn ours(expression: &Expression, sent: &Sent) -> Option<String> {
    let mut headers = HeaderMap::new();
    for (name, value) in [("x-a", sent.header), ("user-agent", sent.user_agent)] {
        let value = value.map(HeaderValue::from_static);
        headers.extend(value.map(|value| (HeaderName::from_static(name), value)));
    }
    let finished = Finished::default();
    let context = TemplateContext {
        method: sent.method,
        path: sent.path,
        authority: sent.host,
        response_code: sent.code,
        request_headers: Some(&headers),
        finished: Some(&finished),
        ..TemplateContext::default()
    };
    let mut printed = Vec::new();
    let is_known = expression.print(&mut printed, &context);
    let printed = is_known.then(|| String::from_utf8(printed).unwrap());
    assert_eq!(
        expression.holds(&context),
        printed.as_deref() == Some("true")
    );
    printed
}

fn theirs(text: &str, sent: &Sent) -> Option<String> {
    let program = Program::compile(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    let map =
        |entries: Vec<(&str, Other)>| Other::from(entries.into_iter().collect::<HashMap<_, _>>());
    let headers = sent.header.iter().map(|value| ("x-a", Other::from(*value)));
    let agent = sent.user_agent.iter();
    let mut request: Vec<(&str, Other)> = vec![
        ("method", sent.method.into()),
        ("path", sent.path.into()),
        ("host", sent.host.into()),
        ("headers", map(headers.collect())),
    ];
    request.extend(agent.map(|value| ("useragent", Other::from(*value))));
    let code = (sent.code > 0).then(|| ("code", Other::Int(sent.code.into())));
    let mut context = Context::default();
    context.add_variable_from_value("request", map(request));
    context.add_variable_from_value("response", map(code.into_iter().collect()));
    match program.execute(&context).ok()? {
        Other::Bool(value) => Some(value.to_string()),
        Other::Int(value) => Some(value.to_string()),
        Other::String(value) => Some(Arc::unwrap_or_clone(value)),
        other => panic!("{text}: {other:?}"),
    }
}

#[test]
fn values_are_those_of_another_implementation() {
    let texts = Texts::leaves().deeper().deeper().deeper();
    let any = prop_oneof![
        4 => texts.bools,
        1 => texts.numbers,
        1 => texts.strings,
    ];
    let config = Config {
        failure_persistence: None,
        ..Config::with_cases(3000)
    };
    let mut runner = TestRunner::new(config);
    let compared = runner.run(&(any, sent()), |(text, sent)| {
        let parsed = Expression::parse(&text, &mut |pattern| Ok(Pattern::part(pattern)));
        let expression = parsed.unwrap_or_else(|error| panic!("{text}: {error}"));
        prop_assert_eq!(ours(&expression, &sent), theirs(&text, &sent), "{}", text);
        Ok(())
    });
    compared.unwrap();
}
