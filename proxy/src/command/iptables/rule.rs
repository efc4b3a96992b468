//! Rules of the kernel in the syntax of iptables.

use std::fmt;

use ipnet::IpNet;

use super::capture::PortRange;

/// Table of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Table {
    /// Table that marks packets and hands them to sockets.
    Mangle,
    /// Table that redirects connections.
    Nat,
}

impl Table {
    /// Name of the table.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Mangle => "mangle",
            Self::Nat => "nat",
        }
    }
}

/// Hook at which the kernel evaluates rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hook {
    /// Incoming packets.
    Prerouting,
    /// Packets that this machine sends.
    Output,
}

impl Hook {
    /// Name of the built-in chain of the hook.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Prerouting => "PREROUTING",
            Self::Output => "OUTPUT",
        }
    }
}

/// Condition on a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Match {
    /// TCP.
    Tcp,
    /// TCP with a destination port in this range.
    Ports(PortRange),
    /// Packet that arrives through this interface.
    From(String),
    /// Packet that leaves through this interface.
    Into(String),
    /// Packet to this network.
    Destination(IpNet),
    /// Packet to any other network than this.
    NotDestination(IpNet),
    /// Packet from this network.
    Source(IpNet),
    /// Packet sent by a process of this user.
    User(u32),
    /// Packet sent by a process of this group.
    Group(u32),
    /// Packet with this mark.
    Mark(u32),
    /// Packet of a connection with this mark.
    ConnectionMark(u32),
    /// Packet of an established connection.
    Established,
}

/// Action on a matching packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// Return to the calling chain.
    Return,
    /// Skip the remaining rules of the table.
    Accept,
    /// Continue in this chain.
    Jump(&'static str),
    /// Redirect to this local port.
    Redirect(u16),
    /// Deliver, with its destination unchanged, to the socket that listens on this port, and set the mark.
    Intercept {
        /// Port of the listening socket.
        port: u16,
        /// Mark of the packet.
        mark: u32,
    },
    /// Set the mark of the packet.
    SetMark(u32),
    /// Copy the mark of the packet to its connection.
    SaveMark,
    /// Copy the mark of the connection to the packet.
    RestoreMark,
}

/// Rule: conditions, all of which must match, and a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rule {
    /// Conditions.
    pub matches: Vec<Match>,
    /// Action if all conditions match.
    pub target: Target,
}

impl Rule {
    /// Makes a rule of these conditions and this target.
    pub(crate) fn new(matches: impl IntoIterator<Item = Match>, target: Target) -> Self {
        Self {
            matches: matches.into_iter().collect(),
            target,
        }
    }
}

/// Rules of one table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TableRules {
    /// The table.
    pub table: Table,
    /// Rules, each with the name of its chain.
    pub rules: Vec<(&'static str, Rule)>,
    /// Chains that TCP packets at each hook jump to.
    pub jumps: Vec<(Hook, &'static str)>,
}

impl fmt::Display for Match {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp => f.write_str("-p tcp"),
            Self::Ports(ports) => write!(f, "-p tcp --dport {ports}"),
            Self::From(interface) => write!(f, "-i {interface}"),
            Self::Into(interface) => write!(f, "-o {interface}"),
            Self::Destination(network) => write!(f, "-d {network}"),
            Self::NotDestination(network) => write!(f, "! -d {network}"),
            Self::Source(network) => write!(f, "-s {network}"),
            Self::User(id) => write!(f, "-m owner --uid-owner {id}"),
            Self::Group(id) => write!(f, "-m owner --gid-owner {id}"),
            Self::Mark(mark) => write!(f, "-m mark --mark {mark}"),
            Self::ConnectionMark(mark) => write!(f, "-m connmark --mark {mark}"),
            Self::Established => f.write_str("-m conntrack --ctstate RELATED,ESTABLISHED"),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Return => f.write_str("-j RETURN"),
            Self::Accept => f.write_str("-j ACCEPT"),
            Self::Jump(chain) => write!(f, "-j {chain}"),
            Self::Redirect(port) => write!(f, "-j REDIRECT --to-ports {port}"),
            Self::Intercept { port, mark } => {
                write!(
                    f,
                    "-j TPROXY --tproxy-mark {mark}/0xffffffff --on-port {port}"
                )
            }
            Self::SetMark(mark) => write!(f, "-j MARK --set-mark {mark}"),
            Self::SaveMark => f.write_str("-j CONNMARK --save-mark"),
            Self::RestoreMark => f.write_str("-j CONNMARK --restore-mark"),
        }
    }
}

/// Writes the rule in the syntax of `iptables`, without the chain.
impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for matched in &self.matches {
            write!(f, "{matched} ")?;
        }
        self.target.fmt(f)
    }
}
