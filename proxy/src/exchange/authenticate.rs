//! Authentication of requests by JSON Web Tokens, by the rules that apply to the proxy.
//!
//! Called by [`run`](super::run) before the route is looked up, since routes may match claims. Every token at a location
//! of a rule must be valid: the workload may read any of them. A sidecar looks at inbound traffic only.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use hyper::header::{
    ACCESS_CONTROL_REQUEST_METHOD, AUTHORIZATION, COOKIE, HeaderMap, HeaderName, HeaderValue,
    ORIGIN, WWW_AUTHENTICATE,
};
use hyper::{Method, Request, StatusCode};
use jwt::{Refusal, Token, UnixSeconds};
use percent_encoding::percent_decode_str;
use smallvec::SmallVec;

use super::message::local_reply::{LocalReply, OwnParts};
use super::select::find_route::authority;
use super::token_cache::{TokenCache, Verified};
use super::worker::Worker;
use crate::snapshot::{Authentication, ListenerPolicies, RuleKeys, TokenLocation, TokenRule};
use crate::telemetry::{Counter, Decided, ResponseFlags, Stage};
use traffic::claims::{Claim, Claims};
use traffic::filter::Scheme;

/// Characters of the path in `www-authenticate`.
const REALM_PATH_MAX: usize = 256;

/// Verified tokens of a request, each with the number of its location.
type AllVerified = SmallVec<[(usize, Arc<Verified>); 1]>;

/// Verifies the tokens of a request, removes and adds headers as their rules say, and returns the claims of the first
/// token in the order of issuers. They are also among the extensions of the request, for conditions of routes.
///
/// # Errors
///
/// The reply to a client with a token that is not valid: 401, or 403 for another audience.
pub(super) fn authenticate<B>(
    worker: &Worker,
    policies: &ListenerPolicies,
    scheme: Scheme,
    request: &mut Request<B>,
) -> Result<Option<Arc<Verified>>, LocalReply> {
    let Some(authentication) = &policies.authentication else {
        return Ok(None);
    };
    let verified = verify_all(worker, authentication, request);
    let count = |is_denied| {
        let (stage, is_tcp) = (Stage::Jwt, false);
        let decided = Decided {
            stage,
            is_denied,
            is_tcp,
        };
        worker.telemetry.decisions.count(worker.id, decided.index());
    };
    let edited = verified.and_then(|(verified, headers)| {
        edit(authentication, &verified, headers, request.headers_mut())?;
        Ok(verified)
    });
    match edited {
        Err(refusal) => {
            worker.count(Counter::TokensRefused);
            count(true);
            Err(reply(refusal, scheme, request))
        }
        Ok(mut verified) => {
            verified.sort_by_key(|(_, one)| one.rule);
            let first = verified.into_iter().next().map(|(_, verified)| verified);
            if let Some(verified) = &first {
                worker.count(Counter::TokensVerified);
                count(false);
                request
                    .extensions_mut()
                    .insert(Arc::clone(&verified.claims));
            }
            Ok(first)
        }
    }
}

/// Headers to set on a request.
type NewHeaders = Vec<(HeaderName, HeaderValue)>;

/// Verifies all tokens. Returns them with the headers that their rules set.
fn verify_all<B>(
    worker: &Worker,
    authentication: &Arc<Authentication>,
    request: &Request<B>,
) -> Result<(AllVerified, NewHeaders), Refusal> {
    let mut all = AllVerified::new();
    let mut headers = NewHeaders::new();
    if is_preflight(request) {
        return Ok((all, headers));
    }
    for (number, (location, _)) in authentication.locations.iter().enumerate() {
        let Some(token) = find(location, request)? else {
            continue;
        };
        let verified = verify(worker, authentication, number, &token)?;
        let rule = &authentication.rules[verified.rule];
        if let Some(name) = &rule.payload_header {
            headers.push((name.clone(), value(Token::payload(&token))?));
        }
        add_claims(rule, &verified.claims, &mut headers)?;
        all.push((number, verified));
    }
    Ok((all, headers))
}

/// Adds the headers that a rule sets by claims.
fn add_claims(rule: &TokenRule, claims: &Claims, headers: &mut NewHeaders) -> Result<(), Refusal> {
    for (name, path) in &rule.claim_headers {
        if let Some(claim) = claims.at(path.iter().map(|name| &**name)) {
            headers.push((name.clone(), claim_value(claim)?));
        }
    }
    Ok(())
}

/// Changes the headers of a request that is explained, with claims as of a verified token or without a token.
pub(crate) fn explained<B>(policies: &ListenerPolicies, request: &mut Request<B>) {
    let Some(authentication) = &policies.authentication else {
        return;
    };
    strip_outputs(authentication, request.headers_mut());
    let Some(claims) = request.extensions().get::<Arc<Claims>>().cloned() else {
        return;
    };
    let mut rules = authentication.rules.iter();
    let mut headers = NewHeaders::new();
    if let Some(rule) = rules.find(|rule| rule.accepted.is_for(claims.issuer()))
        && add_claims(rule, &claims, &mut headers).is_ok()
    {
        request.headers_mut().extend(headers);
    }
}

/// Whether a browser asks by CORS before it sends the request, without its token.
fn is_preflight<B>(request: &Request<B>) -> bool {
    let headers = request.headers();
    request.method() == Method::OPTIONS
        && headers.contains_key(ORIGIN)
        && headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD)
}

/// Verifies a token by the rules of its location, or finds it among the verified ones.
fn verify(
    worker: &Worker,
    authentication: &Arc<Authentication>,
    location: usize,
    text: &str,
) -> Result<Arc<Verified>, Refusal> {
    let key = TokenCache::key(location, text);
    let mut cache = worker.tokens.borrow_mut();
    if let Some(known) = cache.find(authentication, &key) {
        let rule = &authentication.rules[known.rule];
        let is_current = keys(&rule.keys).is_ok_and(|keys| Arc::ptr_eq(&keys, &known.keys));
        if is_current {
            worker.count(Counter::TokenCacheHits);
            rule.accepted.admit(&known.claims, now())?;
            return Ok(known);
        }
        cache.remove(&key);
    }
    worker.count(Counter::TokenCacheMisses);
    let token = Token::parse(text)?;
    let rules = &authentication.locations[location].1;
    let mut refusal = Refusal::Issuer;
    for &number in rules {
        let rule = &authentication.rules[number];
        if !rule.accepted.is_for(token.issuer()) {
            continue;
        }
        let keys = keys(&rule.keys);
        match rule
            .accepted
            .verify(&token, keys.as_deref().map_err(|why| *why), now())
        {
            Ok(claims) => {
                let keys = keys?;
                let rule = number;
                let claims = Arc::new(claims);
                let verified = Arc::new(Verified { rule, claims, keys });
                cache.add(key, Arc::clone(&verified));
                return Ok(verified);
            }
            Err(why) => {
                if let (Refusal::Key, RuleKeys::Remote(remote)) = (why, &rule.keys) {
                    remote.state.key_is_unknown();
                }
                if refusal == Refusal::Issuer {
                    refusal = why;
                }
            }
        }
    }
    Err(refusal)
}

fn keys(keys: &RuleKeys) -> Result<Arc<jwt::Keys>, Refusal> {
    match keys {
        RuleKeys::Inline(keys) => Ok(Arc::clone(keys)),
        RuleKeys::Remote(remote) => remote.state.keys().clone().ok_or(Refusal::Fetch),
    }
}

fn now() -> UnixSeconds {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        since.as_secs().try_into().unwrap_or(UnixSeconds::MAX)
    })
}

/// Returns the token at a location; `None` without one.
fn find<'a, B>(
    location: &TokenLocation,
    request: &'a Request<B>,
) -> Result<Option<Cow<'a, str>>, Refusal> {
    match location {
        TokenLocation::Bearer => {
            // lines of this field may be joined by commas, which a token has not
            let lines = request.headers().get_all(AUTHORIZATION).into_iter();
            let values = lines.flat_map(|line| line.as_bytes().split(|byte| *byte == b','));
            sole(values.map(|value| {
                let token = bearer(value.trim_ascii()).unwrap_or_default();
                String::from_utf8_lossy(token.trim_ascii())
            }))
        }
        TokenLocation::Header(name, prefix) => in_header(request.headers(), name, |value| {
            value.strip_prefix(prefix.as_bytes())
        }),
        TokenLocation::Cookie(name) => {
            let lines = request.headers().get_all(COOKIE).into_iter();
            let pairs = lines.flat_map(|line| line.as_bytes().split(|byte| *byte == b';'));
            let values = pairs.filter_map(|pair| {
                let pair = pair.trim_ascii();
                pair.strip_prefix(name.as_bytes())?.strip_prefix(b"=")
            });
            sole(values.map(String::from_utf8_lossy))
        }
        TokenLocation::Param(name) => {
            let pairs = request.uri().query().unwrap_or_default().split('&');
            sole(pairs.filter_map(|pair| {
                let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
                (unescaped(key) == **name).then(|| unescaped(value))
            }))
        }
    }
}

/// Returns the token in a header, by what `token` takes from its value. A token and another line of the header are none.
fn in_header<'a>(
    headers: &'a HeaderMap,
    name: &HeaderName,
    token: impl Fn(&'a [u8]) -> Option<&'a [u8]>,
) -> Result<Option<Cow<'a, str>>, Refusal> {
    let lines = headers.get_all(name).into_iter();
    sole(lines.map(|line| {
        let token = token(line.as_bytes()).unwrap_or_default().trim_ascii();
        String::from_utf8_lossy(token)
    }))
}

/// Returns the token among the values at a location; none of them may be empty or another one, since the workload may read
/// any.
fn sole<'a>(values: impl Iterator<Item = Cow<'a, str>>) -> Result<Option<Cow<'a, str>>, Refusal> {
    let mut count = 0;
    let mut found = None;
    for value in values {
        count += 1;
        found = found.or_else(|| (!value.is_empty()).then_some(value));
    }
    match count > 1 && found.is_some() {
        true => Err(Refusal::Malformed(
            "Jwt is not in the form of Header.Payload.Signature with two dots and 3 sections",
        )),
        false => Ok(found),
    }
}

/// Returns what follows the scheme `Bearer`.
fn bearer(value: &[u8]) -> Option<&[u8]> {
    let (scheme, rest) = value.split_at_checked(b"bearer".len())?;
    let is_separate = matches!(rest.first(), Some(b' ' | b'\t'));
    (is_separate && scheme.eq_ignore_ascii_case(b"bearer")).then_some(rest)
}

/// Decodes percent-escapes.
fn unescaped(text: &str) -> Cow<'_, str> {
    percent_decode_str(text).decode_utf8_lossy()
}

const BAD_OUTPUT: Refusal = Refusal::Malformed("Jwt claim is not a valid header value");

fn value(text: &str) -> Result<HeaderValue, Refusal> {
    HeaderValue::from_str(text).map_err(|_| BAD_OUTPUT)
}

/// Returns the value of the header for a claim.
fn claim_value(claim: &Claim) -> Result<HeaderValue, Refusal> {
    let text = claim.to_string();
    let text = match claim {
        Claim::List(_) | Claim::Object(_) => BASE64_STANDARD.encode(text),
        _ => text,
    };
    HeaderValue::try_from(text.into_bytes()).map_err(|_| BAD_OUTPUT)
}

/// Removes the headers of tokens that are not forwarded, and sets the output headers of rules.
fn edit(
    authentication: &Authentication,
    verified: &AllVerified,
    new: NewHeaders,
    headers: &mut HeaderMap,
) -> Result<(), Refusal> {
    for (number, one) in verified {
        if authentication.rules[one.rule].forwards_token {
            continue;
        }
        match &authentication.locations[*number].0 {
            TokenLocation::Bearer => drop(headers.remove(AUTHORIZATION)),
            TokenLocation::Header(name, _) => drop(headers.remove(name)),
            TokenLocation::Cookie(_) | TokenLocation::Param(_) => {}
        }
    }
    for (name, value) in new {
        headers.insert(name, value);
    }
    Ok(())
}

/// Removes the output headers of rules, which clients may not send.
pub(super) fn strip_outputs(authentication: &Authentication, headers: &mut HeaderMap) {
    if authentication.outputs.is_empty() {
        return;
    }
    let is_output = |name: &&HeaderName| {
        let mut outputs = authentication.outputs.iter();
        outputs.any(|output| is_folded(output, name.as_str()))
    };
    let forged: SmallVec<[HeaderName; 4]> = headers.keys().filter(is_output).cloned().collect();
    for name in forged {
        headers.remove(name);
    }
}

/// Whether a name is this one, with `-` and `_` taken as equal.
fn is_folded(folded: &str, name: &str) -> bool {
    let fold = |byte: u8| if byte == b'_' { b'-' } else { byte };
    folded.len() == name.len() && folded.bytes().eq(name.bytes().map(fold))
}

/// Returns the reply to a token that is not valid.
fn reply<B>(refusal: Refusal, scheme: Scheme, request: &Request<B>) -> LocalReply {
    let host = authority(request).unwrap_or_default();
    let path = request.uri().path().chars().take(REALM_PATH_MAX);
    let start = format!("{}://{host}", scheme.as_str());
    let mut realm = String::new();
    for character in start.chars().chain(path) {
        match character {
            '"' => realm.push_str("%22"),
            '\\' => realm.push_str("%5C"),
            ' '..='~' => realm.push(character),
            _ => realm.extend(
                character
                    .to_string()
                    .bytes()
                    .map(|byte| format!("%{byte:02X}")),
            ),
        }
    }
    let challenge = format!("Bearer realm=\"{realm}\", error=\"invalid_token\"");
    let mut headers = HeaderMap::new();
    if let Ok(challenge) = HeaderValue::try_from(challenge) {
        headers.insert(WWW_AUTHENTICATE, challenge);
    }
    let text = refusal.text();
    let details = format!("jwt_authn_access_denied{{{}}}", text.replace(' ', "_"));
    LocalReply {
        status: match refusal {
            Refusal::Audience => StatusCode::FORBIDDEN,
            _ => StatusCode::UNAUTHORIZED,
        },
        flags: ResponseFlags::NONE,
        body: text.into(),
        details: details.into(),
        own: Some(Box::new(OwnParts {
            headers,
            body: None,
        })),
        ..LocalReply::DENIED
    }
}
