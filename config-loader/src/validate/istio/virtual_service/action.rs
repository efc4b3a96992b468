//! Action of an HTTP rule: redirect, direct response, delegate or forward.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};

use super::destination;
use crate::diagnostic::codes::common::{CM019, CM022};
use crate::diagnostic::codes::istio::{
    VS071, VS072, VS073, VS074, VS075, VS077, VS078, VS301, VS305,
};
use crate::raw::{self, Field};
use crate::resource::istio::{
    Delegate, DirectResponse, HttpAction, HttpMatch, Redirect, RedirectPath, RedirectPort, Scheme,
    StringMatch,
};
use crate::validate::istio::shared;
use crate::validate::{Check, scalar};

/// Largest body of a direct response, in bytes.
const BODY_BYTES_MAX: usize = 1 << 20;

/// Size of the body of a direct response from which on there is a warning, in bytes.
const BODY_BYTES_MANY: usize = 100 << 10;

/// Returns the action of a rule. If there are several, which is reported elsewhere, the first in this order is used.
pub(super) fn action(
    raw: &raw::istio::HttpRoute,
    matches: &[HttpMatch],
    check: &mut Check<'_>,
) -> HttpAction {
    let redirect = redirect(&raw.redirect, matches, check);
    let direct = direct_response(&raw.direct_response, check);
    let delegate = delegate(&raw.delegate, check);
    let route = destination::http_destinations(&raw.route, check);
    let action = redirect.map(HttpAction::Redirect);
    let action = action.or(direct.map(HttpAction::DirectResponse));
    let action = action.or(delegate.map(HttpAction::Delegate));
    action.unwrap_or(HttpAction::Route(route))
}

fn delegate(field: &Field<raw::istio::Delegate>, check: &mut Check<'_>) -> Option<Delegate> {
    let raw = field.get()?;
    let name = shared::text(&raw.name);
    if name.is_none() && !raw.name.is_invalid() {
        check
            .warning(
                VS301,
                shared::location(&raw.name, field.span()),
                "delegate without name: the rule takes no request",
            )
            .help("write the name of a VirtualService without hosts");
    }
    let namespace = shared::text(&raw.namespace).unwrap_or(check.namespace());
    Some(Delegate {
        name: shared::name_of(namespace, name.unwrap_or("")),
        line: check.line(shared::location(&raw.name, field.span())),
    })
}

fn redirect(
    field: &Field<raw::istio::HttpRedirect>,
    matches: &[HttpMatch],
    check: &mut Check<'_>,
) -> Option<Redirect> {
    let raw = field.get()?;
    let port_place = shared::block(&raw.port);
    let derive_place = shared::text_span(&raw.derive_port);
    let texts = [&raw.uri, &raw.prefix_rewrite, &raw.authority, &raw.scheme];
    let nothing = texts.iter().all(|text| shared::text_span(text).is_none());
    if nothing && port_place.is_none() && derive_place.is_none() {
        check
            .error(
                VS073,
                field.span(),
                "the redirect changes nothing: clients would come back for ever",
            )
            .help("set `uri`, `prefixRewrite`, `authority`, `scheme`, `port` or `derivePort`");
    }
    scalar::at_most_one(
        &[("port", port_place), ("derivePort", derive_place)],
        CM019,
        check,
    );
    let derived = [
        ("FROM_PROTOCOL_DEFAULT", RedirectPort::Default),
        ("FROM_REQUEST_PORT", RedirectPort::Request),
    ];
    let derived = scalar::enum_of(&raw.derive_port, &derived, check);
    let fixed = scalar::port(&raw.port, check).map(RedirectPort::Fixed);
    Some(Redirect {
        path: redirect_path(raw, matches, check),
        authority: shared::text_arc(&raw.authority),
        scheme: scheme(&raw.scheme, check),
        port: fixed.or(derived).unwrap_or_default(),
        status: redirect_code(&raw.redirect_code, check),
        line: check.line(field.span()),
    })
}

fn redirect_path(
    raw: &raw::istio::HttpRedirect,
    matches: &[HttpMatch],
    check: &mut Check<'_>,
) -> RedirectPath {
    shared::exclude(
        [
            ("uri", shared::text_span(&raw.uri)),
            ("prefixRewrite", shared::text_span(&raw.prefix_rewrite)),
        ],
        VS071,
        "`uri` replaces the whole path, `prefixRewrite` the prefix that was matched: keep one",
        check,
    );
    if let Some(path) = shared::text_arc(&raw.uri) {
        return RedirectPath::Replace(path);
    }
    let Some(path) = shared::text_arc(&raw.prefix_rewrite) else {
        return RedirectPath::Keep;
    };
    let is_prefix = |block: &HttpMatch| matches!(block.uri, None | Some(StringMatch::Prefix(_)));
    if !matches.iter().all(is_prefix) {
        check
            .error(
                VS072,
                raw.prefix_rewrite.span(),
                "prefixRewrite needs prefix matches",
            )
            .help("match `uri.prefix` in every block of the rule, or write `redirect.uri`");
    }
    RedirectPath::Prefix(path)
}

fn scheme(field: &Field<String>, check: &mut Check<'_>) -> Option<Scheme> {
    match shared::text(field)? {
        "http" => Some(Scheme::Http),
        "https" => Some(Scheme::Https),
        other => {
            let lower = other.to_ascii_lowercase();
            let found = check.error(
                VS075,
                field.span(),
                format!("scheme `{other}` is neither http nor https"),
            );
            if lower == "http" || lower == "https" {
                found.help(format!("write `{lower}`"));
            } else {
                found.help("write `https`, or leave it out to keep the scheme of the request");
            }
            None
        }
    }
}

fn redirect_code(field: &Field<i64>, check: &mut Check<'_>) -> u16 {
    match field.get() {
        None => 301,
        Some(301) => 301,
        Some(302) => 302,
        Some(303) => 303,
        Some(307) => 307,
        Some(308) => 308,
        Some(other) => {
            check
                .error(
                    VS074,
                    field.span(),
                    format!("redirect code {other} is not supported"),
                )
                .help("write 301, 302, 303, 307 or 308");
            301
        }
    }
}

fn direct_response(
    field: &Field<raw::istio::HttpDirectResponse>,
    check: &mut Check<'_>,
) -> Option<DirectResponse> {
    let raw = field.get()?;
    let status = scalar::in_range(&raw.status, 200..=599, "status", VS077, check);
    if !raw.status.is_set() {
        check
            .error(
                VS077,
                shared::location(&raw.status, field.span()),
                "directResponse without status",
            )
            .help("write `status`, 200 to 599");
    }
    Some(DirectResponse {
        status: status
            .and_then(|status| u16::try_from(status).ok())
            .unwrap_or(200),
        body: body(&raw.body, check),
        line: check.line(field.span()),
    })
}

fn body(field: &Field<raw::istio::HttpBody>, check: &mut Check<'_>) -> Arc<[u8]> {
    let Some(raw) = field.get() else {
        return Arc::from([]);
    };
    let members = [
        ("string", shared::block(&raw.string)),
        ("bytes", shared::block(&raw.bytes)),
    ];
    scalar::at_most_one(&members, CM019, check);
    let (bytes, span) = match (raw.string.get(), raw.bytes.get()) {
        (Some(text), _) => (text.as_bytes().to_vec(), raw.string.span()),
        (None, Some(text)) => (decode(text, &raw.bytes, check), raw.bytes.span()),
        (None, None) => (Vec::new(), field.span()),
    };
    if bytes.len() > BODY_BYTES_MAX {
        check
            .error(
                VS078,
                span,
                format!("the body has {} bytes, more than 1 MiB", bytes.len()),
            )
            .help("serve it from a backend");
    } else if bytes.len() > BODY_BYTES_MANY {
        check
            .warning(
                VS305,
                span,
                format!("the body has {} bytes, more than 100 KiB", bytes.len()),
            )
            .help("it is kept in memory by every proxy; serve it from a backend");
    }
    Arc::from(bytes)
}

fn decode(text: &str, field: &Field<String>, check: &mut Check<'_>) -> Vec<u8> {
    let decoded = STANDARD.decode(text).or_else(|_| URL_SAFE.decode(text));
    decoded.unwrap_or_else(|_| {
        check
            .error(CM022, field.span(), "the bytes are not base64")
            .help("to write text as it is, use `string`");
        Vec::new()
    })
}
