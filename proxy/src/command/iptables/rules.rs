//! From flags to rules, one IP version at a time. Pure.
//!
//! The rules are those of Istio. An outbound connection is redirected to the proxy, unless the proxy made it; so is an
//! inbound one, or the proxy accepts it in place of the workload (TPROXY). The proxy's own connections pass, with one
//! exception: one to the workload's own address through the loopback interface is a call of the workload to itself
//! through a service, and goes to the inbound port as it would from elsewhere. What the inbound side of the proxy then
//! sends to the workload is known by its source address or its mark.

use super::capture::{CaptureArgs, InterceptionMode, Selection};
use super::ruleset::Ruleset;
use crate::runtime::interception::{INBOUND_SOURCE_V4, INBOUND_SOURCE_V6, TRANSPARENT_MARK};

/// IPv4 or IPv6.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

impl Family {
    /// Both, in the order in which rules are applied.
    pub const ALL: [Self; 2] = [Self::V4, Self::V6];

    /// As people say it.
    pub fn name(self) -> &'static str {
        match self {
            Self::V4 => "IPv4",
            Self::V6 => "IPv6",
        }
    }

    fn loopback(self) -> &'static str {
        match self {
            Self::V4 => "127.0.0.1/32",
            Self::V6 => "::1/128",
        }
    }

    fn inbound_source(self) -> String {
        match self {
            Self::V4 => format!("{INBOUND_SOURCE_V4}/32"),
            Self::V6 => format!("{INBOUND_SOURCE_V6}/128"),
        }
    }
}

/// Decides about inbound connections: returns what is not captured.
const INBOUND: &str = "STRAIT_INBOUND";
/// Decides about outbound connections.
const OUTPUT: &str = "STRAIT_OUTPUT";
/// Hands a connection to the proxy's inbound port.
const TO_INBOUND: &str = "STRAIT_TO_INBOUND";
/// Hands a connection to the proxy's outbound port.
const TO_OUTBOUND: &str = "STRAIT_TO_OUTBOUND";
/// Delivers packets of a connection that the proxy has accepted in place of the workload.
const DIVERT: &str = "STRAIT_DIVERT";

const DNS: u16 = 53;

/// The rules that capture what the flags say.
pub fn rules(capture: &CaptureArgs, family: Family) -> Ruleset {
    let mut rules = Ruleset::default();
    redirect(&mut rules, capture, family);
    if capture.interception_mode == InterceptionMode::Transparent
        && !capture.include_inbound_ports.is_empty()
    {
        intercept(&mut rules, capture, family);
    }
    rules
}

/// The `nat` table: outbound connections, and inbound ones that are redirected.
fn redirect(rules: &mut Ruleset, capture: &CaptureArgs, family: Family) {
    let mut nat = rules.table("nat");
    let to = |port: u16| format!("-p tcp -j REDIRECT --to-ports {port}");
    nat.rule(TO_INBOUND, to(capture.inbound_port));
    nat.rule(TO_OUTBOUND, to(capture.outbound_port));
    for rule in inbound_rules(capture, &[format!("-j {TO_INBOUND}")]) {
        nat.rule(INBOUND, rule);
    }
    for rule in outbound_rules(capture, family) {
        nat.rule(OUTPUT, rule);
    }
    if capture.interception_mode == InterceptionMode::Redirect {
        nat.jump("PREROUTING", INBOUND);
    }
    nat.jump("OUTPUT", OUTPUT);
}

/// The `mangle` table: inbound connections that the proxy accepts in place of the workload.
fn intercept(rules: &mut Ruleset, capture: &CaptureArgs, family: Family) {
    let mut mangle = rules.table("mangle");
    let mark = TRANSPARENT_MARK;
    mangle.rule(DIVERT, format!("-j MARK --set-mark {mark}"));
    mangle.rule(DIVERT, "-j ACCEPT");
    mangle.rule(
        TO_INBOUND,
        format!(
            "! -d {} -p tcp -j TPROXY --tproxy-mark {mark}/0xffffffff --on-port {}",
            family.loopback(),
            capture.inbound_port
        ),
    );
    // The proxy's connection to the workload from the client's address: the workload's answers must find back to the
    // proxy instead of leaving for the client.
    mangle.rule(
        INBOUND,
        format!("-p tcp -m mark --mark {mark} -j CONNMARK --save-mark"),
    );
    mangle.rule(INBOUND, format!("-p tcp -m mark --mark {mark} -j RETURN"));
    mangle.rule(INBOUND, "-i lo -j RETURN");
    let targets = [
        format!("-m conntrack --ctstate RELATED,ESTABLISHED -j {DIVERT}"),
        format!("-j {TO_INBOUND}"),
    ];
    for rule in inbound_rules(capture, &targets) {
        mangle.rule(INBOUND, rule);
    }
    mangle.rule(
        OUTPUT,
        format!("-p tcp -m connmark --mark {mark} -j CONNMARK --restore-mark"),
    );
    mangle.jump("PREROUTING", INBOUND);
    mangle.jump("OUTPUT", OUTPUT);
}

/// What returns, and what goes to `targets` in turn.
fn inbound_rules(capture: &CaptureArgs, targets: &[String]) -> Vec<String> {
    let mut rules = Vec::new();
    let interfaces = capture.exclude_interfaces.iter();
    rules.extend(interfaces.map(|interface| format!("-i {interface} -j RETURN")));
    let own = capture.own_ports().into_iter().chain([DNS]);
    rules.extend(own.map(|port| format!("-p tcp --dport {port} -j RETURN")));
    let excluded = capture.exclude_inbound_ports.listed().iter();
    rules.extend(excluded.map(|ports| format!("-p tcp --dport {ports} -j RETURN")));
    let included = match &capture.include_inbound_ports {
        Selection::All => vec!["-p tcp".to_owned()],
        Selection::Only(ports) => {
            let ports = ports.iter();
            ports
                .map(|ports| format!("-p tcp --dport {ports}"))
                .collect()
        }
    };
    for matched in included {
        rules.extend(targets.iter().map(|target| format!("{matched} {target}")));
    }
    rules
}

fn outbound_rules(capture: &CaptureArgs, family: Family) -> Vec<String> {
    let is_of_family = |network: &&ipnet::IpNet| match family {
        Family::V4 => network.addr().is_ipv4(),
        Family::V6 => network.addr().is_ipv6(),
    };
    let loopback = family.loopback();
    let mut rules = Vec::new();
    let interfaces = capture.exclude_interfaces.iter();
    rules.extend(interfaces.map(|interface| format!("-o {interface} -j RETURN")));
    rules.push(format!("-p tcp --dport {DNS} -j RETURN"));
    let excluded = capture.exclude_outbound_ports.listed().iter();
    rules.extend(excluded.map(|ports| format!("-p tcp --dport {ports} -j RETURN")));
    // from the proxy to the workload
    rules.push(format!("-o lo -s {} -j RETURN", family.inbound_source()));
    if capture.interception_mode == InterceptionMode::Transparent {
        rules.push(format!("-m mark --mark {TRANSPARENT_MARK} -j RETURN"));
    }
    let uids = capture
        .proxy_uids
        .iter()
        .map(|uid| format!("--uid-owner {uid}"));
    let gids = capture
        .gids()
        .iter()
        .map(|gid| format!("--gid-owner {gid}"));
    for owner in uids.chain(gids) {
        rules.push(format!(
            "! -d {loopback} -o lo -p tcp -m owner {owner} -j {INBOUND}"
        ));
        rules.push(format!("-m owner {owner} -j RETURN"));
    }
    let included = &capture.include_outbound_cidrs;
    let networks = included.listed().iter().filter(is_of_family);
    if !networks.clone().any(|network| network.addr().is_loopback()) {
        rules.push("-o lo -j RETURN".to_owned());
    }
    rules.push(format!("-d {loopback} -j RETURN"));
    let excluded = capture.exclude_outbound_cidrs.listed().iter();
    let excluded = excluded.filter(is_of_family);
    rules.extend(excluded.map(|network| format!("-d {network} -j RETURN")));
    let ports = capture.include_outbound_ports.listed().iter();
    rules.extend(ports.map(|ports| format!("-p tcp --dport {ports} -j {TO_OUTBOUND}")));
    match included {
        Selection::All => rules.push(format!("-j {TO_OUTBOUND}")),
        Selection::Only(_) => {
            rules.extend(networks.map(|network| format!("-d {network} -j {TO_OUTBOUND}")));
        }
    }
    rules
}

#[cfg(test)]
mod tests;
