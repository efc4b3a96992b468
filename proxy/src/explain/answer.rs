//! The answer, as plain data: what `-o json` prints and what the text is made from.
//!
//! Field names are part of the command's interface. Uses nothing but provenance.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::provenance::Provenance;

/// Everything that had a say in what happens to one request.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct Explanation {
    /// The request as it was understood.
    pub request: RequestSummary,
    /// What happens, in short.
    pub outcome: Outcome,
    /// The listener that takes it; none when there is no listener at all.
    pub listener: Option<ListenerChoice>,
    /// The virtual host that serves its host.
    pub virtual_host: Option<HostChoice>,
    /// The rules that were tried, in order, up to the one that matched.
    pub rules: Vec<RuleTried>,
    /// Number of rules after the one that matched; they are not tried.
    pub rules_not_tried: usize,
    /// Parts of the configuration of the virtual host that no request reaches.
    pub unreachable: Vec<Note>,
    /// What the winning rule does.
    pub action: Option<Action>,
    /// Where it may go.
    pub destinations: Vec<DestinationChoice>,
    /// Security policies for this proxy that are not enforced.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unenforced_policies: Vec<Source>,
    /// What keeps the request from being served, and what to look at.
    pub hints: Vec<Note>,
}

impl Explanation {
    /// Says what becomes of a request that is sent upstream, by what its destinations can take.
    pub(super) fn settle(&mut self) {
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

/// Failures of the destinations with a share of the traffic, each once, with `None` if one of them can answer; empty if all
/// can.
fn failures(destinations: &[DestinationChoice]) -> Vec<Option<&str>> {
    let in_use = destinations
        .iter()
        .filter(|one| one.unused_reason.is_none());
    let mut all = Vec::new();
    for destination in in_use {
        let failure = destination.failure.as_deref();
        // without the word for it
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

/// A place in a file.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct Source {
    /// Kind, namespace and name.
    pub object: String,
    /// The file.
    pub file: String,
    /// Line in it, from 1.
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

/// The request as it was understood.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct RequestSummary {
    /// Method.
    pub method: String,
    /// Authority as sent; none when the request names no host.
    pub authority: Option<String>,
    /// What virtual hosts are compared with: lower case, no port.
    pub host: String,
    /// Path as the client sent it.
    pub original_path: String,
    /// Path that rules are compared with.
    pub path: String,
    /// Query, without its question mark.
    pub query: Option<String>,
    /// Headers, `host` not among them.
    pub headers: Vec<(String, String)>,
}

/// What happens.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Outcome {
    /// A rule responds without an upstream.
    DirectResponse {
        /// Status of the reply.
        status: u16,
    },
    /// A rule sends it upstream.
    Forwarded {
        /// Whether some of its destinations cannot take it.
        #[serde(default, skip_serializing_if = "is_false")]
        partly: bool,
    },
    /// A rule sends the client elsewhere.
    Redirected {
        /// Status of the reply.
        status: u16,
        /// Where to; none when it cannot be made a header.
        location: Option<String>,
    },
    /// No rule matches.
    Rejected {
        /// Status of the reply; none when nothing listens.
        status: Option<u16>,
        /// Response flags, as in the access log.
        flags: String,
        /// Why, in words.
        reason: String,
    },
    /// A rule sends it upstream, and no destination can take it.
    Unavailable {
        /// Status and flags of the replies, and why, in words.
        reason: String,
    },
}

impl Outcome {
    /// Sent upstream, as far as the rule says.
    pub const FORWARDED: Self = Self::Forwarded { partly: false };

    /// Connections to the listener are closed.
    pub fn closed(flags: &str, reason: impl Into<String>) -> Self {
        Self::Rejected {
            status: None,
            flags: flags.to_owned(),
            reason: reason.into(),
        }
    }

    /// Whether a rule takes the request.
    pub fn is_served(&self) -> bool {
        !matches!(self, Self::Rejected { .. })
    }
}

/// The listener that was chosen.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct ListenerChoice {
    /// Its address.
    pub address: String,
    /// Why this one.
    pub reason: String,
    /// The Gateway servers that it was made from.
    pub sources: Vec<Source>,
    /// Addresses of all others.
    pub others: Vec<String>,
}

/// The virtual host that was chosen.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct HostChoice {
    /// Its name, which may be a wildcard.
    pub name: String,
    /// Why this one.
    pub reason: String,
    /// How many rules it has.
    pub rules: usize,
    /// Whether requests of gRPC-Web are translated into gRPC.
    #[serde(default, skip_serializing_if = "is_false")]
    pub translates_grpc_web: bool,
}

/// A rule that was tried.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct RuleTried {
    /// Position in the virtual host, from 1.
    pub number: usize,
    /// Name of rule and match block.
    pub name: String,
    /// The match block, or the rule if it has none.
    pub source: Source,
    /// Whether all conditions match.
    pub matched: bool,
    /// Its conditions; none means that it takes every request.
    pub conditions: Vec<Condition>,
}

/// One condition of a rule.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct Condition {
    /// Field, as in `headers[end-user].exact`.
    pub field: String,
    /// Expected value; empty for presence.
    pub expected: String,
    /// Value that the request has; none when it has no such field.
    pub actual: Option<String>,
    /// Whether it matches.
    pub matched: bool,
    /// A likely mistake, where it almost matches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// Something to say about a resource.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct Note {
    /// The resource, if it is about one.
    pub source: Option<Source>,
    /// What.
    pub text: String,
}

/// What the winning rule does to the request.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
pub struct Action {
    /// Failures that the rule causes on purpose, each in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<String>,
    /// How cross-origin requests are answered, in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cors: Vec<String>,
    /// Body of a direct response, cut off after a while.
    pub body: Option<String>,
    /// Change of path and query.
    pub path: Option<Change>,
    /// New authority for all destinations.
    pub authority: Option<String>,
    /// Time limit, from the end of the request to the end of the response.
    pub timeout: Option<String>,
    /// What is tried again; none for nothing.
    pub retries: Option<Retries>,
    /// Who gets copies.
    pub mirrors: Vec<MirrorChoice>,
    /// Header edits for all destinations.
    #[serde(flatten)]
    pub edits: Edits,
}

/// What is tried again of a request.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct Retries {
    /// Retries.
    pub attempts: u32,
    /// After what, as `retryOn` lists it.
    pub on: Vec<String>,
    /// How long one try may take; none for as long as all of them.
    pub per_try_timeout: Option<String>,
    /// What pauses grow from.
    pub backoff: String,
}

/// A mirror of a rule.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct MirrorChoice {
    /// Name of the cluster.
    pub name: String,
    /// Share of the requests that it gets copies of.
    pub percent: f64,
    /// Where the rule names it.
    pub source: Source,
    /// Whether host, port or subset are unknown, so that it gets none.
    pub unknown: bool,
}

/// A value before and after.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct Change {
    /// As the client sent it.
    pub before: String,
    /// As the endpoint sees it.
    pub after: String,
}

/// Header edits in the order in which they act.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct Edits {
    /// On the request.
    pub request_headers: Vec<Edit>,
    /// On the response.
    pub response_headers: Vec<Edit>,
}

/// One header edit.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct Edit {
    /// `add`, `remove` or `set`.
    pub operation: String,
    /// Name of the header.
    pub name: String,
    /// Value as written, with its operators.
    pub value: Option<String>,
}

/// One weighted destination.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct DestinationChoice {
    /// Name of the cluster.
    pub name: String,
    /// Host of the service.
    pub host: String,
    /// Port of the service.
    pub port: u16,
    /// Subset; empty for none.
    pub subset: String,
    /// Its weight among the destinations.
    pub weight: u64,
    /// Probability that it is drawn.
    pub probability: f64,
    /// Why it gets no traffic; none if it gets some.
    pub unused_reason: Option<String>,
    /// Where the rule names it.
    pub source: Source,
    /// The treatment of gRPC-Web requests, in words, where the port of the service declares it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grpc_web: Option<String>,
    /// New authority for this destination only.
    pub authority: Option<String>,
    /// Header edits for this destination only, before those of the rule.
    #[serde(flatten)]
    pub edits: Edits,
    /// Its cluster; none when host, port or subset are unknown.
    pub cluster: Option<ClusterUsed>,
    /// A word for it, what its requests or connections get in place of an answer, and why: `empty: requests get 503 UH;
    /// ...`.
    pub failure: Option<String>,
}

/// The cluster behind a destination.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct ClusterUsed {
    /// What its connections speak.
    pub protocol: String,
    /// Load balancer, as DestinationRule spells it.
    pub load_balancer: String,
    /// How long making a connection may take.
    pub connect_timeout: String,
    /// What connections and requests are limited by, if by anything.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<String>,
    /// TLS to its endpoints: the mode, the SNI, and what is verified.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<String>,
    /// The pod that the client has chosen, where the service is a headless one, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chosen_pod: Option<String>,
    /// What is hashed, and which endpoint it leads to; for balancers by hash.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_affinity: Option<String>,
    /// How endpoints are health-checked, if they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub health_check: Option<String>,
    /// Priorities, first to last; none where all endpoints have the same and no health counts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub priorities: Vec<PriorityUsed>,
    /// The Kubernetes clusters that serve it, in the order of their tiers; none where only one can.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub member_clusters: Vec<MemberUsed>,
    /// What of a failed request, or of a connection that cannot be made, goes to later tiers, in words; none where
    /// there is one tier.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failover: Option<String>,
    /// Endpoints that are not used, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skipped_endpoints: Vec<String>,
    /// The resources that describe it: the service first, then its policy.
    pub sources: Vec<Source>,
    /// Its endpoints.
    pub endpoints: Vec<EndpointUsed>,
    /// DNS names, with ports, that are resolved when the proxy runs.
    pub unresolved_hosts: Vec<String>,
}

/// One of the Kubernetes clusters that serve a destination.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct MemberUsed {
    /// Its key: `region/zone/group/cluster`.
    pub cluster_key: String,
    /// Name of the upstream cluster with its endpoints.
    pub upstream_cluster: String,
    /// Its tier, 0 first.
    pub tier: u8,
    /// Its part of the sum over its tier.
    pub weight: u32,
    /// Part of the traffic that it gets now.
    pub share: f64,
    /// Endpoints that may be used.
    pub healthy: u32,
    /// All of its endpoints.
    pub total: u32,
    /// Number of DNS names of endpoints that are not resolved.
    #[serde(default)]
    pub unresolved_hosts: u32,
}

/// One priority of a cluster's endpoints.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct PriorityUsed {
    /// Part of the traffic that it gets, in percent.
    pub load: u8,
    /// Endpoints that may be used.
    pub healthy: u32,
    /// All of its endpoints.
    pub total: u32,
    /// Whether it is in panic mode: too few endpoints are healthy, so all are used.
    pub panic_mode: bool,
    /// Its localities with their weights, where traffic is distributed by locality.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub localities: Vec<(String, u32)>,
}

/// An endpoint of a cluster.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct EndpointUsed {
    /// Address and port.
    pub address: String,
    /// Probability that it is picked, once its cluster is, while all endpoints are equally busy; none while names of
    /// the cluster are not resolved.
    pub share: Option<f64>,
    /// Probability that the request ends here.
    pub probability: Option<f64>,
    /// Its weight.
    pub weight: u32,
    /// Region, zone and sub-zone; empty when unknown.
    pub locality: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Source of the labels: `pod`, or `slice` where the pod is not known; none for the resource that names the endpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub labels_from: Option<String>,
    /// The node that it runs on, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// Key of the Kubernetes cluster that it is in, where several serve the destination.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_key: Option<String>,
    /// What is put in front of the path of requests to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path_prefix: Option<String>,
    /// The TLS settings of the endpoint, if they differ from the cluster's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<String>,
    /// Its priority, 0 first; none where there is only one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<u32>,
    /// Why it is not used; none if it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unavailable_reason: Option<String>,
    /// How warm it is, while it has less than its weight.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warmup: Option<String>,
    /// Results of its active health checks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_health_check: Option<String>,
}
