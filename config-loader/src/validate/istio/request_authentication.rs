//! RequestAuthentication: validation.

use std::sync::Arc;
use std::time::Duration;

use http::Uri;

use super::{Check, shared};
use crate::diagnostic::Code;
use crate::diagnostic::codes::istio::{
    JW001, JW002, JW003, JW004, JW005, JW006, JW007, JW102, JW103,
};
use crate::raw::istio::JwtRule as RawRule;
use crate::raw::{self, Field};
use crate::resource::istio::{
    JwtRule, KeySource, RemoteKeys, RequestAuthentication, TokenLocation,
};
use crate::span::Span;
use crate::validate::istio::security_policies::{OF_POLICIES, scope};
use crate::validate::scalar;

/// Time limit of a fetch that has none.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Bytes of a URL.
const URL_BYTES_MAX: usize = 2048;
/// Claims that a rule may split into words.
const WORDS_MAX: usize = 64;
/// Headers that say how a message is read, and where it goes.
const FRAMING: [&str; 7] = [
    "connection",
    "content-length",
    "host",
    "keep-alive",
    "te",
    "transfer-encoding",
    "upgrade",
];

/// Checks a RequestAuthentication.
pub fn request_authentication(
    raw: &raw::istio::RequestAuthentication,
    check: &mut Check<'_>,
) -> RequestAuthentication {
    let scope = scope(
        &raw.selector,
        &raw.target_ref,
        &raw.target_refs,
        OF_POLICIES,
        check,
    );
    let mut rules: Vec<JwtRule> = Vec::new();
    let mut outputs = Vec::new();
    for (field, raw) in scalar::items(&raw.jwt_rules, check) {
        outputs.extend(output_fields(raw).filter_map(output_name));
        let span = shared::location(&raw.issuer, field.span());
        let Some(rule) = rule(raw, field.span(), check) else {
            continue;
        };
        let issuer = &rule.accepted.issuer;
        if rules.iter().any(|other| other.accepted.issuer == *issuer) {
            let message = format!("several rules have the issuer `{issuer}`");
            let found = check.warning(JW103, span, message);
            found.help("each of them is tried; write one rule with all audiences");
        }
        rules.push(rule);
    }
    RequestAuthentication {
        scope,
        rules,
        outputs,
        is_denying: false,
    }
}

fn rule(raw: &RawRule, span: Span, check: &mut Check<'_>) -> Option<JwtRule> {
    let locations = locations(raw, check);
    let claim_headers = claim_headers(raw, check);
    let payload_header = output_header(&raw.output_payload_to_header, check);
    let accepted = jwt::Rule {
        issuer: shared::text(&raw.issuer).unwrap_or_default().into(),
        audiences: names(&raw.audiences, "audience", JW005, check),
        words: words(raw, check),
    };
    let timeout = scalar::duration(&raw.timeout, check).unwrap_or(TIMEOUT);
    Some(JwtRule {
        keys: keys(raw, timeout, span, check)?,
        accepted,
        locations,
        forward_original_token: shared::flag(&raw.forward_original_token),
        payload_header,
        claim_headers,
        line: check.line(span),
    })
}

/// Returns the source of the keys; `None` if it is not known.
fn keys(raw: &RawRule, timeout: Duration, span: Span, check: &mut Check<'_>) -> Option<KeySource> {
    let (inline, uri) = (shared::text(&raw.jwks), shared::text(&raw.jwks_uri));
    shared::exclude(
        [
            ("jwks", shared::text_span(&raw.jwks)),
            ("jwksUri", shared::text_span(&raw.jwks_uri)),
        ],
        JW002,
        "keep the one that is meant",
        check,
    );
    let issuer = shared::text(&raw.issuer);
    if issuer.is_none() && uri.is_none() {
        let at = shared::location(&raw.issuer, span);
        let found = check.error(JW001, at, "the rule has no issuer");
        found.help("write the claim `iss` of its tokens as `issuer`");
        return None;
    }
    if let Some(text) = inline {
        return inline_keys(text, &raw.jwks, check).map(|keys| KeySource::Inline(Arc::new(keys)));
    }
    let (url, field, is_discovery) = match uri {
        Some(uri) => (uri.to_owned(), &raw.jwks_uri, false),
        None => {
            let issuer = issuer.unwrap_or_default();
            let issuer = issuer.strip_suffix('/').unwrap_or(issuer);
            let url = format!("{issuer}/.well-known/openid-configuration");
            (url, &raw.issuer, true)
        }
    };
    if !is_url(&url) {
        let message = match is_discovery {
            true => "the issuer is no URL, so that its keys are not known".to_owned(),
            false => format!("`{url}` is not a URL of a key set"),
        };
        let found = check.error(JW004, field.span(), message);
        found.help(match is_discovery {
            true => "write its keys as `jwks`, or their URL as `jwksUri`",
            false => "write an http or https URL of at most 2048 bytes, without user and fragment",
        });
        return None;
    }
    if issuer.is_none() {
        let message = "without an issuer, tokens of any issuer with these keys are accepted";
        let found = check.warning(JW103, field.span(), message);
        found.help("write the claim `iss` of the tokens as `issuer`");
    }
    if url.starts_with("http:") {
        let message = format!("keys from `{url}` can be replaced on their way");
        let found = check.warning(JW102, field.span(), message);
        found.help("write an https URL");
    }
    Some(KeySource::Remote(RemoteKeys {
        url: url.into(),
        is_discovery,
        timeout,
    }))
}

fn inline_keys(text: &str, field: &Field<String>, check: &mut Check<'_>) -> Option<jwt::Keys> {
    let keys = match jwt::Keys::parse(text.as_bytes()) {
        Ok(keys) => keys,
        Err(error) => {
            let found = check.error(JW003, field.span(), format!("jwks cannot be used: {error}"));
            found.help("write the JSON object that the issuer publishes, with its list `keys`");
            return None;
        }
    };
    for remark in &keys.remarks {
        let found = check.warning(JW102, field.span(), remark.clone());
        found.help("write only public keys for signatures, each with a `kid` of its own");
    }
    Some(keys)
}

/// Whether a text is a URL that keys can be fetched from.
fn is_url(text: &str) -> bool {
    let Ok(uri) = text.parse::<Uri>() else {
        return false;
    };
    let is_known = matches!(uri.scheme_str(), Some("http" | "https"));
    let has_user = uri.authority().is_none_or(|one| one.as_str().contains('@'));
    is_known && !has_user && text.len() <= URL_BYTES_MAX && !text.contains('#')
}

fn locations(raw: &RawRule, check: &mut Check<'_>) -> Vec<TokenLocation> {
    let mut all = Vec::new();
    for (field, header) in scalar::items(&raw.from_headers, check) {
        let name = shared::text(&header.name).unwrap_or_default();
        if !scalar::is_header_name(name) {
            let at = shared::location(&header.name, field.span());
            let found = check.error(JW005, at, format!("`{name}` is not a header name"));
            found.help("write the name of the header that has the token");
            continue;
        }
        let prefix = shared::text_or_empty(&header.prefix);
        all.push(TokenLocation::Header(
            name.to_ascii_lowercase().into(),
            prefix,
        ));
    }
    let params = names(&raw.from_params, "query parameter", JW005, check);
    all.extend(
        params
            .into_iter()
            .map(|name| TokenLocation::Param(name.into())),
    );
    let cookies = names(&raw.from_cookies, "cookie", JW005, check);
    all.extend(
        cookies
            .into_iter()
            .map(|name| TokenLocation::Cookie(name.into())),
    );
    all
}

/// Returns names, none of which may be empty.
fn names(
    field: &Field<Vec<Field<String>>>,
    what: &str,
    code: Code,
    check: &mut Check<'_>,
) -> Box<[Box<str>]> {
    let mut names = Vec::new();
    for (entry, name) in scalar::items(field, check) {
        if name.is_empty() {
            let found = check.error(code, entry.span(), format!("a {what} has no name"));
            found.help("write the name, or remove the entry");
        } else {
            names.push(name.as_str().into());
        }
    }
    names.into()
}

fn words(raw: &RawRule, check: &mut Check<'_>) -> Box<[Box<str>]> {
    let field = &raw.space_delimited_claims;
    let words = names(field, "claim", JW007, check);
    if words.len() > WORDS_MAX {
        let message = format!("{} claims are more than {WORDS_MAX}", words.len());
        let found = check.error(JW007, field.span(), message);
        found.help("keep the claims that policies and routes match");
    }
    words
}

/// Iterates over the fields of a rule that name headers which the proxy sets.
fn output_fields(raw: &RawRule) -> impl Iterator<Item = &Field<String>> {
    let claims = raw.output_claim_to_headers.get().into_iter().flatten();
    let claims = claims.filter_map(|entry| Some(&entry.get()?.header));
    claims.chain([&raw.output_payload_to_header])
}

/// Returns the name of a header that the proxy may set, in lower case.
fn output_name(field: &Field<String>) -> Option<Arc<str>> {
    let name = shared::text(field)?.to_ascii_lowercase();
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    (name.bytes().all(is_allowed) && !FRAMING.contains(&&*name)).then(|| name.into())
}

/// Returns the name of a header that the proxy sets; `None` if there is none.
fn output_header(field: &Field<String>, check: &mut Check<'_>) -> Option<Arc<str>> {
    let (written, name) = (shared::text(field)?, output_name(field));
    if name.is_none() {
        let message = format!("`{written}` cannot be an output header");
        let found = check.error(JW006, field.span(), message);
        found.help("write letters, digits, `-` and `_`, and not a header of the message itself");
    }
    name
}

fn claim_headers(raw: &RawRule, check: &mut Check<'_>) -> Vec<(Arc<str>, Vec<Arc<str>>)> {
    let mut all: Vec<(Arc<str>, Vec<Arc<str>>)> = Vec::new();
    for (field, entry) in scalar::items(&raw.output_claim_to_headers, check) {
        let claim = shared::text(&entry.claim).unwrap_or_default();
        let is_path = claim.split('.').all(|name| !name.is_empty());
        if !is_path || shared::text(&entry.header).is_none() {
            let found = check.error(JW006, field.span(), "an entry needs a header and a claim");
            found.help("write `{header: x-user, claim: sub}`; dots lead into nested claims");
            continue;
        }
        let Some(header) = output_header(&entry.header, check) else {
            continue;
        };
        if all.iter().any(|(other, _)| *other == header) {
            let message = format!("header `{header}` is written twice");
            let found = check.error(JW006, entry.header.span(), message);
            found.help("write each header once");
            continue;
        }
        all.push((header, claim.split('.').map(Arc::from).collect()));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::validate::istio::testing::{check_of, load};

    const KEYS: &str = r#"{"keys":[{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}"#;

    fn document(rule: &str) -> String {
        format!(
            "apiVersion: security.istio.io/v1\nkind: RequestAuthentication\nmetadata: {{name: own, namespace: ns}}\n\
             spec:\n  jwtRules:\n  - {{{rule}}}\n"
        )
    }

    const I: &str = "issuer: 'https://a.example'";

    fn with(more: &str) -> String {
        format!("{I}, {more}")
    }

    fn check_all(cases: &[(String, &[&str])]) {
        for (rule, expected) in cases {
            check_of(&document(rule), expected);
        }
    }

    #[test]
    fn issuers_and_keys_are_checked() {
        let inline = format!("issuer: a, jwks: '{KEYS}'");
        let two = format!("{inline}}}\n  - {{{inline}");
        check_all(&[
            (I.into(), &[]),
            (inline.clone(), &[]),
            (two, &["W JW103 7"]),
            ("jwksUri: 'https://a.example/keys'".into(), &["W JW103 6"]),
            (with("jwksUri: 'http://a.example/keys'"), &["W JW102 6"]),
            (with("jwksUri: 'file:///etc/keys'"), &["E JW004 6"]),
            (with("jwksUri: 'https://me@a.example/'"), &["E JW004 6"]),
            (with("jwksUri: 'https://a.example/#x'"), &["E JW004 6"]),
            (
                with(&format!(
                    "jwksUri: 'https://a.example/{}'",
                    "k".repeat(2048)
                )),
                &["E JW004 6"],
            ),
            ("issuer: a".into(), &["E JW004 6"]),
            ("{}".trim_matches(['{', '}']).into(), &["E JW001 6"]),
            ("issuer: ''".into(), &["E JW001 6"]),
            (with("jwks: '{}'"), &["E JW003 6"]),
            (
                with(r#"jwks: '{"keys":[{"kty":"oct","k":"eA"}]}'"#),
                &["E JW003 6"],
            ),
            (
                format!("{inline}, jwksUri: 'https://a.example/'"),
                &["E JW002 6"],
            ),
            (
                inline.replace("\"kty\"", "\"d\":\"x\",\"kty\""),
                &["W JW102 6"],
            ),
        ]);
    }

    #[test]
    fn tokens_and_outputs_are_checked() {
        check_all(&[
            (with("audiences: ['']"), &["E JW005 6"]),
            (with("audiences: [a, b]"), &[]),
            (with("fromHeaders: [{name: x-jwt}]"), &[]),
            (with("fromHeaders: [{name: x-jwt, prefix: 'JWT '}]"), &[]),
            (with("fromHeaders: [{prefix: a}]"), &["E JW005 6"]),
            (with("fromHeaders: [{name: 'a b'}]"), &["E JW005 6"]),
            (with("fromParams: [token]"), &[]),
            (with("fromParams: ['']"), &["E JW005 6"]),
            (with("fromCookies: ['']"), &["E JW005 6"]),
            (with("outputPayloadToHeader: x-payload"), &[]),
            (with("outputPayloadToHeader: 'x payload'"), &["E JW006 6"]),
            (with("outputPayloadToHeader: Host"), &["E JW006 6"]),
            (
                with("outputClaimToHeaders: [{header: x_user, claim: a.b}]"),
                &[],
            ),
            (
                with("outputClaimToHeaders: [{header: x-user}]"),
                &["E JW006 6"],
            ),
            (with("outputClaimToHeaders: [{claim: sub}]"), &["E JW006 6"]),
            (
                with("outputClaimToHeaders: [{header: 'x.user', claim: sub}]"),
                &["E JW006 6"],
            ),
            (
                with("outputClaimToHeaders: [{header: x, claim: a..b}]"),
                &["E JW006 6"],
            ),
            (
                with("outputClaimToHeaders: [{header: x, claim: a}, {header: X, claim: b}]"),
                &["E JW006 6"],
            ),
            (with("timeout: 0s"), &["E CM001 6"]),
            (with("spaceDelimitedClaims: ['']"), &["E JW007 6"]),
            (
                with(&format!(
                    "spaceDelimitedClaims: [{}]",
                    vec!["a"; 65].join(", ")
                )),
                &["E JW007 6"],
            ),
            (with("fromHeader: [{name: a}]"), &["E CM021 6"]),
        ]);
    }

    #[test]
    fn every_field_of_a_rule_is_read() {
        let (set, found) = load(&document(
            "issuer: 'https://a.example/', audiences: [shop], fromHeaders: [{name: X-Jwt, prefix: 'J '}], \
             fromParams: [p], fromCookies: [c], outputPayloadToHeader: X-Payload, forwardOriginalToken: true, \
             outputClaimToHeaders: [{header: X-Role, claim: a.b}], timeout: 2s, spaceDelimitedClaims: [roles]",
        ));
        assert!(found.is_empty(), "{found:#?}");
        let mut policies = set.request_authentications.values();
        let rule = &policies.next().expect("it is good").spec.rules[0];
        assert_eq!(&*rule.accepted.issuer, "https://a.example/");
        assert_eq!(*rule.accepted.audiences, ["shop".into()]);
        assert_eq!(*rule.accepted.words, ["roles".into()]);
        let KeySource::Remote(remote) = &rule.keys else {
            panic!("no inline keys");
        };
        assert_eq!(
            &*remote.url,
            "https://a.example/.well-known/openid-configuration"
        );
        assert!(remote.is_discovery);
        assert_eq!(remote.timeout, Duration::from_secs(2));
        let locations = [
            TokenLocation::Header("x-jwt".into(), "J ".into()),
            TokenLocation::Param("p".into()),
            TokenLocation::Cookie("c".into()),
        ];
        assert_eq!(rule.locations, locations);
        assert!(rule.forward_original_token);
        assert_eq!(rule.payload_header.as_deref(), Some("x-payload"));
        assert_eq!(
            rule.claim_headers,
            [("x-role".into(), vec!["a".into(), "b".into()])]
        );
    }

    #[test]
    fn rejected_policy_that_was_never_valid_refuses_tokens() {
        let text =
            document("issuer: ''").replace("spec:", "spec:\n  selector: {matchLabels: {app: a}}");
        let (set, _) = load(&text);
        let mut policies = set.request_authentications.values();
        let policy = policies.next().expect("it stands in");
        assert!(policy.spec.is_denying);
        assert_eq!(policy.spec.scope.selector["app"], "a");
    }

    #[test]
    fn rejected_policy_keeps_the_names_of_its_output_headers() {
        for broken in [
            "audience: [a], outputClaimToHeaders: [{header: X-Tier, claim: tier}]",
            "jwks: '{}', outputClaimToHeaders: [{header: X-Tier, claim: tier}]",
            "outputClaimToHeaders: [{header: X-Tier, clam: tier}]",
            "outputClaimToHeaders: [{header: X-Tier, claim: a}, {header: x-tier, claim: b}]",
            "outputPayloadToHeader: x-tier, fromHeader: []",
            "outputPayloadToHeader: x-tier, outputClaimToHeaders: [{header: host, claim: a}]",
        ] {
            let (set, _) = load(&document(&with(broken)));
            let mut policies = set.request_authentications.values();
            let policy = &policies.next().expect("it stands in").spec;
            assert!(policy.is_denying, "{broken}");
            assert!(
                policy.outputs.iter().all(|name| **name == *"x-tier"),
                "{broken}"
            );
            assert!(!policy.outputs.is_empty(), "{broken}");
        }
    }
}
