//! Explanation as plain data: the output of `-o json`, and the input of the text.
//!
//! Field names are part of the command's interface. Uses nothing but provenance.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use traffic::provenance::Provenance;

/// Explanation of one request: everything that affects it.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct Explanation {
    /// Parsed request.
    pub request: RequestSummary,
    /// Outcome, in short.
    pub outcome: Outcome,
    /// Listener that accepts the request; `None` if the proxy has no listener.
    pub listener: Option<ListenerChoice>,
    /// Virtual host that serves the request's host.
    pub virtual_host: Option<HostChoice>,
    /// Rules that were tried, in order, up to the matching one.
    pub rules: Vec<RuleTried>,
    /// Number of rules after the matching one, which are not tried.
    pub rules_not_tried: usize,
    /// Parts of the configuration of the virtual host that no request reaches.
    pub unreachable: Vec<Note>,
    /// Effect of the matching rule.
    pub action: Option<Action>,
    /// Destinations of the matching rule.
    pub destinations: Vec<DestinationChoice>,
    /// Decision of AuthorizationPolicies; `None` if none apply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub authorization: Option<AuthorizationChoice>,
    /// Share of requests that are traced, what says so, and where spans go; `None` without tracing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tracing: Option<String>,
    /// Reasons why the request is not served, with suggestions.
    pub hints: Vec<Note>,
}

impl Explanation {
    /// Sets the outcome of a forwarded request by the failures of its destinations.
    pub(super) fn apply_failures(&mut self) {
        if self.outcome != Outcome::FORWARDED {
            return;
        }
        let failures = failures(&self.destinations);
        self.outcome = match &*failures {
            [] => Outcome::FORWARDED,
            all if all.contains(&None) => Outcome::Forwarded { partly: true },
            all => {
                let all: Vec<&str> = all.iter().copied().flatten().collect();
                Outcome::Unavailable {
                    reason: format!("all {}", all.join("; or ")),
                }
            }
        };
    }
}

/// Returns the failures of the destinations that get traffic, each once, with `None` if one of them can respond; empty
/// if all can.
fn failures(destinations: &[DestinationChoice]) -> Vec<Option<&str>> {
    let in_use = destinations
        .iter()
        .filter(|one| one.unused_reason.is_none());
    let mut all = Vec::new();
    for destination in in_use {
        let failure = destination.failure.as_deref();
        // without the keyword before the colon
        let given = failure.map(|text| text.split_once(": ").map_or(text, |(_, given)| given));
        if !all.contains(&given) {
            all.push(given);
        }
    }
    if all == [None] { Vec::new() } else { all }
}

fn is_false(flag: &bool) -> bool {
    !flag
}

/// Decision of AuthorizationPolicies, with all rules that were compared.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct AuthorizationChoice {
    /// Reason of a denial; `None` if the request is allowed.
    pub denied_by: Option<String>,
    /// Providers of external authorization that are asked first, each with the rule that says so.
    pub asks: Vec<String>,
    /// Rules in the order of the actions: CUSTOM, AUDIT, DENY, ALLOW, and those in dry run.
    pub rules: Vec<PolicyRuleTried>,
    /// Number of further rules.
    pub rules_not_listed: usize,
    /// Decision of the policies in dry run; `None` without any.
    pub dry_run: Option<String>,
}

/// Rule of a policy that was compared.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct PolicyRuleTried {
    /// Action of the policy, or `dry run`.
    pub stage: String,
    /// Namespace and name of the policy.
    pub policy: String,
    /// First field that does not match, with its values and that of the request; `None` if the rule matches.
    pub failed: Option<String>,
    /// Location of the rule.
    pub source: Source,
}

/// Location in a file.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
pub struct Source {
    /// Kind, namespace and name of the object.
    pub object: String,
    /// Path of the file.
    pub file: String,
    /// Line, from 1.
    pub line: u32,
}

impl From<&Provenance> for Source {
    fn from(provenance: &Provenance) -> Self {
        Self {
            object: provenance.object.to_string(),
            file: provenance.file.to_string(),
            line: provenance.line,
        }
    }
}

/// Parsed request.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct RequestSummary {
    /// Method.
    pub method: String,
    /// Authority as sent; `None` if the request has no host.
    pub authority: Option<String>,
    /// Host for the choice of the virtual host: lower case, no port.
    pub host: String,
    /// Path as the client sent it.
    pub original_path: String,
    /// Normalized path, which rules match against.
    pub path: String,
    /// Query, without its question mark.
    pub query: Option<String>,
    /// Headers except `host`.
    pub headers: Vec<(String, String)>,
}

/// Outcome of a request.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Outcome {
    /// A rule responds without an upstream.
    DirectResponse {
        /// Status of the reply.
        status: u16,
    },
    /// A rule forwards the request to an upstream.
    Forwarded {
        /// Whether some of its destinations cannot respond.
        #[serde(default, skip_serializing_if = "is_false")]
        partly: bool,
    },
    /// A rule redirects the client.
    Redirected {
        /// Status of the reply.
        status: u16,
        /// Value of the `location` header; `None` if it is not a valid header value.
        location: Option<String>,
    },
    /// No rule matches.
    Rejected {
        /// Status of the reply; `None` if no listener accepts the connection.
        status: Option<u16>,
        /// Response flags, as in the access log.
        flags: String,
        /// Reason, in words.
        reason: String,
    },
    /// A rule forwards the request, and no destination can respond.
    Unavailable {
        /// Status and flags of the replies, and the reason, in words.
        reason: String,
    },
}

impl Outcome {
    /// Outcome of a forwarding rule, before its destinations are checked.
    pub const FORWARDED: Self = Self::Forwarded { partly: false };

    /// Outcome of a connection that the listener closes.
    pub fn closed(flags: &str, reason: impl Into<String>) -> Self {
        Self::Rejected {
            status: None,
            flags: flags.to_owned(),
            reason: reason.into(),
        }
    }

    /// Returns whether a rule matches the request.
    pub fn is_served(&self) -> bool {
        !matches!(self, Self::Rejected { .. })
    }
}

/// Listener of the request.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct ListenerChoice {
    /// Address of the listener.
    pub address: String,
    /// Reason for the choice.
    pub reason: String,
    /// Gateway servers that the listener was made from.
    pub sources: Vec<Source>,
    /// Addresses of all other listeners.
    pub others: Vec<String>,
}

/// Virtual host of the request.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct HostChoice {
    /// Name of the virtual host, which may be a wildcard.
    pub name: String,
    /// Reason for the choice.
    pub reason: String,
    /// Resource whose change made the proxy build it again last; `None` if it was not built again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rebuilt_because: Option<String>,
    /// Number of rules of the virtual host.
    pub rules: usize,
    /// Whether gRPC-Web requests are translated into gRPC.
    #[serde(default, skip_serializing_if = "is_false")]
    pub translates_grpc_web: bool,
}

/// Rule that was tried.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct RuleTried {
    /// Position in the virtual host, from 1.
    pub number: usize,
    /// Name of the rule and match block.
    pub name: String,
    /// Match block, or the rule if it has none.
    pub source: Source,
    /// Whether all conditions match.
    pub matched: bool,
    /// Conditions; without any, the rule matches every request.
    pub conditions: Vec<Condition>,
}

/// Condition of a rule.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct Condition {
    /// Field, as in `headers[end-user].exact`.
    pub field: String,
    /// Expected value; empty for presence.
    pub expected: String,
    /// Value in the request; `None` if the request has no such field.
    pub actual: Option<String>,
    /// Whether the condition matches.
    pub matched: bool,
    /// Likely mistake, if the condition almost matches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// Note about a resource.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct Note {
    /// Resource that the note is about, if any.
    pub source: Option<Source>,
    /// Text of the note.
    pub text: String,
}

/// Effect of the matching rule on the request.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
pub struct Action {
    /// Injected faults, in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<String>,
    /// CORS policy, in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cors: Vec<String>,
    /// Limits on requests and bodies, in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<String>,
    /// URL of the service that checks requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check: Option<String>,
    /// Body of a direct response, truncated.
    pub body: Option<String>,
    /// Change of path and query.
    pub path: Option<Change>,
    /// New authority for all destinations.
    pub authority: Option<String>,
    /// Time limit, from the end of the request to the end of the response.
    pub timeout: Option<String>,
    /// Retry policy; `None` if requests are not retried.
    pub retries: Option<Retries>,
    /// Mirrors, which get copies of the request.
    pub mirrors: Vec<MirrorChoice>,
    /// Header edits for all destinations.
    #[serde(flatten)]
    pub edits: Edits,
}

/// Retry policy of a rule.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct Retries {
    /// Maximum number of retries.
    pub attempts: u32,
    /// Conditions of a retry, as in `retryOn`.
    pub on: Vec<String>,
    /// Timeout of one attempt; `None` if only the timeout of the request applies.
    pub per_try_timeout: Option<String>,
    /// Base interval of the backoff.
    pub backoff: String,
}

/// Mirror of a rule.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct MirrorChoice {
    /// Name of the cluster.
    pub name: String,
    /// Percentage of the requests that are mirrored.
    pub percent: f64,
    /// Location of the mirror in the rule.
    pub source: Source,
    /// Whether host, port or subset are unknown, so that nothing is mirrored.
    pub unknown: bool,
}

/// Value before and after a change.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct Change {
    /// Value that the client sent.
    pub before: String,
    /// Value that the endpoint receives.
    pub after: String,
}

/// Header edits, in the order in which they are applied.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct Edits {
    /// Edits of the request headers.
    pub request_headers: Vec<Edit>,
    /// Edits of the response headers.
    pub response_headers: Vec<Edit>,
}

/// Header edit.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct Edit {
    /// `add`, `remove` or `set`.
    pub operation: String,
    /// Name of the header.
    pub name: String,
    /// Value as written, with its operators.
    pub value: Option<String>,
}

/// Weighted destination.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
pub struct DestinationChoice {
    /// Name of the cluster.
    pub name: String,
    /// Host of the service.
    pub host: String,
    /// Port of the service.
    pub port: u16,
    /// Subset; empty for none.
    pub subset: String,
    /// Weight among the destinations.
    pub weight: u64,
    /// Probability that the destination is chosen.
    pub probability: f64,
    /// Reason why it gets no traffic; `None` if it gets some.
    pub unused_reason: Option<String>,
    /// Location of the destination in the rule.
    pub source: Source,
    /// Handling of gRPC-Web requests, in words, if the port of the service declares the protocol.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grpc_web: Option<String>,
    /// Effects of filters of this destination only, in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub filters: Vec<String>,
    /// Change of path and query for this destination only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<Change>,
    /// New authority for this destination only.
    pub authority: Option<String>,
    /// Header edits for this destination only, before those of the rule.
    #[serde(flatten)]
    pub edits: Edits,
    /// Cluster of the destination; `None` if host, port or subset are unknown.
    pub cluster: Option<ClusterUsed>,
    /// Reason why it cannot respond: a keyword, the reply to its requests or connections, and the cause: `empty:
    /// requests get 503 UH; ...`.
    pub failure: Option<String>,
}

/// Cluster of a destination.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct ClusterUsed {
    /// Protocol of the connections to its endpoints.
    pub protocol: String,
    /// Load balancer, as DestinationRule spells it.
    pub load_balancer: String,
    /// Connect timeout.
    pub connect_timeout: String,
    /// Limits of connections and requests, in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<String>,
    /// TLS to its endpoints: the mode, the SNI, and what is verified.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<String>,
    /// Pod that the client has chosen, for a headless service, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chosen_pod: Option<String>,
    /// Value that is hashed, and the endpoint that it selects; for balancers by hash.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_affinity: Option<String>,
    /// Active health check of the endpoints, if they have one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub health_check: Option<String>,
    /// Priorities, first to last; empty if all endpoints have the same one and their health does not matter.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub priorities: Vec<PriorityUsed>,
    /// Kubernetes clusters that serve the destination, in the order of their tiers; empty if only one can.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub member_clusters: Vec<MemberUsed>,
    /// Failures after which requests or connections go to later tiers, in words; `None` with one tier.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failover: Option<String>,
    /// Endpoints that are not used, with the reasons.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skipped_endpoints: Vec<String>,
    /// Resource whose change made the proxy build it again last; `None` if it was not built again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rebuilt_because: Option<String>,
    /// Resources that describe the cluster: the service first, then its policy.
    pub sources: Vec<Source>,
    /// Endpoints of the cluster.
    pub endpoints: Vec<EndpointUsed>,
    /// DNS names with ports, which are resolved when the proxy runs.
    pub unresolved_hosts: Vec<String>,
}

/// Kubernetes cluster that serves a destination.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct MemberUsed {
    /// Key of the Kubernetes cluster: `region/zone/group/cluster`.
    pub cluster_key: String,
    /// Name of the upstream cluster with its endpoints.
    pub upstream_cluster: String,
    /// Failover tier, 0 first.
    pub tier: u8,
    /// Weight relative to the sum over its tier.
    pub weight: u32,
    /// Share of the traffic that it gets now.
    pub share: f64,
    /// Number of available endpoints.
    pub healthy: u32,
    /// Number of endpoints.
    pub total: u32,
    /// Number of DNS names of endpoints that are not resolved.
    #[serde(default)]
    pub unresolved_hosts: u32,
}

/// Priority of a cluster's endpoints.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct PriorityUsed {
    /// Share of the traffic, in percent.
    pub load: u8,
    /// Number of available endpoints.
    pub healthy: u32,
    /// Number of endpoints.
    pub total: u32,
    /// Whether it is in panic mode: too few endpoints are healthy, so all are used.
    pub panic_mode: bool,
    /// Localities with their weights, where traffic is distributed by locality.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub localities: Vec<(String, u32)>,
}

/// Endpoint of a cluster.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct EndpointUsed {
    /// Address and port.
    pub address: String,
    /// Probability within the cluster, while all endpoints are equally busy; `None` while names of the cluster are not
    /// resolved.
    pub share: Option<f64>,
    /// Probability that the endpoint gets the request.
    pub probability: Option<f64>,
    /// Weight of the endpoint.
    pub weight: u32,
    /// Region, zone and sub-zone; empty when unknown.
    pub locality: String,
    /// Labels of the endpoint.
    pub labels: BTreeMap<String, String>,
    /// Source of the labels: `pod`, or `slice` if the pod is unknown; `None` for the resource that names the endpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub labels_from: Option<String>,
    /// Node of the endpoint, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// Key of its Kubernetes cluster, where several serve the destination.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_key: Option<String>,
    /// Prefix that is added to the path of its requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path_prefix: Option<String>,
    /// TLS settings of the endpoint, if they differ from the cluster's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<String>,
    /// Priority, 0 first; `None` if there is only one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<u32>,
    /// Reason why the endpoint is not used; `None` if it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unavailable_reason: Option<String>,
    /// Progress of the slow start, while the endpoint has less than its weight.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warmup: Option<String>,
    /// Results of its active health checks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_health_check: Option<String>,
}
