//! Explains a raw TCP connection: server, rules by SNI and address, destinations.

use std::net::{IpAddr, SocketAddr};

use http::Method;

use super::answer::{Condition, Explanation, Note, Outcome, RuleTried};
use super::cluster;
use super::sent::ConnectionFacts;
use crate::compile::Survey;
use crate::exchange::worker::SnapshotRef;
use crate::snapshot::{
    Chain, Chains, Destination, Handling, Intake, Listener, OpaqueRoutes, Service, Then, TlsBytes,
};
use traffic::cluster::Split;
use traffic::route::{OpaqueHead, OpaqueRule, RuleIdx};

/// Maximum number of names that are listed when no server has the requested one.
const NAMES_LISTED_MAX: usize = 20;

/// Connection that is explained.
#[derive(Clone, Copy)]
pub(super) struct ExplainedConnection<'a> {
    /// Name or address of the server that the client asks for.
    pub name: &'a str,
    pub client: Option<IpAddr>,
    /// Address that the client dialed, of a captured connection.
    pub dialed: Option<SocketAddr>,
}

impl<'a> ExplainedConnection<'a> {
    pub(super) fn new(name: &'a str, client: Option<IpAddr>, dialed: Option<SocketAddr>) -> Self {
        Self {
            name,
            client,
            dialed,
        }
    }
}

/// Explains the TLS or TCP connection of a request. Returns whether that is the whole
/// explanation: the connection is proxied as raw TCP, or no server has this name.
pub(super) fn explain(
    answer: &mut Explanation,
    listener: &Listener,
    connection: ExplainedConnection<'_>,
    snapshot: &SnapshotRef,
    survey: &Survey<'_>,
) -> bool {
    let (name, dialed) = (connection.name, connection.dialed);
    for skipped in &listener.skipped {
        answer.unreachable.push(Note {
            source: Some((&skipped.provenance).into()),
            text: format!("server is not used: {}", skipped.reason),
        });
    }
    let address = name.parse::<IpAddr>().ok();
    let is_connect = answer.request.method == Method::CONNECT.as_str();
    let (routes, sni) = match &listener.service {
        Service::Http(_) | Service::HttpProxy => return false,
        // a tunnel is routed by the host that the client names
        Service::Detected(detected) if is_connect && is_proxied(listener) => {
            (&detected.opaque, address.is_none().then_some(name))
        }
        Service::Detected(detected) if detected.http.is_some() => return false,
        Service::Detected(detected) => match &detected.tls {
            TlsBytes::ByName(routes) => (routes, Some(name)),
            TlsBytes::Mesh(_) | TlsBytes::Opaque => (&detected.opaque, None),
        },
        Service::Captured(intake) => {
            answer.outcome = captured_outcome(*intake);
            return true;
        }
        Service::Opaque(routes) => (routes, None),
        Service::Tls(chains) => {
            let sni = address.is_none().then_some(name);
            let Some(chain) = chains.find(sni) else {
                answer.outcome =
                    Outcome::closed("NR", format!("no TLS server has the name {name}"));
                answer.hints.push(names(chains));
                return true;
            };
            answer.hints.push(server(chain));
            match &chain.handling {
                Handling::AutoPassthrough(routes) | Handling::Passthrough(routes) => (routes, sni),
                Handling::Terminate { then, .. } => match then {
                    Then::Http(_) => return false,
                    Then::Opaque(routes) => (routes, sni),
                },
            }
        }
    };
    let head = OpaqueHead {
        sni,
        destination: (address.filter(|_| is_proxied(listener))).or(dialed.map(|at| at.ip())),
        source: None,
    };
    let ends = ConnectionFacts {
        client: connection.client,
        dialed,
        sni,
    };
    if let Some(split) = rules(answer, routes, &head) {
        answer.destinations = cluster::of_connection(split, snapshot, survey, &ends);
    }
    if let Service::Tls(chains) = &listener.service
        && let Some(closed) = chains.find(sni).and_then(without_certificate)
    {
        answer.outcome = closed;
    }
    true
}

/// Outcome at the socket of captured connections.
fn captured_outcome(intake: Intake) -> Outcome {
    let intake = intake.name();
    let why = format!(
        "captured {intake} connections come here, to be told apart by the address that the client dialed"
    );
    Outcome::closed("NR", why)
}

/// Returns whether the listener serves requests of the HTTP proxy.
fn is_proxied(listener: &Listener) -> bool {
    listener.key.intake == Intake::HttpProxy
}

/// Outcome at a server without a usable certificate; `None` for any other.
pub(super) fn without_certificate(chain: &Chain) -> Option<Outcome> {
    let why = "the server has no certificate that can be used, so that TLS handshakes fail; see `strait check`";
    let fails = matches!(chain.handling, Handling::Terminate { tls: None, .. });
    fails.then(|| Outcome::closed("", why))
}

/// Describes the server of a connection.
fn server(chain: &Chain) -> Note {
    let does = match &chain.handling {
        Handling::AutoPassthrough(_) => {
            "leads to the cluster that the name says, for clients that offer an istio ALPN"
        }
        Handling::Passthrough(_) => "passes TLS through by its name",
        Handling::Terminate { .. } => "ends TLS here",
    };
    let names: Vec<&str> = chain.names.iter().map(|name| &**name).collect();
    Note {
        source: Some((&chain.provenance).into()),
        text: format!("TLS server for {} {does}", names.join(", ")),
    }
}

fn names(chains: &Chains) -> Note {
    let mut names: Vec<&str> = chains.names.iter().map(|(name, _)| name).collect();
    let more = names.len().saturating_sub(NAMES_LISTED_MAX);
    names.truncate(NAMES_LISTED_MAX);
    let more = match more {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    Note {
        source: None,
        text: format!("the listener has servers for {}{more}", names.join(", ")),
    }
}

/// Describes the rules up to the first that matches. Returns its destinations.
fn rules<'r>(
    answer: &mut Explanation,
    routes: &'r OpaqueRoutes,
    head: &OpaqueHead<'_>,
) -> Option<&'r Split<Destination>> {
    let won = routes.table.find(head);
    let all = routes.table.rules();
    let tried = all.iter().zip(0..).filter(|(rule, number)| {
        // of the thousands of AUTO_PASSTHROUGH rules, show only the matching one
        won.is_none_or(|won| won.0 == *number) || !rule.conditions.sni_hosts.is_empty()
    });
    let tried = tried.take_while(|(_, number)| won.is_none_or(|won| *number <= won.0));
    answer.rules = tried
        .map(|(rule, number)| RuleTried {
            number: number as usize + 1,
            name: String::new(),
            source: (&rule.provenance).into(),
            matched: won == Some(RuleIdx(number)),
            conditions: conditions(rule, head),
        })
        .collect();
    let Some(won) = won else {
        let asked = head.sni.unwrap_or("a connection without SNI");
        answer.outcome = Outcome::closed("NR", format!("no rule matches {asked}"));
        return None;
    };
    answer.rules_not_tried = all.len() - won.index() - 1;
    answer.outcome = Outcome::FORWARDED;
    let route = routes.route(won);
    if let Some(tunnel) = &route.tunnel {
        answer.hints.push(Note {
            source: None,
            text: format!(
                "a tunnel goes on to {}, opened by {}",
                tunnel.authority,
                tunnel.method.as_str()
            ),
        });
    }
    route.split.as_ref()
}

fn conditions(rule: &OpaqueRule, head: &OpaqueHead<'_>) -> Vec<Condition> {
    let asked = &rule.conditions;
    let mut conditions = Vec::new();
    if !asked.sni_hosts.is_empty() {
        conditions.push(Condition {
            field: "sniHosts".to_owned(),
            expected: asked.sni_hosts.join(", "),
            actual: head.sni.map(str::to_owned),
            matched: asked.specificity(head).is_some(),
            hint: None,
        });
    }
    let subnets = [
        (
            "destinationSubnets",
            &asked.destination_subnets,
            head.destination,
        ),
        ("sourceSubnet", &asked.source_subnets, head.source),
    ];
    for (field, subnets, actual) in subnets
        .into_iter()
        .filter(|(_, subnets, _)| !subnets.is_empty())
    {
        let wanted: Vec<String> = subnets.iter().map(ToString::to_string).collect();
        conditions.push(Condition {
            field: field.to_owned(),
            expected: wanted.join(", "),
            actual: actual.map(|ip| ip.to_string()),
            matched: actual.is_some_and(|ip| subnets.iter().any(|net| net.contains(&ip))),
            hint: None,
        });
    }
    conditions
}
