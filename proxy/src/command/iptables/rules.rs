//! Converts flags to rules, for one IP version at a time.
//!
//! The rules are those of Istio. An outbound connection is redirected to the proxy, unless the proxy made it. An
//! inbound one is redirected as well, or the proxy accepts it in place of the workload (TPROXY). The proxy's own
//! connections pass, with one exception: a connection to the workload's own address through the loopback interface is a
//! call of the workload to itself through a service, and is redirected to the inbound port like one from elsewhere.
//! Connections from the inbound side of the proxy to the workload are recognized by their source address or mark.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;

use ipnet::IpNet;

use super::capture::{CaptureArgs, InterceptionMode, PortRange, Selection};
use super::rule::{Hook, Match, Rule, Table, TableRules, Target};
use crate::runtime::interception::{INBOUND_SOURCE_V4, INBOUND_SOURCE_V6, TRANSPARENT_MARK};

/// IP version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

impl Family {
    /// Both versions, in the order in which rules are applied.
    pub(crate) const ALL: [Self; 2] = [Self::V4, Self::V6];

    /// Name for people.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::V4 => "IPv4",
            Self::V6 => "IPv6",
        }
    }

    /// Returns whether the kernel supports this version.
    pub(crate) fn exists(self) -> bool {
        match self {
            Self::V4 => true,
            Self::V6 => Path::new("/proc/net/if_inet6").exists(),
        }
    }

    fn loopback(self) -> IpNet {
        match self {
            Self::V4 => IpNet::from(IpAddr::from(Ipv4Addr::LOCALHOST)),
            Self::V6 => IpNet::from(IpAddr::from(Ipv6Addr::LOCALHOST)),
        }
    }

    fn inbound_source(self) -> IpNet {
        match self {
            Self::V4 => IpNet::from(IpAddr::from(INBOUND_SOURCE_V4)),
            Self::V6 => IpNet::from(IpAddr::from(INBOUND_SOURCE_V6)),
        }
    }
}

/// Chain for inbound connections. Excluded connections return from it.
const INBOUND: &str = "STRAIT_INBOUND";
/// Chain for outbound connections.
const OUTPUT: &str = "STRAIT_OUTPUT";
/// Chain that redirects a connection to the proxy's inbound port.
const TO_INBOUND: &str = "STRAIT_TO_INBOUND";
/// Chain that redirects a connection to the proxy's outbound port.
const TO_OUTBOUND: &str = "STRAIT_TO_OUTBOUND";
/// Chain that delivers packets of a connection that the proxy has accepted in place of the workload.
const DIVERT: &str = "STRAIT_DIVERT";

const DNS: u16 = 53;

/// Returns the rules that capture the connections chosen by the flags.
pub(crate) fn rules(capture: &CaptureArgs, family: Family) -> Vec<TableRules> {
    let mut tables = vec![redirection(capture, family)];
    if capture.intercepts() {
        tables.push(interception(capture, family));
    }
    tables
}

/// Rules of the `nat` table: outbound connections, and inbound ones that are redirected.
fn redirection(capture: &CaptureArgs, family: Family) -> TableRules {
    let redirect = |port: u16| Rule::new([Match::Tcp], Target::Redirect(port));
    let mut rules = vec![
        (TO_INBOUND, redirect(capture.inbound_port)),
        (TO_OUTBOUND, redirect(capture.outbound_port)),
    ];
    let inbound = inbound_rules(capture, &[Rule::new([], Target::Jump(TO_INBOUND))]);
    rules.extend(inbound.into_iter().map(|rule| (INBOUND, rule)));
    let outbound = outbound_rules(capture, family);
    rules.extend(outbound.into_iter().map(|rule| (OUTPUT, rule)));
    let mut jumps = vec![(Hook::Output, OUTPUT)];
    if capture.interception_mode == InterceptionMode::Redirect {
        jumps.insert(0, (Hook::Prerouting, INBOUND));
    }
    TableRules {
        table: Table::Nat,
        rules,
        jumps,
    }
}

/// Rules of the `mangle` table: inbound connections that the proxy accepts in place of the workload.
fn interception(capture: &CaptureArgs, family: Family) -> TableRules {
    let mark = TRANSPARENT_MARK;
    let intercept = Target::Intercept {
        port: capture.inbound_port,
        mark,
    };
    let loopback = family.loopback();
    let mut rules = vec![
        (DIVERT, Rule::new([], Target::SetMark(mark))),
        (DIVERT, Rule::new([], Target::Accept)),
        (
            TO_INBOUND,
            Rule::new([Match::NotDestination(loopback), Match::Tcp], intercept),
        ),
        // The proxy's connection to the workload from the client's address: the workload's replies must be routed to
        // the proxy instead of to the client.
        (
            INBOUND,
            Rule::new([Match::Tcp, Match::Mark(mark)], Target::SaveMark),
        ),
        (
            INBOUND,
            Rule::new([Match::Tcp, Match::Mark(mark)], Target::Return),
        ),
        (INBOUND, Rule::new([Match::From(lo())], Target::Return)),
        (
            OUTPUT,
            Rule::new(
                [Match::Tcp, Match::ConnectionMark(mark)],
                Target::RestoreMark,
            ),
        ),
    ];
    let targets = [
        Rule::new([Match::Established], Target::Jump(DIVERT)),
        Rule::new([], Target::Jump(TO_INBOUND)),
    ];
    let inbound = inbound_rules(capture, &targets);
    rules.extend(inbound.into_iter().map(|rule| (INBOUND, rule)));
    TableRules {
        table: Table::Mangle,
        rules,
        jumps: vec![(Hook::Prerouting, INBOUND), (Hook::Output, OUTPUT)],
    }
}

fn lo() -> String {
    "lo".to_owned()
}

/// Rule that excludes matching packets from the capture.
fn spare(matched: Match) -> Rule {
    Rule::new([matched], Target::Return)
}

fn exclude_ports(ports: &[PortRange]) -> impl Iterator<Item = Rule> {
    ports.iter().map(|ports| spare(Match::Ports(*ports)))
}

/// Rules for inbound connections: the exclusions first, then `rules` for the captured ports.
fn inbound_rules(capture: &CaptureArgs, rules: &[Rule]) -> Vec<Rule> {
    let interfaces = capture.exclude_interfaces.iter();
    let mut all: Vec<_> = interfaces
        .map(|interface| spare(Match::From(interface.clone())))
        .collect();
    let own = capture.own_ports().into_iter().chain([DNS]);
    let own: Vec<_> = own.map(PortRange::from).collect();
    all.extend(exclude_ports(&own));
    all.extend(exclude_ports(capture.exclude_inbound_ports.listed()));
    let included = match &capture.include_inbound_ports {
        Selection::All => vec![Match::Tcp],
        Selection::Only(ports) => ports.iter().map(|ports| Match::Ports(*ports)).collect(),
    };
    for matched in included {
        all.extend(rules.iter().map(|rule| {
            let matches = std::iter::once(matched.clone()).chain(rule.matches.clone());
            Rule::new(matches, rule.target.clone())
        }));
    }
    all
}

fn outbound_rules(capture: &CaptureArgs, family: Family) -> Vec<Rule> {
    let is_of_family = |network: &&IpNet| match family {
        Family::V4 => network.addr().is_ipv4(),
        Family::V6 => network.addr().is_ipv6(),
    };
    let loopback = family.loopback();
    let interfaces = capture.exclude_interfaces.iter();
    let mut rules: Vec<_> = interfaces
        .map(|interface| spare(Match::Into(interface.clone())))
        .collect();
    rules.push(spare(Match::Ports(DNS.into())));
    rules.extend(exclude_ports(capture.exclude_outbound_ports.listed()));
    // connections from the proxy to the workload
    let source = Match::Source(family.inbound_source());
    rules.push(Rule::new([Match::Into(lo()), source], Target::Return));
    if capture.interception_mode == InterceptionMode::Transparent {
        rules.push(spare(Match::Mark(TRANSPARENT_MARK)));
    }
    let users = capture.proxy_uids.iter().map(|id| Match::User(*id));
    let groups = capture.gids().iter().map(|id| Match::Group(*id));
    for owner in users.chain(groups) {
        let to_workload = [
            Match::NotDestination(loopback),
            Match::Into(lo()),
            Match::Tcp,
        ];
        let to_workload = to_workload.into_iter().chain([owner.clone()]);
        rules.push(Rule::new(to_workload, Target::Jump(INBOUND)));
        rules.push(spare(owner));
    }
    let included = &capture.include_outbound_cidrs;
    let networks = included.listed().iter().filter(is_of_family);
    if !networks.clone().any(|network| network.addr().is_loopback()) {
        rules.push(spare(Match::Into(lo())));
    }
    rules.push(spare(Match::Destination(loopback)));
    let excluded = capture.exclude_outbound_cidrs.listed().iter();
    let excluded = excluded.filter(is_of_family);
    rules.extend(excluded.map(|network| spare(Match::Destination(*network))));
    let captured = |matched: Match| Rule::new([matched], Target::Jump(TO_OUTBOUND));
    let ports = capture.include_outbound_ports.listed().iter();
    rules.extend(ports.map(|ports| captured(Match::Ports(*ports))));
    match included {
        Selection::All => rules.push(Rule::new([], Target::Jump(TO_OUTBOUND))),
        Selection::Only(_) => {
            rules.extend(networks.map(|network| captured(Match::Destination(*network))));
        }
    }
    rules
}

#[cfg(test)]
mod tests;
