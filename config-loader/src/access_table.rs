//! File of `strait check --access FILE`: clients and requests, and what policies are expected to decide. Every mistake is
//! a diagnostic with its location.

use std::sync::Arc;

use serde::Deserialize;

use crate::diagnostic::Location;
use crate::diagnostic::codes::common::ACC001;
use crate::raw::{Field, Map};
use crate::settings_file::{self, Parsed, SettingsFile};
use crate::span::Lines;
use crate::validate::{Check, api};
use crate::written_proxies::{RawProxy, WrittenProxy};

/// Table of clients and requests.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AccessTable {
    /// Proxy that judges, as far as it differs from that of the flags.
    pub proxy: WrittenProxy,
    /// Clients.
    pub identities: Vec<AccessIdentity>,
    /// Requests.
    pub requests: Vec<AccessRequest>,
    /// Expected decisions.
    pub expected: Vec<ExpectedDecision>,
}

/// Client.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AccessIdentity {
    /// Name in the table.
    pub name: Arc<str>,
    /// Principal of its certificate.
    pub principal: Option<Arc<str>>,
    /// Claims of its verified token, as JSON.
    pub claims: Option<String>,
    /// IP address.
    pub address: Option<Arc<str>>,
    /// Location in the file.
    pub location: Location,
}

/// Request.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AccessRequest {
    /// Name in the table.
    pub name: Arc<str>,
    /// Method and URL.
    pub text: Arc<str>,
    /// Location in the file.
    pub location: Location,
}

/// Expected decision on a request of a client.
#[derive(Clone, Debug, PartialEq)]
pub struct ExpectedDecision {
    /// Name of the client.
    pub identity: Arc<str>,
    /// Name of the request.
    pub request: Arc<str>,
    /// Whether the request is allowed.
    pub is_allowed: bool,
    /// Location in the file.
    pub location: Location,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct File {
    #[serde(rename = "as")]
    proxy: Field<RawProxy>,
    identities: Field<Map<Identity>>,
    requests: Field<Map<String>>,
    expect: Field<Map<Map<String>>>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Identity {
    principal: Field<String>,
    claims: Field<serde_json::Value>,
    address: Field<String>,
}

impl SettingsFile for AccessTable {
    const FLAG: &'static str = "--access";

    const EMPTY: &'static str = "write `identities` and `requests`";

    fn parse(file: &Arc<str>, text: &str) -> Parsed<Self> {
        let lines = Lines::new(text);
        let locator = settings_file::whole(file, text, &lines);
        settings_file::parse_text(locator, &[], |raw: &File, _, check| table(raw, check))
    }
}

fn table(raw: &File, check: &mut Check<'_>) -> AccessTable {
    let proxy = raw
        .proxy
        .get()
        .map_or_else(WrittenProxy::default, |raw| raw.check(check));
    let identities = entries(&raw.identities).map(|(name, key, raw)| {
        let identity = raw.get();
        AccessIdentity {
            name: name.into(),
            principal: identity.and_then(|raw| api::some_text(&raw.principal)),
            claims: identity.and_then(|raw| Some(raw.claims.get()?.to_string())),
            address: identity.and_then(|raw| api::some_text(&raw.address)),
            location: check.location(key.span()),
        }
    });
    let identities: Vec<_> = identities.collect();
    let requests = entries(&raw.requests).map(|(name, _, text)| AccessRequest {
        name: name.into(),
        text: api::text(text),
        location: check.location(text.span()),
    });
    let requests: Vec<_> = requests.collect();
    let mut expected = Vec::new();
    for (identity, key, of_identity) in entries(&raw.expect) {
        known(
            identity,
            key,
            identities.iter().map(|one| &*one.name),
            check,
        );
        for (request, key, decision) in entries(of_identity) {
            known(request, key, requests.iter().map(|one| &*one.name), check);
            let decided = api::enum_of(decision, &[("allow", true), ("deny", false)], check);
            expected.extend(decided.map(|is_allowed| ExpectedDecision {
                identity: identity.into(),
                request: request.into(),
                is_allowed,
                location: check.location(decision.span()),
            }));
        }
    }
    AccessTable {
        proxy,
        identities,
        requests,
        expected,
    }
}

fn entries<T>(field: &Field<Map<T>>) -> impl Iterator<Item = (&str, &Field<String>, &Field<T>)> {
    field.get().into_iter().flat_map(Map::iter)
}

/// Reports a name that the file does not define.
fn known<'n>(
    name: &str,
    key: &Field<String>,
    mut names: impl Iterator<Item = &'n str>,
    check: &mut Check<'_>,
) {
    if !names.any(|known| known == name) {
        let message = format!("`{name}` is not defined in this file");
        let found = check.error(ACC001, key.span(), message);
        found.help("write a name from `identities`, and below it names from `requests`");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mistakes_of_the_table_have_locations() {
        let text = "as: {mode: waypoint}\nidentities: {web: {principle: a}}\nrequests: {list: GET /}\n\
                    expect:\n  web: {list: allowed, other: deny}\n  user: {list: deny}\n";
        let found = AccessTable::parse(&"access.yaml".into(), text).unwrap_err();
        let found: Vec<String> = found
            .iter()
            .map(|one| format!("{} {} {}", one.location.line, one.code, one.field))
            .collect();
        for expected in [
            "1 CM017 as.mode",
            "2 CM021 identities.web.principle",
            "5 CM017 expect.web.list",
            "5 ACC001 expect.web.other",
            "6 ACC001 expect.user",
        ] {
            assert!(
                found.iter().any(|one| one == expected),
                "{expected}: {found:#?}"
            );
        }
        assert_eq!(found.len(), 5, "{found:#?}");
    }
}
