//! RequestAuthentications that apply to the same traffic, as one list of rules. That of the previous snapshot is kept while
//! the same policies apply, and its key sets while their URLs are named.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use config_loader::resource::Object;
use config_loader::resource::istio::{
    JwtRule, KeySource, RemoteKeys as WantedKeys, RequestAuthentication, TokenLocation as Written,
};
use hyper::header::{AUTHORIZATION, HeaderName};

use crate::compile::applies::ByPolicies;
use crate::compile::provenance::provenance_of;
use crate::jwks::RemoteKeys;
use crate::snapshot::{Authentication, RuleKeys, Snapshot, TokenLocation, TokenRule};

type Policy = Arc<Object<RequestAuthentication>>;

/// Rules of the last compile, and of the present one.
#[derive(Default)]
pub(in crate::compile) struct KeptAuthentication {
    combined: ByPolicies<RequestAuthentication, Option<Arc<Authentication>>>,
    /// Key sets of the last snapshot.
    before: Vec<Arc<RemoteKeys>>,
}

impl KeptAuthentication {
    /// Begins a compile.
    pub(in crate::compile) fn start(&mut self, previous: &Snapshot) {
        self.before = previous.key_sets().cloned().collect();
        self.combined.start();
    }

    /// Ends a compile.
    pub(in crate::compile) fn finish(&mut self) {
        self.before.clear();
        self.combined.finish();
    }

    /// Returns the rules of these policies; `None` without any.
    pub(in crate::compile) fn combine(
        &mut self,
        selected: Vec<&Policy>,
    ) -> Option<Arc<Authentication>> {
        if selected.is_empty() {
            return None;
        }
        if let Some(known) = self.combined.find(&selected) {
            return known.clone();
        }
        let used = self.combined.now().flatten();
        let used = used.flat_map(|one| &one.remote);
        let known: Vec<&Arc<RemoteKeys>> = used.chain(&self.before).collect();
        let made = authentication(&selected, &known).map(Arc::new);
        self.combined.add(&selected, made.clone());
        made
    }
}

fn authentication(policies: &[&Policy], known: &[&Arc<RemoteKeys>]) -> Option<Authentication> {
    let all = policies.iter().copied().flat_map(|policy| {
        let rules = policy.spec.rules.iter();
        rules.map(move |rule| (policy, rule))
    });
    let mut all: Vec<(&Policy, &JwtRule)> = all.collect();
    all.sort_by(|(_, a), (_, b)| a.accepted.issuer.cmp(&b.accepted.issuer));
    let remote = remote_keys(all.iter().map(|(_, rule)| *rule), known);
    let mut locations: Vec<(TokenLocation, Vec<usize>)> = Vec::new();
    let mut at = |location: TokenLocation, rule: Option<usize>| {
        let known = locations.iter_mut().find(|(known, _)| *known == location);
        match known {
            Some((_, rules)) => rules.extend(rule),
            None => locations.push((location, rule.into_iter().collect())),
        }
    };
    for (number, (_, rule)) in all.iter().enumerate() {
        for location in locations_of(rule) {
            at(location, Some(number));
        }
    }
    if policies.iter().any(|policy| policy.spec.is_denying) {
        defaults()
            .into_iter()
            .for_each(|location| at(location, None));
    }
    let rules = all
        .iter()
        .map(|(policy, rule)| token_rule(policy, rule, &remote));
    let rules: Box<[TokenRule]> = rules.collect();
    let written = policies.iter().flat_map(|policy| &policy.spec.outputs);
    let mut outputs: Vec<Box<str>> = written.map(|name| folded(name)).collect();
    outputs.sort_unstable();
    outputs.dedup();
    let locations = locations
        .into_iter()
        .map(|(location, rules)| (location, rules.into()));
    let locations: Box<[_]> = locations.collect();
    (!locations.is_empty()).then(|| Authentication {
        rules,
        locations,
        outputs: outputs.into(),
        remote: remote.into_values().collect(),
    })
}

/// Returns the name of a header as programs like CGI see it, which take `-` and `_` as equal.
fn folded(name: &str) -> Box<str> {
    name.replace('_', "-").into()
}

/// Returns the key sets by URL, each with the longest time limit of its rules, and with the keys that it had before.
fn remote_keys<'a>(
    rules: impl Iterator<Item = &'a JwtRule>,
    all_known: &[&Arc<RemoteKeys>],
) -> BTreeMap<Arc<str>, Arc<RemoteKeys>> {
    let mut wanted: BTreeMap<&Arc<str>, (&WantedKeys, Duration)> = BTreeMap::new();
    for rule in rules {
        if let KeySource::Remote(keys) = &rule.keys {
            let (_, timeout) = wanted.entry(&keys.url).or_insert((keys, keys.timeout));
            *timeout = keys.timeout.max(*timeout);
        }
    }
    let known = |url: &str| {
        let mut known = all_known.iter().copied();
        known.find(|known| *known.url == *url)
    };
    let keys = wanted.into_iter().map(|(url, (keys, timeout))| {
        let known = known(url);
        let same = known
            .filter(|known| known.timeout == timeout && known.is_discovery == keys.is_discovery);
        let keys = same.cloned().unwrap_or_else(|| {
            Arc::new(RemoteKeys {
                url: Arc::clone(url),
                is_discovery: keys.is_discovery,
                timeout,
                state: known.map_or_else(Arc::default, |known| Arc::clone(&known.state)),
            })
        });
        (Arc::clone(url), keys)
    });
    keys.collect()
}

fn defaults() -> [TokenLocation; 2] {
    [
        TokenLocation::Bearer,
        TokenLocation::Param("access_token".into()),
    ]
}

fn locations_of(rule: &JwtRule) -> Vec<TokenLocation> {
    if rule.locations.is_empty() {
        return defaults().into();
    }
    let locations = rule.locations.iter().filter_map(|location| {
        Some(match location {
            Written::Cookie(name) => TokenLocation::Cookie((**name).into()),
            Written::Param(name) => TokenLocation::Param((**name).into()),
            Written::Header(name, prefix) => {
                let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
                let is_bearer =
                    name == AUTHORIZATION && prefix.trim_end().eq_ignore_ascii_case("bearer");
                match is_bearer {
                    true => TokenLocation::Bearer,
                    false => TokenLocation::Header(name, (**prefix).into()),
                }
            }
        })
    });
    locations.collect()
}

fn token_rule(
    policy: &Policy,
    rule: &JwtRule,
    remote: &BTreeMap<Arc<str>, Arc<RemoteKeys>>,
) -> TokenRule {
    let header = |name: &Arc<str>| HeaderName::from_bytes(name.as_bytes()).ok();
    let claim_headers = rule.claim_headers.iter().filter_map(|(name, claim)| {
        let claim = claim.iter().map(|name| (**name).into()).collect();
        Some((header(name)?, claim))
    });
    TokenRule {
        accepted: rule.accepted.clone(),
        keys: match &rule.keys {
            KeySource::Inline(keys) => RuleKeys::Inline(Arc::clone(keys)),
            KeySource::Remote(keys) => RuleKeys::Remote(Arc::clone(&remote[&keys.url])),
        },
        forwards_token: rule.forward_original_token,
        payload_header: rule.payload_header.as_ref().and_then(header),
        claim_headers: claim_headers.collect(),
        provenance: provenance_of(policy.as_ref(), rule.line.0),
    }
}
