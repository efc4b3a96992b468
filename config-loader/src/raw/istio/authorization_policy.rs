//! AuthorizationPolicy as written.

use serde::Deserialize;

use super::LabelSelector;
use crate::raw::Field;

/// List of texts.
type Texts = Field<Vec<Field<String>>>;

/// AuthorizationPolicy as written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AuthorizationPolicy {
    /// Workloads in the policy's namespace. Default: the whole namespace, or the mesh in the root namespace.
    pub selector: Field<LabelSelector>,
    /// Object that the policy is attached to; the older form of `targetRefs`.
    pub target_ref: Field<PolicyTargetReference>,
    /// Objects that the policy is attached to, at most 16; not beside `selector`.
    pub target_refs: Field<Vec<Field<PolicyTargetReference>>>,
    /// Rules, at most 512; a request that matches one of them matches the policy. Default: none, which matches nothing.
    pub rules: Field<Vec<Field<Rule>>>,
    /// Action for matching requests: `ALLOW` (default), `DENY`, `AUDIT` or `CUSTOM`.
    pub action: Field<String>,
    /// External authorization provider; only with `action: CUSTOM`.
    pub provider: Field<ExtensionProvider>,
}

/// Object that a policy is attached to.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PolicyTargetReference {
    /// API group of the object; empty or `core` for a Service.
    pub group: Field<String>,
    /// Kind of the object.
    pub kind: Field<String>,
    /// Name of the object.
    pub name: Field<String>,
    /// Namespace of the object; the policy's own, which is also the default.
    pub namespace: Field<String>,
}

/// External authorization provider of the mesh configuration.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ExtensionProvider {
    /// Name of the provider in `extensionProviders` of the mesh configuration.
    pub name: Field<String>,
}

/// Rule of a policy: any source, any operation, and all conditions.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Rule {
    /// Sources, at most 512. Default: any source.
    pub from: Field<Vec<Field<From>>>,
    /// Operations. Default: any operation.
    pub to: Field<Vec<Field<To>>>,
    /// Additional conditions, all of which must hold.
    pub when: Field<Vec<Field<Condition>>>,
}

/// Element of `from`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct From {
    /// Source of a request; all its fields must match.
    pub source: Field<Source>,
}

/// Source of a request. A list matches if one of its values does, and one with `not` if none of them does.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Source {
    /// Peer identities from the client certificate, such as `cluster.local/ns/default/sa/web`.
    pub principals: Texts,
    /// As `principals`, negated.
    pub not_principals: Texts,
    /// Request identities from a verified token, `ISSUER/SUBJECT`.
    pub request_principals: Texts,
    /// As `requestPrincipals`, negated.
    pub not_request_principals: Texts,
    /// Namespaces from the client certificate.
    pub namespaces: Texts,
    /// As `namespaces`, negated.
    pub not_namespaces: Texts,
    /// Service accounts from the client certificate, `NAMESPACE/NAME` or `NAME` in the policy's namespace; at most 16.
    pub service_accounts: Texts,
    /// As `serviceAccounts`, negated.
    pub not_service_accounts: Texts,
    /// Trust domains from the client certificate.
    pub trust_domains: Texts,
    /// As `trustDomains`, negated.
    pub not_trust_domains: Texts,
    /// Addresses or CIDR blocks of the connection's peer.
    pub ip_blocks: Texts,
    /// As `ipBlocks`, negated.
    pub not_ip_blocks: Texts,
    /// Addresses or CIDR blocks of the original client, by trusted proxies.
    pub remote_ip_blocks: Texts,
    /// As `remoteIpBlocks`, negated.
    pub not_remote_ip_blocks: Texts,
}

/// Element of `to`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct To {
    /// Operation of a request; all its fields must match.
    pub operation: Field<Operation>,
}

/// Operation of a request. A list matches if one of its values does, and one with `not` if none of them does.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Operation {
    /// Hosts, in any case.
    pub hosts: Texts,
    /// As `hosts`, negated.
    pub not_hosts: Texts,
    /// Ports of the workload, as text.
    pub ports: Texts,
    /// As `ports`, negated.
    pub not_ports: Texts,
    /// HTTP methods; `POST` for gRPC.
    pub methods: Texts,
    /// As `methods`, negated.
    pub not_methods: Texts,
    /// Normalized paths without query, or templates with `{*}` and `{**}`.
    pub paths: Texts,
    /// As `paths`, negated.
    pub not_paths: Texts,
}

/// Condition on an attribute of a request. At least one of the lists has values.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Condition {
    /// Name of the attribute, such as `request.headers[x-user]`.
    pub key: Field<String>,
    /// Values, one of which must match.
    pub values: Texts,
    /// Values, none of which may match.
    pub not_values: Texts,
}
