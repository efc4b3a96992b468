//! Annotations of ingress-nginx that are followed, one by one.

use std::sync::Arc;

use serde_json::json;

use super::nginx::{Canary, Clients, Nginx, Retry, Written, boolean};
use super::outcome::{Verdict, closed, dropped, invalid, nothing};
use super::redirects::{redirect, url};
use super::services::{auth, backend_tls, custom_headers, own_name};
use crate::diagnostic::codes::ingress::{IG030, IG031, IG032};
use crate::resource::gateway_api::RouteExtensions;
use crate::validate::scalar;

/// Default of `cors-allow-headers`.
const CORS_HEADERS: &str = "DNT,Keep-Alive,User-Agent,X-Requested-With,If-Modified-Since,Cache-Control,Content-Type,Range,Authorization";
const CORS_METHODS: &str = "GET, PUT, POST, DELETE, PATCH, OPTIONS";
const CORS_MAX_AGE: u32 = 1_728_000;
const BURST_DEFAULT: u32 = 5;
const ATTEMPTS_DEFAULT: u32 = 3;
/// Attempts in place of `0`, which ingress-nginx takes for no limit.
const ATTEMPTS_MAX: u32 = 10;

/// Takes the value of an annotation; `None` if it has its usual effect.
pub(super) fn take(
    nginx: &mut Nginx,
    name: &str,
    value: &str,
    written: &Written<'_>,
) -> Option<Verdict> {
    match name {
        _ if value.is_empty() => nothing(),
        _ if name.starts_with("canary") => canary(nginx, name, value),
        "enable-cors" if boolean(value) == Some(false) => nothing(),
        _ if name.contains("cors") => cors(nginx, written),
        _ if name.starts_with("session-cookie") || name.starts_with("affinity") => {
            affinity(nginx, written)
        }
        _ if name.contains("redirect") => redirect(nginx, name, value, written),
        "use-regex" | "ssl-passthrough" => {
            let Some(is_on) = boolean(value) else {
                return closed("neither `true` nor `false`");
            };
            match name {
                "use-regex" => nginx.has_expressions |= is_on,
                _ => nginx.passes_tls = is_on,
            }
            None
        }
        "rewrite-target" | "app-root" | "upstream-vhost" | "x-forwarded-prefix"
        | "server-alias" => texts(nginx, name, value),
        "proxy-body-size"
        | "whitelist-source-range"
        | "allowlist-source-range"
        | "denylist-source-range"
        | "limit-rps"
        | "limit-rpm" => limits(nginx, name, value, written),
        "auth-tls-verify-client" => None,
        "auth-tls-secret" => client_certificates(nginx, value, written),
        _ if name.starts_with("auth-") => auth(nginx, name, value, written),
        "proxy-next-upstream" | "proxy-next-upstream-tries" => retries(nginx, written),
        "mirror-target" => mirror(nginx, value),
        "backend-protocol" => protocol(nginx, value, written),
        _ if name.starts_with("proxy-ssl-") => backend_tls(nginx, name, value, written),
        "custom-headers" => custom_headers(nginx, value, written),
        "proxy-read-timeout" => match value.trim_end_matches('s').parse::<u32>() {
            Ok(seconds) if seconds > 0 => {
                let key = RouteExtensions::IDLE_TIMEOUT;
                nginx.annotations.insert(key, format!("{seconds}s"));
                None
            }
            _ => invalid("write a number of seconds"),
        },
        "proxy-connect-timeout" => match value.trim_end_matches('s').parse() {
            Ok(seconds) if seconds > 0 => {
                nginx.service.connect_seconds = Some(seconds);
                None
            }
            _ => invalid("write a number of seconds"),
        },
        "load-balance" => balance(nginx, value),
        "upstream-hash-by" => hash(nginx, value),
        // details of an annotation above
        _ => None,
    }
}

fn texts(nginx: &mut Nginx, name: &str, value: &str) -> Option<Verdict> {
    match name {
        "rewrite-target" if !value.starts_with('/') && !value.starts_with('$') => {
            return closed("a new path that does not begin with `/`");
        }
        "rewrite-target" if has_variables(value) => return closed("variables of nginx"),
        "rewrite-target" => nginx.rewrite = Some(Arc::from(value)),
        "app-root" if !value.starts_with('/') => return invalid("begin the path with `/`"),
        "app-root" => nginx.app_root = Some(Arc::from(value)),
        "upstream-vhost" if !scalar::is_dns_subdomain(value) => {
            return invalid("write a DNS name; there are no variables of nginx");
        }
        "upstream-vhost" => nginx.filters.host = Some(value.to_owned()),
        "x-forwarded-prefix" if value.contains('$') => {
            return invalid("there are no variables of nginx");
        }
        "x-forwarded-prefix" => nginx.filters.forwarded_prefix = Some(value.to_owned()),
        _ => {
            for alias in value
                .split(',')
                .map(str::trim)
                .filter(|alias| !alias.is_empty())
            {
                let name = alias.strip_prefix("*.").unwrap_or(alias);
                if !scalar::is_dns_subdomain(name) {
                    return closed("a host that is an expression");
                }
                nginx.aliases.push(Arc::from(alias));
            }
        }
    }
    None
}

/// Whether a text has other variables than groups of an expression.
fn has_variables(text: &str) -> bool {
    let mut parts = text.split('$').skip(1);
    parts.any(|part| !part.starts_with(|c: char| c.is_ascii_digit()))
}

fn canary(nginx: &mut Nginx, name: &str, value: &str) -> Option<Verdict> {
    let Some(canary) = nginx.canary.as_mut() else {
        return match name {
            "canary" if boolean(value).is_some() => nothing(),
            "canary" => invalid("write `true` or `false`"),
            _ => dropped("the Ingress has no `canary: \"true\"`"),
        };
    };
    let number = value.parse().ok();
    match name {
        "canary-weight" | "canary-weight-total" if number.is_none() => {
            return invalid("write a number");
        }
        "canary-weight" => canary.weight = number.unwrap_or(0),
        "canary-weight-total" => canary.total = number.filter(|total| *total > 0).unwrap_or(100),
        "canary-by-cookie" | "canary-by-header" if !scalar::is_header_name(value) => {
            return invalid("write a name");
        }
        "canary-by-cookie" => canary.cookie = Some(Arc::from(value)),
        "canary-by-header" => canary.header = Some(Arc::from(value)),
        "canary-by-header-value" => canary.header_value = Some(Arc::from(value)),
        "canary-by-header-pattern" => {
            if crate::re2::compile(value, crate::re2::Extent::Part).is_err() {
                return invalid("write an expression of RE2");
            }
            canary.header_pattern = Some(Arc::from(value));
        }
        _ => {}
    }
    None
}

impl Canary {
    /// Returns the part of the requests that no header or cookie decides.
    pub(super) fn share(&self) -> (u32, u32) {
        (self.weight.min(self.total), self.total)
    }
}

fn limits(nginx: &mut Nginx, name: &str, value: &str, written: &Written<'_>) -> Option<Verdict> {
    match name {
        "proxy-body-size" => match bytes(value) {
            Some(0) => _ = nginx.annotations.remove("strait.io/max-request-bytes"),
            Some(bytes) => {
                nginx
                    .annotations
                    .insert("strait.io/max-request-bytes", bytes.to_string());
            }
            None => return closed("no size such as `8m`"),
        },
        "limit-rps" | "limit-rpm" => {
            let multiplier = written
                .get("limit-burst-multiplier")
                .map_or(Ok(BURST_DEFAULT), str::parse);
            let rate = value.parse::<u32>().ok().zip(multiplier.ok());
            let Some((rate, multiplier)) = rate.filter(|(_, multiplier)| *multiplier > 0) else {
                return closed("no number");
            };
            if rate == 0 {
                return nothing();
            }
            let seconds = if name == "limit-rps" { 1 } else { 60 };
            let at_once = rate.saturating_mul(multiplier);
            let rate = format!("{at_once}/{}s", seconds * multiplier);
            if nginx.annotations.contains_key("strait.io/client-rate") {
                return closed("`limit-rps` and `limit-rpm` together");
            }
            nginx.annotations.insert("strait.io/client-rate", rate);
            nginx
                .annotations
                .insert("strait.io/client-rate-status", "503".to_owned());
        }
        _ => {
            let sources = value.split(',').map(str::trim);
            let sources: Option<Vec<_>> = sources.map(scalar::subnet).collect();
            let Some(sources) = sources else {
                return closed("no networks");
            };
            let sources: Vec<String> = sources.iter().map(ToString::to_string).collect();
            let key = match name {
                "denylist-source-range" => "strait.io/denied-sources",
                _ => "strait.io/allowed-sources",
            };
            nginx.annotations.insert(key, sources.join(","));
        }
    }
    None
}

/// Parses a size of nginx.
fn bytes(text: &str) -> Option<u64> {
    let text = text.to_ascii_lowercase();
    let (number, unit) = match text.strip_suffix(['k', 'm', 'g']) {
        Some(number) if text.ends_with('k') => (number, 10),
        Some(number) if text.ends_with('m') => (number, 20),
        Some(number) => (number, 30),
        None => (text.as_str(), 0),
    };
    number.parse::<u64>().ok()?.checked_mul(1 << unit)
}

fn client_certificates(nginx: &mut Nginx, value: &str, written: &Written<'_>) -> Option<Verdict> {
    let mode = written.get("auth-tls-verify-client").unwrap_or("on");
    let is_optional = match mode {
        "on" => false,
        "optional" => true,
        "off" => return nothing(),
        _ => return closed("clients with certificates of unknown authorities"),
    };
    let secret = match own_name(nginx, value) {
        Ok(secret) => secret.name,
        Err(why) => return closed(why),
    };
    nginx.clients = Some(Clients {
        secret,
        is_optional,
    });
    None
}

fn retries(nginx: &mut Nginx, written: &Written<'_>) -> Option<Verdict> {
    let attempts = written
        .get("proxy-next-upstream-tries")
        .map_or(Ok(ATTEMPTS_DEFAULT), str::parse);
    let Ok(attempts) = attempts else {
        return invalid("write a number");
    };
    let attempts = if attempts == 0 {
        ATTEMPTS_MAX
    } else {
        attempts
    };
    let mut retry = Retry {
        codes: Vec::new(),
        attempts: attempts - 1,
        all_methods: false,
    };
    let causes = written
        .get("proxy-next-upstream")
        .unwrap_or("error timeout");
    for cause in causes.split_whitespace() {
        match cause {
            "off" => {
                nginx.retry = None;
                return dropped("requests that no endpoint has seen go to another one");
            }
            "non_idempotent" => retry.all_methods = true,
            // a broken connection is always a cause
            "error" | "timeout" | "invalid_header" => {}
            cause => match cause
                .strip_prefix("http_")
                .and_then(|code| code.parse().ok())
            {
                Some(code) if (400..=599).contains(&code) => retry.codes.push(code),
                _ => {
                    return invalid(
                        "write `error`, `timeout`, `http_500` and so on, `non_idempotent` or `off`",
                    );
                }
            },
        }
    }
    nginx.retry = Some(retry);
    None
}

fn cors(nginx: &mut Nginx, written: &Written<'_>) -> Option<Verdict> {
    if !written.is_true("enable-cors") {
        return dropped("`enable-cors` is not true");
    }
    let list = |name: &str, default: &str| -> Vec<String> {
        let text = written.get(name).unwrap_or(default).to_owned();
        let parts = text
            .split(',')
            .map(str::trim)
            .filter(|part| !part.is_empty());
        parts.map(str::to_owned).collect()
    };
    let origins = list("cors-allow-origin", "*");
    let origins = match origins.iter().any(|origin| origin == "*") {
        true => vec!["*".to_owned()],
        false => origins,
    };
    let max_age = written.get("cors-max-age").and_then(|age| age.parse().ok());
    let credentials = written.get("cors-allow-credentials").and_then(boolean);
    let mut cors = json!({
        "allowOrigins": origins,
        "allowMethods": list("cors-allow-methods", CORS_METHODS),
        "allowHeaders": list("cors-allow-headers", CORS_HEADERS),
        "allowCredentials": credentials.unwrap_or(true),
        "maxAge": max_age.unwrap_or(CORS_MAX_AGE),
    });
    let exposed = list("cors-expose-headers", "");
    if !exposed.is_empty() {
        cors["exposeHeaders"] = exposed.into();
    }
    nginx.filters.cors = Some(cors);
    None
}

fn affinity(nginx: &mut Nginx, written: &Written<'_>) -> Option<Verdict> {
    match written.get("affinity") {
        Some("cookie") => {}
        Some(_) => return invalid("write `cookie`"),
        None => return dropped("`affinity` is not `cookie`"),
    }
    let lifetime = written
        .get("session-cookie-max-age")
        .or(written.get("session-cookie-expires"));
    let seconds = lifetime
        .and_then(|text| text.parse::<u32>().ok())
        .unwrap_or(0);
    nginx.service.balancer = Some(json!({"consistentHash": {"httpCookie": {
        "name": written.get("session-cookie-name").unwrap_or("INGRESSCOOKIE"),
        "path": written.get("session-cookie-path").unwrap_or("/"),
        "ttl": format!("{seconds}s"),
    }}}));
    match written.get("affinity-mode") {
        None | Some("balanced") => Some(Verdict::Remark(
            IG031,
            "a session stays with its endpoint, also when endpoints are added".to_owned(),
        )),
        Some(_) => None,
    }
}

fn balance(nginx: &mut Nginx, value: &str) -> Option<Verdict> {
    let (simple, verdict) = match value {
        "round_robin" => ("ROUND_ROBIN", None),
        "ewma" => {
            let text = "latency is not measured: the endpoint with fewer requests is chosen";
            (
                "LEAST_REQUEST",
                Some(Verdict::Remark(IG032, text.to_owned())),
            )
        }
        _ => return invalid("write `round_robin` or `ewma`"),
    };
    if nginx.service.balancer.is_none() {
        nginx.service.balancer = Some(json!({"simple": simple}));
    }
    verdict
}

fn hash(nginx: &mut Nginx, value: &str) -> Option<Verdict> {
    let of = |prefix: &str| {
        value
            .strip_prefix(prefix)
            .filter(|name| !name.contains('$'))
    };
    let key = if value == "$remote_addr" || value == "$binary_remote_addr" {
        json!({"useSourceIp": true})
    } else if let Some(name) = of("$http_") {
        json!({"httpHeaderName": name.replace('_', "-")})
    } else if let Some(name) = of("$arg_") {
        json!({"httpQueryParameterName": name})
    } else if let Some(name) = of("$cookie_") {
        json!({"httpCookie": {"name": name}})
    } else {
        return dropped(
            "of the variables of nginx, `$remote_addr`, `$http_`, `$arg_` and `$cookie_` are read",
        );
    };
    nginx.service.balancer = Some(json!({"consistentHash": key}));
    None
}

fn protocol(nginx: &mut Nginx, value: &str, written: &Written<'_>) -> Option<Verdict> {
    let value = value.to_ascii_uppercase();
    let (has_tls, is_http2) = match &*value {
        "HTTP" => (false, false),
        "AUTO_HTTP" => return closed("the protocol of the request"),
        "HTTPS" => (true, false),
        "GRPC" => (false, true),
        "GRPCS" => (true, true),
        "FCGI" => return closed("FastCGI"),
        _ => return closed("no protocol of ingress-nginx"),
    };
    if is_http2 {
        nginx
            .annotations
            .insert("strait.io/backend-protocol", "http2".to_owned());
    }
    nginx.service.has_tls = has_tls;
    let is_verified = written.get("proxy-ssl-verify") == Some("on");
    (has_tls && !is_verified).then(|| {
        let text = "the certificate of the backend is not verified, as in ingress-nginx";
        Verdict::Remark(IG030, text.to_owned())
    })
}

fn mirror(nginx: &mut Nginx, value: &str) -> Option<Verdict> {
    let value = value.strip_suffix("$request_uri").unwrap_or(value);
    let found = url(value.trim_end_matches('/')).filter(|url| url.scheme == Some("http"));
    let (host, port) = found.map_or((None, None), |url| (url.host, url.port));
    let mut labels = host.iter().flat_map(|host| host.split('.'));
    match (labels.next(), labels.next(), labels.next()) {
        (Some(_), Some(namespace), Some("svc")) if *namespace != *nginx.namespace => {
            dropped("copies go to a Service of the namespace")
        }
        (Some(name), Some(_), Some("svc")) => {
            nginx.filters.mirror = Some((name.to_owned(), port.unwrap_or(80)));
            None
        }
        _ => dropped(
            "copies go to a Service of the cluster, `http://NAME.NAMESPACE.svc.cluster.local$request_uri`",
        ),
    }
}
