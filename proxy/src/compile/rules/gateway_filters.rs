//! Filters of HTTPRoutes and GRPCRoutes.

use std::sync::Arc;

use config_loader::resource::gateway_api::{
    Cors as Written, CorsOrigin, Filter, HeaderEdits, OriginHost as WrittenHost, PathModifier,
    Redirect as WrittenRedirect,
};
use config_loader::resource::istio::Scheme as WrittenScheme;
use http::{HeaderValue, StatusCode};

use traffic::filter::chain::HeaderScopes;
use traffic::filter::cors::{self, Cors, Listed, OriginHost, OriginMatch, WebOrigin};
use traffic::filter::{
    HeaderScope, MatchedUri, PathChange, PathRewrite, Preflights, Redirect, RedirectPort, Scheme,
};

/// Returns the CORS policy of a filter.
pub(super) fn cors(written: &Written) -> Cors {
    Cors {
        origins: written.allow_origins.iter().map(origin).collect(),
        methods: Listed::new(&written.allow_methods).spaced(),
        headers: Listed::new(&written.allow_headers).spaced(),
        expose: exposed(written).spaced(),
        max_age: Some(cors::seconds(written.max_age)),
        credentials: written.allow_credentials,
        preflights: Preflights::Strict,
    }
}

/// Returns the headers that scripts may read. With credentials, browsers take `*` for the name of a header.
fn exposed(written: &Written) -> Listed {
    let has_star = written.expose_headers.iter().any(|name| &**name == "*");
    match has_star && written.allow_credentials {
        true => Listed::Requested,
        false => Listed::as_written(&written.expose_headers),
    }
}

fn origin(written: &CorsOrigin) -> OriginMatch {
    match written {
        CorsOrigin::Any => OriginMatch::Any,
        CorsOrigin::Of(scheme, host, port) => OriginMatch::Web(WebOrigin {
            scheme: scheme_of(*scheme),
            host: match host {
                WrittenHost::Any => OriginHost::Any,
                WrittenHost::Exact(host) => OriginHost::Exact((**host).into()),
                WrittenHost::Under(domain) => OriginHost::Under(format!(".{domain}").into()),
            },
            port: *port,
        }),
    }
}

fn scheme_of(written: WrittenScheme) -> Scheme {
    match written {
        WrittenScheme::Http => Scheme::Http,
        WrittenScheme::Https => Scheme::Https,
    }
}

/// Returns the new authority of requests; the last filter that sets it counts.
pub(super) fn authority(filters: &[&Filter]) -> Option<HeaderValue> {
    filters.iter().rev().find_map(|filter| match filter {
        Filter::Rewrite(rewrite) => HeaderValue::from_str(rewrite.hostname.as_deref()?).ok(),
        _ => None,
    })
}

/// Returns the path rewrite; the last filter that has one counts.
pub(super) fn path_rewrite(filters: &[&Filter], matched: MatchedUri) -> Option<PathRewrite> {
    filters.iter().rev().find_map(|filter| match filter {
        Filter::Rewrite(rewrite) => match &rewrite.path {
            PathModifier::Keep => None,
            PathModifier::Full(with) => Some(PathRewrite::Whole((**with).into())),
            PathModifier::Segments(with) => Some(PathRewrite::uri(matched, with)),
        },
        _ => None,
    })
}

/// Returns the redirect of a filter, by default to the `own` port of the parent.
pub(super) fn redirect_of(
    written: &WrittenRedirect,
    matched: MatchedUri,
    own: RedirectPort,
) -> Redirect {
    let scheme = written.scheme.map(scheme_of);
    let of_scheme = scheme.map(Scheme::default_port);
    Redirect {
        scheme,
        authority: written.hostname.as_deref().map(Into::into),
        port: written.port.or(of_scheme).map_or(own, RedirectPort::Fixed),
        path: match &written.path {
            PathModifier::Keep => PathChange::Keep,
            PathModifier::Full(with) => PathChange::Whole((**with).into()),
            PathModifier::Segments(with) => Redirect::prefix_rewrite(matched, with),
        },
        code: StatusCode::from_u16(written.status).unwrap_or(StatusCode::FOUND),
    }
}

/// Returns the header edits of filters, of which later ones follow earlier ones.
pub(super) fn scopes<'a>(filters: impl Iterator<Item = &'a Filter>) -> HeaderScopes {
    filters.fold(HeaderScopes::default(), |mut scopes, filter| {
        match filter {
            Filter::RequestHeaders(edits) => {
                scopes.request = followed(&scopes.request, &scope(edits));
            }
            Filter::ResponseHeaders(edits) => {
                scopes.response = followed(&scopes.response, &scope(edits));
            }
            _ => {}
        }
        scopes
    })
}

/// Returns edits with literal values: `%` begins an operator in a template.
fn scope(edits: &HeaderEdits) -> HeaderScope {
    let pair = |(name, value): &(Arc<str>, Arc<str>)| (name.to_string(), value.replace('%', "%%"));
    HeaderScope {
        remove: edits.remove.iter().map(ToString::to_string).collect(),
        set: edits.set.iter().map(pair).collect(),
        add: edits.add.iter().map(pair).collect(),
    }
}

/// Returns edits, followed by others.
fn followed(first: &HeaderScope, then: &HeaderScope) -> HeaderScope {
    let is_kept = |(name, _): &&(String, String)| {
        !then.remove.contains(name) && then.set.iter().all(|(other, _)| other != name)
    };
    let chain = |first: &[(String, String)], then: &[(String, String)]| {
        first.iter().filter(is_kept).chain(then).cloned().collect()
    };
    HeaderScope {
        remove: first.remove.iter().chain(&then.remove).cloned().collect(),
        set: chain(&first.set, &then.set),
        add: chain(&first.add, &then.add),
    }
}
