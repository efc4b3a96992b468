//! Meaning of the annotations of ingress-nginx of one Ingress.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::outcome::{Outcome, Verdict};
use crate::resource::ResourceSet;
use crate::resource::networking::{Ingress, IngressAnnotation};

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
    pub(super) filters: Filters,
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

/// Filters of all rules of an Ingress.
#[derive(Debug, Default)]
pub(super) struct Filters {
    /// Header of requests.
    pub(super) forwarded_prefix: Option<String>,
    /// Host of requests to backends.
    pub(super) host: Option<String>,
    /// CORS policy.
    pub(super) cors: Option<Value>,
    /// Headers of responses.
    pub(super) response_headers: Vec<(Arc<str>, Arc<str>)>,
    /// Backend of copies: name and port of a Service.
    pub(super) mirror: Option<(String, u16)>,
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
    /// TLS to the backend, which is not verified without a credential that does.
    pub(super) has_tls: bool,
    /// Certificates of TLS to the backend.
    pub(super) credential: Option<Credential>,
    /// Server name to the backend.
    pub(super) server_name: Option<Arc<str>>,
    /// Seconds of `connectTimeout`.
    pub(super) connect_seconds: Option<u32>,
    /// Load balancer of a DestinationRule.
    pub(super) balancer: Option<Value>,
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

/// Certificates of TLS to a backend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Credential {
    /// Secret of the namespace.
    pub(super) name: Arc<str>,
    /// Whether the Secret has a certificate to present.
    pub(super) has_certificate: bool,
    /// Whether the CA certificates of the Secret verify the backend.
    pub(super) verifies: bool,
}

/// Client certificates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Clients {
    /// Secret with the CA certificates.
    pub(super) secret: Arc<str>,
    /// Whether a client without a certificate is served.
    pub(super) is_optional: bool,
}

/// Annotations of one Ingress, by their names without the prefix, and the set with the objects that they name.
pub(super) struct Written<'a>(
    pub(super) BTreeMap<&'a str, &'a IngressAnnotation>,
    pub(super) &'a ResourceSet,
);

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
    /// Closes the Ingress because of an annotation.
    pub(super) fn close(&mut self, name: &str, why: &str) {
        self.is_closed = true;
        let is_meant = |one: &&mut Outcome| one.field.strip_prefix(Ingress::NGINX) == Some(name);
        if let Some(outcome) = self.outcomes.iter_mut().find(is_meant) {
            outcome.verdict = Verdict::Closed(why.to_owned());
        }
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
