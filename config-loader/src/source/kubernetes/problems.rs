//! Diagnostics about API servers.

use std::sync::Arc;

use kube::runtime::watcher;

use super::bounded::TooLarge;
use super::settings::ApiServer;
use super::silence::{Late, Silent};
use crate::diagnostic::codes::common::{SRC007, SRC008, SRC009};
use crate::diagnostic::codes::gateway_api::GA034;
use crate::diagnostic::{Diagnostic, Severity};
use crate::kind::Kind;
use crate::source::errors::SourceError;
use crate::source::stream::causes::{certificate_help, plain, with_causes};
use crate::source::stream::stall::{Stalled, is_caused_by};

/// Reason and fix for a server that cannot be reached because credentials are missing.
pub(super) const NO_ACCESS: &str =
    "no kubeconfig can be used, and there is no service account token";
pub(super) const MOUNT_ACCESS: &str = "in a pod, mount the token of its service account (automountServiceAccountToken: true), or mount \
     a kubeconfig and name it by --kubeconfig or KUBECONFIG";

/// Refusal of a request by the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// The list is endless or too long.
    Endless,
    /// The credentials are invalid or expired (401).
    Unauthorized,
    /// The credentials lack permission (403).
    Forbidden,
    /// The server does not serve this resource (404).
    NotServed,
}

/// Returns the refusal that an error means. `None` for all other errors, which are transient.
pub(super) fn refusal(error: &kube::Error) -> Option<Refusal> {
    let kube::Error::Api(status) = error else {
        return None;
    };
    match status.code {
        401 => Some(Refusal::Unauthorized),
        403 => Some(Refusal::Forbidden),
        404 | 405 => Some(Refusal::NotServed),
        _ => None,
    }
}

/// Returns the reason under which an error is counted.
pub(super) fn reason(error: &kube::Error) -> SourceError {
    match error {
        kube::Error::Api(status) => SourceError::of_status(status.code),
        error if is_caused_by::<Stalled>(error) => SourceError::Stalled,
        error if is_caused_by::<TooLarge>(error) => SourceError::TooLarge,
        error if is_caused_by::<Late>(error) || is_caused_by::<Silent>(error) => {
            SourceError::Timeout
        }
        kube::Error::SerdeError(_) => SourceError::Malformed,
        kube::Error::ReadEvents(_) => SourceError::Other,
        _ => SourceError::Unreachable,
    }
}

/// Returns the reason under which an error of a watch is counted.
pub(super) fn watch_reason(error: &watcher::Error) -> SourceError {
    match error {
        watcher::Error::InitialListFailed(error)
        | watcher::Error::WatchStartFailed(error)
        | watcher::Error::WatchFailed(error) => reason(error),
        watcher::Error::WatchError(status) => SourceError::of_status(status.code),
        watcher::Error::NoResourceVersion => SourceError::NotServed,
    }
}

/// Returns the refusal that an error of a watch means.
pub(super) fn watch_refusal(error: &watcher::Error) -> Option<Refusal> {
    match error {
        watcher::Error::InitialListFailed(error)
        | watcher::Error::WatchStartFailed(error)
        | watcher::Error::WatchFailed(error) => refusal(error),
        watcher::Error::WatchError(status) => match status.code {
            401 => Some(Refusal::Unauthorized),
            403 => Some(Refusal::Forbidden),
            _ => None,
        },
        watcher::Error::NoResourceVersion => Some(Refusal::NotServed),
    }
}

/// Returns a diagnostic: the API server cannot be reached.
pub(super) fn unreachable(server: &ApiServer, reason: &str, is_settled: bool) -> Diagnostic {
    let message = format!("the API server cannot be asked: {}", plain(reason));
    let mut found = Diagnostic::about_file(Severity::Error, SRC007, name(server), message);
    let fallback = match is_settled {
        false if reason.starts_with(NO_ACCESS) => MOUNT_ACCESS,
        true => "what it said last stays in effect; it is asked again, at least every 5 s",
        false => {
            "check --kubeconfig, the context and the network; it is asked again, at least every 5 s"
        }
    };
    found.help(certificate_help(reason).unwrap_or(fallback));
    found
}

/// Returns a diagnostic: the server is reachable again, but does not answer these watches.
pub(super) fn silent(server: &ApiServer, watches: &[String]) -> Diagnostic {
    let first = watches.first().map_or("", String::as_str);
    let more = match watches.len() {
        0 | 1 => String::new(),
        count => format!(" and {} more", count - 1),
    };
    let message = format!("the API server answers again, but not the watch of {first}{more}");
    let mut found = Diagnostic::about_file(Severity::Error, SRC007, name(server), message);
    found.help("its last objects stay in effect; it is asked for again, at least every 5 s");
    found
}

/// Returns a diagnostic: a resource cannot be listed or watched after several attempts.
pub(super) fn interrupted(
    server: &ApiServer,
    resource: &str,
    error: &watcher::Error,
) -> Diagnostic {
    let message = format!(
        "{resource} cannot be followed: {}",
        plain(&with_causes(error))
    );
    let mut found = Diagnostic::about_file(Severity::Error, SRC007, name(server), message);
    found.help("its last objects stay in effect; it is asked for again, at least every 5 s");
    found
}

/// Returns a diagnostic: the server does not accept the credentials.
pub(super) fn unauthorized(server: &ApiServer) -> Diagnostic {
    let message = "the API server does not accept the credentials (401)".to_owned();
    let mut found = Diagnostic::about_file(Severity::Error, SRC008, name(server), message);
    found.help(
        "renew the token or the client certificate in the kubeconfig, which is read again at each attempt; what the server \
         said last stays in effect",
    );
    found
}

/// Returns a diagnostic: the credentials do not allow reading Secrets. A proxy reads only those of its own namespace.
pub(super) fn refused_secrets(
    server: &ApiServer,
    namespace: &str,
    is_config_server: bool,
) -> Diagnostic {
    let message = format!(
        "Secrets in {namespace} cannot be read: the credentials do not allow it (403), and TLS servers whose certificate is \
         in a Secret cannot work"
    );
    let mut found = Diagnostic::about_file(Severity::Warning, SRC008, name(server), message);
    found.help(match is_config_server {
        true => format!(
            "use a token with the role proxy:{namespace}: `strait control token create NAME --role proxy:{namespace}` at the \
             config server makes one; or change --namespace, in which Secrets are read"
        ),
        false => "grant `get`, `list` and `watch` on secrets in this namespace, as deploy/ does; or change --namespace, in \
                  which Secrets are read"
            .to_owned(),
    });
    found
}

/// Returns a diagnostic: the credentials do not allow reading Secrets or ConfigMaps that objects of the Gateway API refer to.
pub(super) fn refused_referred(server: &ApiServer, resource: &str) -> Diagnostic {
    let message = format!(
        "{resource} cannot be read: the credentials do not allow it (403), so that references of Gateways, ListenerSets and \
         BackendTLSPolicies to them do not hold"
    );
    let mut found = Diagnostic::about_file(Severity::Warning, GA034, name(server), message);
    found.help("grant `get`, `list` and `watch` on them in this namespace");
    found
}

/// Returns a diagnostic: the credentials do not allow reading a resource that the proxy runs without, with this effect.
pub(super) fn refused_optional(server: &ApiServer, resource: &str, effect: &str) -> Diagnostic {
    let message =
        format!("{resource} cannot be read: the credentials do not allow it (403): {effect}");
    let mut found = Diagnostic::about_file(Severity::Warning, SRC008, name(server), message);
    found.help("grant `get`, `list` and `watch` on it, as deploy/ does");
    found
}

/// Returns a diagnostic: the credentials do not allow reading a resource without which no proxy starts, for this reason.
pub(super) fn refused_needed(server: &ApiServer, resource: &str, effect: &str) -> Diagnostic {
    let mut found = refused(server, resource, Refusal::Forbidden);
    found.message = format!("{}: {effect}", found.message);
    found
}

/// Returns a diagnostic: the credentials do not allow reading the cluster state. Requests are routed without it.
pub(super) fn refused_state(server: &ApiServer, resource: &str, kind: Kind) -> Diagnostic {
    let effect = match kind {
        Kind::Pod => {
            "subsets by labels of pods select nothing, automatic mutual TLS does not start, and workloadSelector of a \
             ServiceEntry finds no pod"
        }
        Kind::Node => {
            "endpoints have no region and sub-zone, so that locality failover sees their zones only"
        }
        _ => "the networks of namespaces are not known",
    };
    let message =
        format!("{resource} cannot be read: the credentials do not allow it (403): {effect}");
    let mut found = Diagnostic::about_file(Severity::Warning, SRC008, name(server), message);
    found.help(
        "grant `get`, `list` and `watch` on pods, nodes and namespaces, as deploy/ does; or do without by \
         --control-workloads off",
    );
    found
}

/// Returns a diagnostic: the server refuses to let a resource be read.
pub(super) fn refused(server: &ApiServer, resource: &str, refusal: Refusal) -> Diagnostic {
    let (code, message, help) = match refusal {
        Refusal::Unauthorized => return unauthorized(server),
        Refusal::Endless => (
            SRC007,
            format!("{resource} cannot be listed: the list has no end, or too many objects"),
            "its last objects stay in effect; limit --control-namespace or --control-selector: docs/limits.md has the limits",
        ),
        Refusal::Forbidden => (
            SRC008,
            format!("{resource} cannot be read: the credentials do not allow it (403)"),
            "grant `get`, `list` and `watch` on it, as deploy/ does, or name its kind in --control-optional; a proxy that starts is \
             not ready before",
        ),
        Refusal::NotServed => (
            SRC009,
            format!("{resource} is not served any more (404)"),
            "its last objects stay in effect; install its CustomResourceDefinition again, or restart the proxy to let them go",
        ),
    };
    let mut found = Diagnostic::about_file(Severity::Error, code, name(server), message);
    found.help(help);
    found
}

/// Returns a diagnostic: no served version of an API group is read. `versions` has the served and the supported
/// versions.
pub(super) fn unread(server: &ApiServer, group: &str, versions: [&[String]; 2]) -> Diagnostic {
    let [served, read] = versions.map(|versions| versions.join(", "));
    let message = format!(
        "{group} is served at {served} only, and {read} is read: its resources are missing"
    );
    let mut found = Diagnostic::about_file(Severity::Error, SRC009, name(server), message);
    found.help("upgrade the cluster, or its CustomResourceDefinitions, so that this version is served; the server is asked every 30 s");
    found
}

/// Returns a diagnostic: the endpoint TTL of an unreachable remote cluster has expired.
pub(super) fn expired(server: &ApiServer, count: usize) -> Diagnostic {
    let message = format!(
        "the API server cannot be reached for longer than --endpoint-ttl: its {count} EndpointSlices are not used"
    );
    let mut found = Diagnostic::about_file(Severity::Error, SRC007, name(server), message);
    found.help("they are used again as soon as it answers");
    found
}

fn name(server: &ApiServer) -> Arc<str> {
    server.name().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_credentials_say_what_to_mount() {
        let server: ApiServer = "kubernetes://".parse().unwrap();
        let help = |reason: &str| {
            let found = unreachable(&server, reason, false);
            found.help.unwrap().to_string()
        };
        let said = help(&format!("{NO_ACCESS}: no such file"));
        assert!(
            said.contains("automountServiceAccountToken: true"),
            "{said}"
        );
        assert!(help("connection refused").contains("the network"));
    }

    #[test]
    fn refused_secrets_are_a_warning_that_names_the_role() {
        let server: ApiServer = "kubernetes://".parse().unwrap();
        let of = |is_config_server| {
            let found = refused_secrets(&server, "edge", is_config_server);
            assert_eq!((found.severity, found.code), (Severity::Warning, SRC008));
            assert!(
                found.message.contains("Secrets in edge"),
                "{}",
                found.message
            );
            found.help.unwrap().to_string()
        };
        let help = of(true);
        assert!(
            help.contains("strait control token create NAME --role proxy:edge"),
            "{help}"
        );
        assert!(of(false).contains("grant `get`, `list` and `watch` on secrets"));
    }
}
