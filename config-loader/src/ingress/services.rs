//! Annotations about a service that is asked about requests, and about TLS to backends and headers of responses.

use std::sync::Arc;

use http::Method;
use traffic::authz::UrlTemplate;

use super::nginx::{Credential, Nginx, Written, boolean};
use super::outcome::{Verdict, closed, dropped, invalid, nothing};
use crate::kind::Name;
use crate::resource::core::Secret;
use crate::resource::gateway_api::RouteExtensions;
use crate::validate::gateway_api::{check_host_with_tls, is_check_url};
use crate::validate::scalar;

/// Query parameter of `auth-signin` with the URL that a client wanted.
const RETURN: &str = "rd";
/// Maximum number of headers that a filter of an HTTPRoute sets.
const HEADERS_MAX: usize = 16;

/// Takes the value of an annotation about external authorization; `None` if it has its usual effect.
pub(super) fn auth(
    nginx: &mut Nginx,
    name: &str,
    value: &str,
    written: &Written<'_>,
) -> Option<Verdict> {
    if written.get("auth-url").is_none() {
        return dropped("there is no `auth-url`");
    }
    let (key, value) = match name {
        "auth-url" if !is_check_url(value) => {
            return closed(
                "the URL is not that of a Service, such as `http://auth.login.svc.cluster.local/check`",
            );
        }
        "auth-url" if check_host_with_tls(value).is_some_and(|host| !has_tls(&host, written)) => {
            return closed("no DestinationRule with `tls` has the host of the URL");
        }
        "auth-url" => (RouteExtensions::EXT_AUTHZ, value.to_owned()),
        "auth-method" if Method::from_bytes(value.as_bytes()).is_err() => {
            return closed("no method");
        }
        "auth-method" => (RouteExtensions::EXT_AUTHZ_METHOD, value.to_owned()),
        "auth-response-headers" => {
            let names = value.split(',').map(str::trim);
            let names: Vec<&str> = names.filter(|name| !name.is_empty()).collect();
            if names.is_empty() || !names.iter().all(|name| scalar::is_header_name(name)) {
                return closed("no names of headers");
            }
            (RouteExtensions::EXT_AUTHZ_HEADERS, names.join(","))
        }
        "auth-signin" => {
            let parameter = written.get("auth-signin-redirect-param");
            let url = with_return(value, parameter.unwrap_or(RETURN));
            if UrlTemplate::parse(&url).is_none() {
                return closed("variables of nginx");
            }
            (RouteExtensions::EXT_AUTHZ_SIGN_IN, url)
        }
        "auth-always-set-cookie" => match boolean(value) {
            Some(true) => (RouteExtensions::EXT_AUTHZ_COOKIES, "always".to_owned()),
            Some(false) => return nothing(),
            None => return invalid("write `true` or `false`"),
        },
        // a detail of `auth-signin`
        _ => return None,
    };
    nginx.annotations.insert(key, value);
    None
}

/// Whether a DestinationRule has TLS settings for a host, or for the Service that the host begins with.
fn has_tls(host: &str, written: &Written<'_>) -> bool {
    let mut rules = written.1.destination_rules.values();
    rules.any(|rule| {
        let rest = host.strip_prefix(&*rule.spec.host);
        let policy = &rule.spec.traffic_policy;
        let is_set = policy.tls.is_some() || policy.ports.iter().any(|port| port.tls.is_some());
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.')) && is_set
    })
}

/// Returns the URL with a parameter that has the URL of the request, unless it has the parameter.
fn with_return(url: &str, parameter: &str) -> String {
    let query = url.split_once('?').map(|(_, query)| query);
    let mut pairs = query.into_iter().flat_map(|query| query.split('&'));
    let has_it = pairs.any(|pair| pair.split('=').next() == Some(parameter));
    let target = "$scheme://$http_host$escaped_request_uri";
    match (query, has_it) {
        (_, true) => url.to_owned(),
        (None, false) => format!("{url}?{parameter}={target}"),
        (Some(_), false) => format!("{url}&{parameter}={target}"),
    }
}

/// Takes the value of an annotation about TLS to backends; `None` if it has its usual effect.
pub(super) fn backend_tls(
    nginx: &mut Nginx,
    name: &str,
    value: &str,
    written: &Written<'_>,
) -> Option<Verdict> {
    if !nginx.service.has_tls {
        return dropped("`backend-protocol` is neither `HTTPS` nor `GRPCS`");
    }
    match name {
        "proxy-ssl-name" => nginx.service.server_name = Some(Arc::from(value)),
        "proxy-ssl-secret" => {
            let name = match own_name(nginx, value) {
                Ok(name) => name,
                Err(why) => return closed(why),
            };
            let secret = written.1.secrets.get(&name);
            nginx.service.credential = Some(Credential {
                // one that is not there yet may have it
                has_certificate: secret
                    .is_none_or(|secret| secret.spec.get(Secret::TLS_CERTIFICATE).is_some()),
                name: name.name,
                verifies: false,
            });
        }
        "proxy-ssl-verify" => match (value, &mut nginx.service.credential) {
            ("off", _) => return nothing(),
            ("on", Some(credential)) => credential.verifies = true,
            ("on", None) => {
                return closed("there is no `proxy-ssl-secret` with the CA certificates");
            }
            _ => return closed("neither `on` nor `off`"),
        },
        // the server name is always sent
        _ => {}
    }
    None
}

/// Takes the value of `custom-headers`; `None` if it has its usual effect.
pub(super) fn custom_headers(
    nginx: &mut Nginx,
    value: &str,
    written: &Written<'_>,
) -> Option<Verdict> {
    let name = match value.contains('/') {
        true => own_name(nginx, value),
        false => Ok(Name::new(Arc::clone(&nginx.namespace), value)),
    };
    let name = match name {
        Ok(name) => name,
        Err(why) => return invalid(why),
    };
    let Some(found) = written.1.config_maps.get(&name) else {
        return invalid("there is no such ConfigMap");
    };
    if found.spec.headers.len() > HEADERS_MAX {
        return invalid("a ConfigMap with at most 16 headers is followed");
    }
    let headers = found.spec.headers.iter();
    let headers = headers.map(|(name, value)| (Arc::clone(name), Arc::clone(value)));
    nginx.filters.response_headers = headers.collect();
    None
}

/// Returns the name of an object of the namespace of the Ingress, written as `NAMESPACE/NAME`; or else what is wrong.
pub(super) fn own_name(nginx: &Nginx, value: &str) -> Result<Name, &'static str> {
    match value.split_once('/') {
        Some((namespace, name)) if *namespace == *nginx.namespace => {
            Ok(Name::new(Arc::clone(&nginx.namespace), name))
        }
        Some(_) => Err("an object of another namespace"),
        None => Err("no `NAMESPACE/NAME`"),
    }
}

#[cfg(test)]
mod tests {
    use super::with_return;

    #[test]
    fn sign_in_returns_to_the_request() {
        let target = "$scheme://$http_host$escaped_request_uri";
        for (url, parameter, expected) in [
            (
                "https://a.test/start",
                "rd",
                format!("https://a.test/start?rd={target}"),
            ),
            (
                "https://a.test/start?x=y",
                "to",
                format!("https://a.test/start?x=y&to={target}"),
            ),
            (
                "https://a.test/start?rd=$escaped_request_uri",
                "rd",
                "https://a.test/start?rd=$escaped_request_uri".to_owned(),
            ),
        ] {
            assert_eq!(with_return(url, parameter), expected);
        }
    }
}
