//! Proxy configuration kinds of other projects that are not supported, with the replacement to use. Data only.

use super::{group, groups, is_near};
use crate::diagnostic::Code;
use crate::diagnostic::codes::common::{CM036, CM037};
use crate::diagnostic::codes::gateway_api::{GA008, GA009};
use crate::kind::Kind;

/// Known kind that is not supported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unsupported {
    /// API group of the kind.
    pub group: &'static str,
    /// Kind; empty for every other kind of the group.
    pub kind: &'static str,
    /// Effect of not enforcing a security policy; `None` for other kinds.
    pub unenforced: Option<&'static str>,
    /// Replacement to use.
    pub instead: &'static str,
    /// Code of the warning about an object.
    pub code: Code,
}

const fn policy(
    group: &'static str,
    kind: &'static str,
    unenforced: &'static str,
    instead: &'static str,
) -> Unsupported {
    Unsupported {
        group,
        kind,
        unenforced: Some(unenforced),
        instead,
        code: CM036,
    }
}

const fn other(group: &'static str, kind: &'static str, instead: &'static str) -> Unsupported {
    Unsupported {
        group,
        kind,
        unenforced: None,
        instead,
        code: CM037,
    }
}

const fn unread(group: &'static str, instead: &'static str) -> Unsupported {
    Unsupported {
        code: GA009,
        ..other(group, "", instead)
    }
}

const GATEWAY_API: &str = "gateway.networking.k8s.io";
const FORWARDED: &str = "requests that it denies are forwarded";
const DENY_ELSEWHERE: &str =
    "deny these requests in the service, or in a proxy in front of this one";
const KINDS_THAT_ARE_READ: &str = "the kinds of gateway.networking.k8s.io that are read";

/// Known but unsupported kinds. Within a group, the row without a kind is the last.
pub const UNSUPPORTED: &[Unsupported] = &[
    policy(
        "networking.mesh.gloo.solo.io",
        "AccessPolicy",
        FORWARDED,
        "`status.appliedAccessPolicies` of Destinations, where Gloo says to which of them it applies",
    ),
    policy(
        "policy.flomesh.io",
        "AccessControl",
        FORWARDED,
        DENY_ELSEWHERE,
    ),
    policy(
        "policy.linkerd.io",
        "AuthorizationPolicy",
        FORWARDED,
        "an AuthorizationPolicy of security.istio.io",
    ),
    policy(
        "access.smi-spec.io",
        "TrafficTarget",
        FORWARDED,
        DENY_ELSEWHERE,
    ),
    other(
        "networking.istio.io",
        "EnvoyFilter",
        "fields of a VirtualService, DestinationRule or Gateway; there are no Envoy filters to change",
    ),
    other(
        "extensions.istio.io",
        "WasmPlugin",
        "`headers`, `rewrite`, `fault` and `corsPolicy` of a VirtualService; other code runs in the service",
    ),
    other(
        "extensions",
        "Ingress",
        "`apiVersion: networking.k8s.io/v1`",
    ),
    Unsupported {
        code: GA008,
        ..other(
            GATEWAY_API,
            "UDPRoute",
            "another proxy: UDP is not forwarded",
        )
    },
    unread(GATEWAY_API, KINDS_THAT_ARE_READ),
    unread("gateway.networking.x-k8s.io", KINDS_THAT_ARE_READ),
    unread("inference.networking.k8s.io", "a Service"),
];

/// Returns the row of a kind at an apiVersion, if it is known and unsupported. For security policies, a misspelled
/// group also matches, so that the policy is not ignored as an unknown kind.
pub(crate) fn find(kind: &str, api_version: &str) -> Option<&'static Unsupported> {
    let written = group(api_version);
    UNSUPPORTED.iter().find(|row| {
        let is_group = match row.unenforced {
            Some(_) => is_near(row.group, written),
            None => row.group == written,
        };
        is_group && (row.kind.is_empty() || row.kind == kind)
    })
}

/// Returns the row of a kind that is read but has no effect.
pub fn of_read(kind: Kind) -> Option<&'static Unsupported> {
    let groups = groups(kind);
    let named = |row: &&Unsupported| row.kind == kind.as_str() && groups.contains(&row.group);
    UNSUPPORTED.iter().find(named)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_that_are_read_and_not_supported_are_known() {
        assert_eq!(of_read(Kind::AuthorizationPolicy), None);
        assert_eq!(of_read(Kind::RequestAuthentication), None);
        assert_eq!(of_read(Kind::PeerAuthentication), None);
        assert_eq!(of_read(Kind::Telemetry), None);
        assert_eq!(
            of_read(Kind::Gateway),
            None,
            "that of another group is not read"
        );
    }

    #[test]
    fn kinds_are_found_by_group_and_name() {
        let enforced =
            |kind, api_version| find(kind, api_version).map(|row| row.unenforced.is_none());
        for (kind, api_version) in [
            ("AuthorizationPolicy", "policy.linkerd.io/v1alpha1"),
            ("AccessPolicy", "networking.mesh.gloo.solo.io/v1"),
            ("AccessControl", "policy.flomesh.io/v1alpha1"),
            ("TrafficTarget", "access.smi-spec.io/v1alpha3"),
        ] {
            assert_eq!(
                enforced(kind, api_version),
                Some(false),
                "{kind} {api_version}"
            );
        }
        for (kind, api_version) in [
            ("EnvoyFilter", "networking.istio.io/v1alpha3"),
            ("WasmPlugin", "extensions.istio.io/v1alpha1"),
            ("Ingress", "extensions/v1beta1"),
            ("Gateway", "gateway.networking.k8s.io/v1"),
            ("HTTPRoute", "gateway.networking.k8s.io/v1"),
            ("GRPCRoute", "gateway.networking.k8s.io/v1"),
            ("UDPRoute", "gateway.networking.k8s.io/v1"),
            ("XListenerSet", "gateway.networking.x-k8s.io/v1alpha1"),
            ("InferencePool", "inference.networking.k8s.io/v1"),
        ] {
            assert_eq!(
                enforced(kind, api_version),
                Some(true),
                "{kind} {api_version}"
            );
        }
        for (kind, api_version) in [
            ("AuthorizationPolicy", "example.com/v1"),
            ("Deployment", "apps/v1"),
            ("Ingress", "example.com/v1"),
            ("NetworkPolicy", "networking.k8s.io/v1"),
            ("Gateway", "networking.istio.io/v1"),
            ("ConfigMap", "v1"),
        ] {
            assert_eq!(enforced(kind, api_version), None, "{kind} {api_version}");
        }
    }
}
