//! Files of `strait test`: requests, and what must become of them. Every mistake is a diagnostic with its location.

mod checked;
mod expect;
mod raw;

use std::collections::BTreeMap;
use std::sync::Arc;

pub use checked::{
    Expectation, Expected, ExpectedDestination, RouteTest, TestConnection, TestFile, TestRequest,
    TestSubject, UnhealthyPart,
};

use checked::REQUESTS_MAX;

use crate::diagnostic::Locator;
use crate::diagnostic::codes::common::{CM019, CM029, TST001, TST002};
use crate::raw::{Field, IntOrString, Map};
use crate::settings_file::{self, Parsed, SettingsFile};
use crate::span::{Lines, Span};
use crate::validate::scalar::{at_most_one, in_range, items};
use crate::validate::{Check, api};
use crate::written_proxies::{RawProxy, WrittenProxy, labels};

impl SettingsFile for TestFile {
    const FLAG: &'static str = "strait test";

    const EMPTY: &'static str = "write `tests`, or let `strait test --init` write them";

    fn parse(file: &Arc<str>, text: &str) -> Parsed<Self> {
        let lines = Lines::new(text);
        let locator = Locator {
            bool_keys: true,
            ..settings_file::whole(file, text, &lines)
        };
        settings_file::parse_text(locator, &[], |raw: &raw::File, _, check| {
            check_file(raw, check)
        })
    }
}

/// Proxies of `strait diff --for`, by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WrittenProxies(pub BTreeMap<String, WrittenProxy>);

impl SettingsFile for WrittenProxies {
    const FLAG: &'static str = "--for";

    const EMPTY: &'static str = "write a name, and below it the `labels` of the proxy";

    fn parse(file: &Arc<str>, text: &str) -> Parsed<Self> {
        let lines = Lines::new(text);
        let locator = settings_file::whole(file, text, &lines);
        settings_file::parse_text(locator, &[], |raw: &Map<RawProxy>, _, check| {
            let proxies = raw
                .iter()
                .filter_map(|(name, _, raw)| Some((name.to_owned(), raw.get()?.check(check))));
            Self(proxies.collect())
        })
    }
}

fn check_file(raw: &raw::File, check: &mut Check<'_>) -> TestFile {
    let proxy = raw
        .proxy
        .get()
        .map_or_else(WrittenProxy::default, |raw| raw.check(check));
    let mut names: BTreeMap<Arc<str>, Span> = BTreeMap::new();
    let mut tests = Vec::new();
    for (field, raw) in items(&raw.tests, check) {
        let test = test(raw, field.span(), &proxy, check);
        let span = raw.name.span();
        if let Some(first) = names.insert(Arc::clone(&test.0), span)
            && !test.0.is_empty()
        {
            api::duplicate(&test.0, span, first, TST002, check);
        }
        tests.extend(test.1);
    }
    TestFile {
        config: api::some_text(&raw.config),
        tests,
    }
}

/// Returns the name of a test, and the test if it can be run.
fn test(
    raw: &raw::Test,
    at: Span,
    of_file: &WrittenProxy,
    check: &mut Check<'_>,
) -> (Arc<str>, Option<RouteTest>) {
    api::require_text(&raw.name, at, "name", TST002, check);
    let name = api::text(&raw.name);
    let mut proxy = of_file.clone();
    if let Some(source) = raw.source.get() {
        proxy.is_sidecar = Some(true);
        proxy.namespace = api::some_text(&source.namespace).or(proxy.namespace);
        proxy.labels = labels(&source.labels).or(proxy.labels);
    }
    let unhealthy = raw.given.get().map_or_else(Vec::new, |given| {
        let parts = items(&given.unhealthy, check).into_iter();
        let parts: Vec<_> = parts.map(|(field, raw)| (field.span(), raw)).collect();
        parts
            .into_iter()
            .filter_map(|(at, raw)| unhealthy(raw, at, check))
            .collect()
    });
    let subject = subject(raw, at, check);
    let is_varied = matches!(subject, Some(TestSubject::Requests { .. }));
    let expected = raw
        .expect
        .get()
        .map_or_else(Vec::new, |raw| expect::expectations(raw, is_varied, check));
    if expected.is_empty() && !raw.expect.is_invalid() && !check.failed() {
        let missing = api::required(at, "expect", "", TST002, check);
        missing.help("write what must hold, such as `expect: {status: 200}`");
    }
    let test = subject.map(|subject| RouteTest {
        name: Arc::clone(&name),
        proxy,
        unhealthy,
        subject,
        expected,
        location: check.location(raw.name.span()),
    });
    (name, test)
}

fn unhealthy(raw: &raw::Unhealthy, at: Span, check: &mut Check<'_>) -> Option<UnhealthyPart> {
    type Part = fn(Arc<str>) -> UnhealthyPart;
    let parts: [(&str, &Field<String>, Part); 4] = [
        ("cluster", &raw.cluster, UnhealthyPart::Cluster),
        ("zone", &raw.zone, UnhealthyPart::Zone),
        ("host", &raw.host, UnhealthyPart::Host),
        ("endpoint", &raw.endpoint, UnhealthyPart::Endpoint),
    ];
    let spans = parts.map(|(name, field, _)| (name, field.span()));
    if !at_most_one(&spans, CM019, check) {
        return None;
    }
    let found = parts
        .iter()
        .find_map(|(_, field, part)| Some(part(api::some_text(field)?)));
    if found.is_none() && !check.failed() {
        let found = check.error(TST002, at, "names nothing that is unhealthy");
        found.help("write one of `cluster`, `zone`, `host` and `endpoint`");
    }
    found
}

fn subject(raw: &raw::Test, at: Span, check: &mut Check<'_>) -> Option<TestSubject> {
    let spans = [
        ("request", raw.request.span()),
        ("requests", raw.requests.span()),
        ("connection", raw.connection.span()),
    ];
    if !at_most_one(&spans, CM019, check) {
        return None;
    }
    if let Some(one) = raw.request.get() {
        for (name, span) in [("count", one.count.span()), ("vary", one.vary.span())] {
            if !span.is_none() {
                let found = check.error(TST001, span, format!("`{name}` is of `requests`"));
                found.help("rename `request` to `requests`");
            }
        }
        return Some(TestSubject::Request(request(
            one,
            raw.request.span(),
            check,
        )));
    }
    if let Some(several) = raw.requests.get() {
        return requests(several, raw.requests.span(), check);
    }
    if let Some(one) = raw.connection.get() {
        return connection(one, raw.connection.span(), check);
    }
    if spans.iter().all(|(_, span)| span.is_none()) {
        let found = check.error(TST002, at, "asks nothing");
        found.help("write one of `request`, `requests` and `connection`");
    }
    None
}

fn requests(raw: &raw::Request, at: Span, check: &mut Check<'_>) -> Option<TestSubject> {
    let count = in_range(&raw.count, 1..=REQUESTS_MAX, "count", CM029, check).unwrap_or(100);
    let vary = raw.vary.get().map(|vary| api::text(&vary.header));
    let Some(vary) = vary.filter(|name| !name.is_empty()) else {
        if !raw.vary.is_invalid() {
            let missing = api::required(at, "vary", "", TST002, check);
            missing.help("write the header that differs, such as `vary: {header: x-user}`");
        }
        return None;
    };
    let request = request(raw, at, check);
    Some(TestSubject::Requests {
        count: u32::try_from(count).unwrap_or(1),
        vary,
        request,
    })
}

fn request(raw: &raw::Request, at: Span, check: &mut Check<'_>) -> TestRequest {
    api::require_text(&raw.url, at, "url", TST002, check);
    let headers = raw.headers.get().into_iter().flat_map(Map::iter);
    let listener = raw.listener.get().map(|listener| match listener {
        IntOrString::Int(port) => port.to_string(),
        IntOrString::String(text) => text.clone(),
    });
    TestRequest {
        method: api::some_text(&raw.method).unwrap_or_else(|| "GET".into()),
        url: api::text(&raw.url),
        headers: headers
            .map(|(name, _, value)| (name.into(), api::text(value)))
            .collect(),
        client: api::some_text(&raw.client),
        identity: api::some_text(&raw.identity),
        claims: raw.claims.get().map(ToString::to_string),
        listener,
        location: check.location(at),
    }
}

fn connection(raw: &raw::Connection, at: Span, check: &mut Check<'_>) -> Option<TestSubject> {
    let (sni, address) = (api::some_text(&raw.sni), api::some_text(&raw.address));
    if raw.port.span().is_none() {
        api::required(at, "port", "", TST002, check);
    }
    if sni.is_none() && address.is_none() {
        let found = check.error(TST002, at, "asks for no server");
        found.help("write `sni` for TLS, or the `address` that the client dials for TCP");
    }
    Some(TestSubject::Connection(TestConnection {
        port: api::port(&raw.port, check)?,
        sni,
        address,
        client: api::some_text(&raw.client),
        identity: api::some_text(&raw.client_cert),
        location: check.location(at),
    }))
}

#[cfg(test)]
mod tests;
