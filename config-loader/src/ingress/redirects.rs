//! Redirects by annotations of ingress-nginx.

use super::nginx::{Nginx, UrlRedirect, Written, boolean};
use super::outcome::{Verdict, closed, dropped, invalid};
use crate::validate::scalar;

/// Takes the value of an annotation about a redirect; `None` if it has its usual effect.
pub(super) fn redirect(
    nginx: &mut Nginx,
    name: &str,
    value: &str,
    written: &Written<'_>,
) -> Option<Verdict> {
    match name {
        "ssl-redirect" | "force-ssl-redirect" | "from-to-www-redirect" => {
            let Some(is_on) = boolean(value) else {
                return match name {
                    "from-to-www-redirect" => invalid("write `true` or `false`"),
                    _ => closed("neither `true` nor `false`"),
                };
            };
            match name {
                "ssl-redirect" => nginx.redirects_to_https = Some(is_on),
                "force-ssl-redirect" => nginx.forces_https = is_on,
                _ => nginx.redirects_www = is_on,
            }
            None
        }
        "permanent-redirect" if written.get("temporal-redirect").is_some() => {
            dropped("`temporal-redirect` comes before it")
        }
        "permanent-redirect" | "temporal-redirect" => {
            let (code, default) = match name {
                "permanent-redirect" => ("permanent-redirect-code", 301),
                _ => ("temporal-redirect-code", 302),
            };
            let code = written.get(code).map_or(Ok(default), str::parse);
            let status = code
                .ok()
                .filter(|code| [301, 302, 303, 307, 308].contains(code));
            match (value.contains('$'), status, url(value)) {
                (true, ..) => closed("variables of nginx"),
                (_, None, _) => closed("a status other than 301, 302, 303, 307 and 308"),
                (_, _, None) => closed("no URL"),
                (_, Some(status), Some(url)) => {
                    nginx.redirect = Some(UrlRedirect { status, ..url });
                    None
                }
            }
        }
        _ => None,
    }
}

/// Parses a URL, or a path.
pub(super) fn url(text: &str) -> Option<UrlRedirect> {
    let (scheme, rest) = match text.split_once("://") {
        Some(("http", rest)) => (Some("http"), rest),
        Some(("https", rest)) => (Some("https"), rest),
        Some(_) => return None,
        None => (None, text),
    };
    let (authority, path) = match rest.find('/') {
        Some(slash) => rest.split_at(slash),
        None => (rest, "/"),
    };
    if scheme.is_none() {
        let path = path.to_owned();
        let is_path = authority.is_empty();
        return is_path.then_some(UrlRedirect {
            scheme,
            host: None,
            port: None,
            path,
            status: 0,
        });
    }
    let (host, port) = match authority.split_once(':') {
        Some((host, port)) => (host, Some(port.parse().ok()?)),
        None => (authority, None),
    };
    let host = host.to_ascii_lowercase();
    scalar::is_dns_subdomain(&host).then(|| UrlRedirect {
        scheme,
        host: Some(host),
        port,
        path: path.to_owned(),
        status: 0,
    })
}
