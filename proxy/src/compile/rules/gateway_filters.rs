//! CORS policies of HTTPRoutes.

use config_loader::resource::gateway_api::{Cors as Written, CorsOrigin, OriginHost};
use config_loader::resource::istio::Scheme;

use traffic::filter::Preflights;
use traffic::filter::cors::{self, Cors, Listed, OriginMatch};

/// Returns the CORS policy of a filter.
pub(super) fn cors(written: &Written) -> Cors {
    Cors {
        origins: written.allow_origins.iter().map(origin).collect(),
        methods: Listed::new(&written.allow_methods),
        headers: Listed::new(&written.allow_headers),
        expose: cors::joined(&written.expose_headers),
        max_age: Some(cors::seconds(written.max_age)),
        credentials: written.allow_credentials,
        preflights: Preflights::Strict,
    }
}

fn origin(written: &CorsOrigin) -> OriginMatch {
    let (scheme, host, port) = match written {
        CorsOrigin::Any => return OriginMatch::Any,
        CorsOrigin::Of(scheme, host, port) => (scheme, host, *port),
    };
    let (scheme, default) = match scheme {
        Scheme::Http => ("http", 80),
        Scheme::Https => ("https", 443),
    };
    // a browser leaves out the port of the scheme
    let port = match port == default {
        true => String::new(),
        false => format!(":{port}"),
    };
    match host {
        OriginHost::Any => OriginMatch::Prefix(format!("{scheme}://").into()),
        OriginHost::Exact(host) => OriginMatch::Exact(format!("{scheme}://{host}{port}").into()),
        OriginHost::Under(domain) => {
            let suffix = format!(".{domain}{port}");
            OriginMatch::Under(format!("{scheme}://").into(), suffix.into())
        }
    }
}
