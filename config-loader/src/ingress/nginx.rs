//! Meaning of the annotations of ingress-nginx of one Ingress.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::annotations::{KNOWN, Treatment, treatment};
use super::outcome::{Outcome, Verdict};
use super::route_parts;
use crate::diagnostic::suggest;
use crate::resource::Object;
use crate::resource::networking::{Ingress, IngressAnnotation};

/// Largest body of a request in ingress-nginx without `proxy-body-size`.
const BODY_MAX: u64 = 1 << 20;

/// Meaning of the annotations of one Ingress.
#[derive(Debug, Default)]
pub(super) struct Nginx {
    /// Namespace of the Ingress.
    pub(super) namespace: Arc<str>,
    /// Whether paths are expressions.
    pub(super) has_expressions: bool,
    /// New path, in which `$1` to `$9` are groups.
    pub(super) rewrite: Option<Arc<str>>,
    /// Target of the redirect of `/`.
    pub(super) app_root: Option<Arc<str>>,
    /// `ssl-redirect`.
    pub(super) redirects_to_https: Option<bool>,
    /// `force-ssl-redirect`.
    pub(super) forces_https: bool,
    /// Redirect of all paths.
    pub(super) redirect: Option<UrlRedirect>,
    /// Whether the host with or without `www.` is redirected.
    pub(super) redirects_www: bool,
    /// Canary settings; `None` if the Ingress is none.
    pub(super) canary: Option<Canary>,
    /// Edits, rewrite of the host, CORS and mirrors.
    pub(super) filters: route_parts::Filters,
    /// Annotations of its HTTPRoutes.
    pub(super) annotations: BTreeMap<&'static str, String>,
    /// Retries.
    pub(super) retry: Option<Retry>,
    /// Settings of its Services.
    pub(super) service: ServiceSettings,
    /// Whether TLS is passed through.
    pub(super) passes_tls: bool,
    /// Client certificates.
    pub(super) clients: Option<Clients>,
    /// Further hosts.
    pub(super) aliases: Vec<Arc<str>>,
    /// Whether paths answer 500, since an annotation that restricts requests is not followed.
    pub(super) is_closed: bool,
    /// Outcome of each annotation.
    pub(super) outcomes: Vec<Outcome>,
}

/// Redirect to a URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct UrlRedirect {
    pub(super) scheme: Option<&'static str>,
    pub(super) host: Option<String>,
    pub(super) port: Option<u16>,
    pub(super) path: String,
    pub(super) status: u16,
}

/// Settings of a canary Ingress.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Canary {
    pub(super) weight: u32,
    pub(super) total: u32,
    pub(super) header: Option<Arc<str>>,
    pub(super) header_value: Option<Arc<str>>,
    pub(super) header_pattern: Option<Arc<str>>,
    pub(super) cookie: Option<Arc<str>>,
}

/// Retries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Retry {
    pub(super) codes: Vec<u16>,
    pub(super) attempts: u32,
    /// Whether requests of all methods are retried.
    pub(super) all_methods: bool,
}

/// Settings of a Service.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ServiceSettings {
    /// TLS to the backend, which is not verified.
    pub(super) has_tls: bool,
    /// Server name to the backend.
    pub(super) server_name: Option<Arc<str>>,
    /// Seconds of `connectTimeout`.
    pub(super) connect_seconds: Option<u32>,
    /// Load balancer of a DestinationRule.
    pub(super) balancer: Option<serde_json::Value>,
}

impl ServiceSettings {
    pub(super) fn is_empty(&self) -> bool {
        *self
            == Self {
                server_name: self.server_name.clone(),
                ..Self::default()
            }
    }
}

/// Client certificates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Clients {
    /// Secret with the CA certificates.
    pub(super) secret: Arc<str>,
    /// Whether a client without a certificate is served.
    pub(super) is_optional: bool,
}

/// Annotations of one Ingress, by their names without the prefix.
pub(super) struct Written<'a>(BTreeMap<&'a str, &'a IngressAnnotation>);

impl<'a> Written<'a> {
    /// Returns the value of an annotation; `None` for an empty one.
    pub(super) fn get(&self, name: &str) -> Option<&'a str> {
        let value = self.0.get(name)?.value.trim();
        (!value.is_empty()).then_some(value)
    }

    /// Whether an annotation is true.
    pub(super) fn is_true(&self, name: &str) -> bool {
        self.get(name).and_then(boolean).unwrap_or(false)
    }
}

impl Nginx {
    /// Reads the annotations of an Ingress. `has_defaults`: it has the defaults of ingress-nginx.
    pub(super) fn of(object: &Object<Ingress>, has_defaults: bool) -> Self {
        let spec = &object.spec;
        let own = spec.annotations.iter().filter_map(|annotation| {
            let name = annotation.key.strip_prefix(Ingress::NGINX)?;
            Some((name, annotation))
        });
        let written = Written(own.collect());
        let mut nginx = Self {
            namespace: Arc::clone(&object.id.namespace),
            ..Self::default()
        };
        if has_defaults {
            nginx
                .annotations
                .insert("strait.io/max-request-bytes", BODY_MAX.to_string());
        }
        let is_canary = written.is_true("canary");
        if is_canary {
            nginx.canary = Some(Canary {
                total: 100,
                ..Canary::default()
            });
        }
        for (name, annotation) in &written.0 {
            let verdict = match is_canary && !name.starts_with("canary") {
                true => Verdict::Dropped(
                    "a canary has the annotations of the stable Ingress".to_owned(),
                ),
                false => nginx.take(name, annotation.value.trim(), &written),
            };
            nginx.is_closed |= matches!(verdict, Verdict::Closed(_));
            nginx.outcomes.push(Outcome {
                field: annotation.key.to_string(),
                value: Arc::clone(&annotation.value),
                line: annotation.line,
                verdict,
            });
        }
        nginx
    }

    /// Closes the Ingress because of an annotation.
    pub(super) fn close(&mut self, name: &str, why: &str) {
        self.is_closed = true;
        let is_meant = |one: &&mut Outcome| one.field.strip_prefix(Ingress::NGINX) == Some(name);
        if let Some(outcome) = self.outcomes.iter_mut().find(is_meant) {
            outcome.verdict = Verdict::Closed(why.to_owned());
        }
    }

    fn take(&mut self, name: &str, value: &str, written: &Written<'_>) -> Verdict {
        match treatment(name) {
            // an annotation that is switched off
            Some((Treatment::Closes, _)) if is_off(name, value) => {
                Verdict::Becomes("nothing".to_owned())
            }
            Some((Treatment::Closes, why)) => Verdict::Closed(why.to_owned()),
            Some((Treatment::Drops, why)) => Verdict::Dropped(why.to_owned()),
            Some((Treatment::Follows, effect)) => {
                let taken = route_parts::take(self, name, value, written);
                taken.unwrap_or_else(|| Verdict::Becomes(effect.to_owned()))
            }
            None => {
                let known = KNOWN.iter().map(|(known, ..)| *known);
                Verdict::Unknown(suggest::nearest(name, known))
            }
        }
    }
}

/// Whether the value of an annotation that is not followed asks for nothing.
fn is_off(name: &str, value: &str) -> bool {
    let switches = [
        "auth-always-set-cookie",
        "enable-modsecurity",
        "enable-owasp-core-rules",
    ];
    let is_false = || boolean(value) == Some(false);
    match name {
        _ if value.is_empty() => true,
        "proxy-ssl-verify" => value == "off",
        "proxy-redirect-from" | "proxy-redirect-to" => ["off", "default"].contains(&value),
        "proxy-cookie-domain" | "proxy-cookie-path" => value == "off",
        "satisfy" => value == "all",
        "limit-connections" | "global-rate-limit" => value == "0",
        name => switches.contains(&name) && is_false(),
    }
}

/// Parses a boolean as Go does.
pub(super) fn boolean(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "TRUE" | "true" | "True" => Some(true),
        "0" | "f" | "F" | "FALSE" | "false" | "False" => Some(false),
        _ => None,
    }
}
