//! BackendTrafficPolicy: targets and limits on bodies.

use super::limit_rule::rules;
use crate::diagnostic::codes::limits::{RL001, RL002, RL009, RL101};
use crate::raw::envoy_gateway as raw;
use crate::raw::{Field, IntOrString};
use crate::resource::envoy_gateway::BackendTrafficPolicy;
use crate::resource::envoy_gateway::backend_traffic_policy::{Target, TargetKind};
use crate::span::Span;
use crate::validate::{Check, api, scalar};

const ISTIO: &str = "networking.istio.io";
const GATEWAY_API: &str = "gateway.networking.k8s.io";

/// Rules of a local limit.
const LOCAL_RULES_MAX: usize = 16;
/// Rules of a global limit.
const GLOBAL_RULES_MAX: usize = 128;

/// Checks a BackendTrafficPolicy.
pub fn backend_traffic_policy(
    raw: &raw::BackendTrafficPolicy,
    check: &mut Check<'_>,
) -> BackendTrafficPolicy {
    let limits = raw.rate_limit.get().cloned().unwrap_or_default();
    BackendTrafficPolicy {
        targets: targets(raw, check),
        local: rules(&limits.local, LOCAL_RULES_MAX, true, check),
        global: rules(&limits.global, GLOBAL_RULES_MAX, false, check),
        body_max: body_max(&raw.request_buffer, check),
    }
}

fn targets(raw: &raw::BackendTrafficPolicy, check: &mut Check<'_>) -> Vec<Target> {
    let listed = scalar::items(&raw.target_refs, check);
    let members = [
        ("targetRef", raw.target_ref.span()),
        ("targetRefs", raw.target_refs.span()),
    ];
    scalar::at_most_one(&members, RL002, check);
    let is_set = raw.target_ref.is_set() || !listed.is_empty() || raw.target_selectors.is_set();
    if !is_set && !raw.target_refs.is_invalid() {
        let found = check.error(RL002, check.body(), "the policy has no target");
        found.help(
            "write `targetRefs: [{group: networking.istio.io, kind: VirtualService, name: NAME}]`",
        );
    }
    let only = raw.target_ref.get().map(|only| (&raw.target_ref, only));
    let all = only.into_iter().chain(listed);
    all.filter_map(|(field, raw)| target(raw, field.span(), check))
        .collect()
}

fn target(raw: &raw::TargetReference, span: Span, check: &mut Check<'_>) -> Option<Target> {
    let (Some(kind), Some(name)) = (api::some_text(&raw.kind), api::some_text(&raw.name)) else {
        let found = check.error(RL001, span, "a target needs a kind and a name");
        found.help("write `{group: networking.istio.io, kind: VirtualService, name: NAME}`");
        return None;
    };
    let group = api::text(&raw.group);
    let section = api::some_text(&raw.section_name);
    let kind = match (&*group, &*kind) {
        (ISTIO, "VirtualService") => TargetKind::VirtualService,
        (ISTIO, "Gateway") => TargetKind::Gateway,
        ("" | "core", "Service") => TargetKind::Service,
        (GATEWAY_API, "Gateway" | "GRPCRoute" | "HTTPRoute") => {
            let message = format!("limits do not apply to a {kind} of {group} yet");
            let found = check.warning(RL101, raw.kind.span(), message);
            found.help("name a VirtualService or Gateway of networking.istio.io, or a Service");
            TargetKind::Unread
        }
        _ => {
            let at = raw.kind.span();
            let found = check.error(
                RL001,
                at,
                format!("`{kind}` of `{group}` cannot be a target"),
            );
            found.help("name a VirtualService or Gateway of networking.istio.io, or a Service");
            return None;
        }
    };
    if section.is_some() && matches!(kind, TargetKind::Gateway | TargetKind::Service) {
        let message = "only a VirtualService has sections: its rules";
        let found = check.error(RL001, raw.section_name.span(), message);
        found.help("remove `sectionName`");
        return None;
    }
    Some(Target {
        kind,
        name,
        section,
        line: check.line(span),
    })
}

fn body_max(
    field: &Field<raw::RequestBuffer>,
    check: &mut Check<'_>,
) -> Option<(u64, crate::span::Line)> {
    let limit = &field.get()?.limit;
    let bytes = match limit.get() {
        Some(IntOrString::Int(bytes)) => u64::try_from(*bytes).ok(),
        Some(IntOrString::String(text)) => bytes_of(text),
        None => None,
    };
    let Some(bytes) = bytes.filter(|bytes| *bytes > 0) else {
        let at = if limit.is_set() {
            limit
        } else {
            return missing(field, check);
        };
        let found = check.error(RL009, at.span(), "the limit is not a number of bytes");
        found.help("write a number from 1, or a quantity such as `512Ki` or `1Mi`");
        return None;
    };
    Some((bytes, check.line(limit.span())))
}

fn missing<T>(field: &Field<raw::RequestBuffer>, check: &mut Check<'_>) -> Option<T> {
    let found = check.error(RL009, field.span(), "requestBuffer has no limit");
    found.help("write `limit: 1Mi`");
    None
}

/// Returns the number of bytes of a quantity: digits and a suffix.
fn bytes_of(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let powers = ["k", "M", "G", "T", "P", "E"];
    let suffix = &text[digits.len()..];
    let unit = match suffix.strip_suffix('i') {
        None if suffix.is_empty() => Some(1),
        binary => {
            let base: u64 = if binary.is_some() { 1024 } else { 1000 };
            let name = binary.unwrap_or(suffix);
            let name = if name == "K" && binary.is_some() {
                "k"
            } else {
                name
            };
            let power = powers.iter().position(|known| *known == name)?;
            base.checked_pow(u32::try_from(power).ok()? + 1)
        }
    };
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number
        .then(|| digits.parse::<u64>().ok()?.checked_mul(unit?))
        .flatten()
}
