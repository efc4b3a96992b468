//! HTTP rules, and the combinations of fields that they allow.

use std::sync::Arc;
use std::time::Duration;

use super::head::Head;
use super::{action, cors, fault, headers, http_match, mirror, retries, rewrite};
use crate::diagnostic::codes::istio::{
    VS036, VS037, VS038, VS039, VS040, VS041, VS042, VS043, VS045, VS046, VS047, VS315,
};
use crate::raw::{self, Field};
use crate::resource::istio::HttpRule;
use crate::span::Span;
use crate::validate::istio::shared::{self, exclude};
use crate::validate::{Check, scalar};

/// Returns the rules, in order.
pub(super) fn rules(
    field: &Field<Vec<Field<raw::istio::HttpRoute>>>,
    head: Head<'_>,
    check: &mut Check<'_>,
) -> Vec<Arc<HttpRule>> {
    let entries = scalar::items(field, check);
    let rules = entries
        .into_iter()
        .map(|(entry, raw)| Arc::new(rule(raw, entry.span(), head, check)));
    rules.collect()
}

fn rule(
    raw: &raw::istio::HttpRoute,
    span: Span,
    head: Head<'_>,
    check: &mut Check<'_>,
) -> HttpRule {
    combinations(raw, span, head, check);
    authority_once(raw, check);
    let matches = http_match::blocks(&raw.r#match, head, check);
    let rewrite = rewrite::rewrite(&raw.rewrite, &matches, check);
    let (mirror, mirror_percentage, mirrors) = mirror::mirrors(raw, check);
    let timeout = timeout(&raw.timeout, check);
    let retries = retries::retries(&raw.retries, check);
    if let (Some(timeout), Some(retries)) = (timeout, &retries)
        && let Some(each) = retries.per_try_timeout
        && each > timeout
        && let Some(raw) = raw.retries.get()
    {
        let message = format!(
            "a perTryTimeout of {each:?} never ends an attempt: the rule's timeout is {timeout:?}"
        );
        check
            .warning(VS315, raw.per_try_timeout.span(), message)
            .help("write a perTryTimeout that is shorter than `timeout`, which all attempts share");
    }
    HttpRule {
        name: shared::text_or_empty(&raw.name),
        action: action::action(raw, &matches, check),
        matches,
        rewrite: rewrite.map(Box::new),
        timeout,
        retries: retries.map(Box::new),
        fault: fault::fault(&raw.fault, check).map(Box::new),
        mirror: mirror.map(Box::new),
        mirror_percentage,
        mirrors,
        cors: cors::cors_policy(&raw.cors_policy, check).map(Box::new),
        headers: headers::headers(&raw.headers, check).map(Box::new),
        line: check.line(span),
    }
}

/// Returns the request timeout. `0s` means no limit, which Istio rejects; it is accepted only if the options allow it.
fn timeout(field: &Field<String>, check: &mut Check<'_>) -> Option<Duration> {
    if check.options().zero_timeout_passes {
        return scalar::duration_or_zero(field, check).filter(|timeout| !timeout.is_zero());
    }
    scalar::duration(field, check)
}

/// Checks the combination of fields in a rule: one action, settings that the action uses, and no mutually exclusive
/// fields.
fn combinations(raw: &raw::istio::HttpRoute, span: Span, head: Head<'_>, check: &mut Check<'_>) {
    let route = ("route", shared::list(&raw.route));
    let redirect = ("redirect", shared::block(&raw.redirect));
    let direct = ("directResponse", shared::block(&raw.direct_response));
    let delegate = ("delegate", shared::block(&raw.delegate));
    let fault = ("fault", shared::block(&raw.fault));
    let rewrite = ("rewrite", shared::block(&raw.rewrite));
    if [route, redirect, direct, delegate]
        .iter()
        .all(|(_, span)| span.is_none())
    {
        check
            .error(VS036, span, "the rule does nothing")
            .help("add `route`, `redirect`, `directResponse` or `delegate`");
    }
    const ACTIONS: &str = "a rule does one thing: remove one of them, or write two rules";
    const NO_UPSTREAM: &str = "a rule with its own answer forwards no request; remove this field";
    exclude([redirect, route], VS037, ACTIONS, check);
    exclude([redirect, fault], VS038, NO_UPSTREAM, check);
    exclude(
        [redirect, rewrite],
        VS039,
        "write the new path as `redirect.uri`, and remove `rewrite`",
        check,
    );
    exclude([redirect, direct], VS040, ACTIONS, check);
    exclude([direct, route], VS041, ACTIONS, check);
    exclude([direct, fault], VS042, NO_UPSTREAM, check);
    exclude([direct, rewrite], VS043, NO_UPSTREAM, check);
    exclude([delegate, route], VS045, ACTIONS, check);
    exclude([delegate, redirect], VS046, ACTIONS, check);
    exclude([delegate, direct], VS036, ACTIONS, check);
    if head.delegate && !delegate.1.is_none() {
        check
            .error(VS047, delegate.1, "delegates cannot be nested")
            .help("this VirtualService has no hosts, so it is a delegate itself: write out the rules here");
    }
}

fn authority_once(raw: &raw::istio::HttpRoute, check: &mut Check<'_>) {
    let mut places = Vec::new();
    headers::rewrite_authority_place(&raw.rewrite, &mut places);
    headers::authority_places(&raw.headers, &mut places);
    places.sort_by_key(|(_, span)| *span);
    headers::set_once(&places, check);
}
