//! One rule, and how iptables writes it.

use std::fmt;

use ipnet::IpNet;

use super::capture::PortRange;

/// A table of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Table {
    /// Marks packets, and hands them to sockets.
    Mangle,
    /// Redirects connections.
    Nat,
}

impl Table {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Mangle => "mangle",
            Self::Nat => "nat",
        }
    }
}

/// Where the kernel asks for rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hook {
    /// Packets that come in.
    Prerouting,
    /// Packets of this machine.
    Output,
}

impl Hook {
    /// The chain that iptables has there.
    pub fn name(self) -> &'static str {
        match self {
            Self::Prerouting => "PREROUTING",
            Self::Output => "OUTPUT",
        }
    }
}

/// What a packet must be like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Match {
    /// TCP.
    Tcp,
    /// TCP to one of these ports.
    Ports(PortRange),
    /// It came through this interface.
    From(String),
    /// It leaves through this interface.
    Into(String),
    /// Its destination is in this network.
    Destination(IpNet),
    /// Its destination is not in this network.
    NotDestination(IpNet),
    /// Its source is in this network.
    Source(IpNet),
    /// A process of this user sends it.
    User(u32),
    /// A process of this group sends it.
    Group(u32),
    /// It has this mark.
    Mark(u32),
    /// Its connection has this mark.
    ConnectionMark(u32),
    /// It belongs to a connection that is there already.
    Established,
}

/// What happens to a packet that matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// The chain before goes on.
    Return,
    /// No further rule of this table.
    Accept,
    /// This chain decides.
    Jump(&'static str),
    /// It goes to this local port.
    Redirect(u16),
    /// The socket that listens on this port gets it, as its destination; it gets this mark.
    Intercept {
        /// Port of the listening socket.
        port: u16,
        /// Mark of the packet.
        mark: u32,
    },
    /// It gets this mark.
    SetMark(u32),
    /// Its connection gets its mark.
    SaveMark,
    /// It gets the mark of its connection.
    RestoreMark,
}

/// Conditions, all of which must hold, and a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The conditions.
    pub matches: Vec<Match>,
    /// The target.
    pub target: Target,
}

impl Rule {
    /// With these conditions.
    pub fn new(matches: impl IntoIterator<Item = Match>, target: Target) -> Self {
        Self {
            matches: matches.into_iter().collect(),
            target,
        }
    }
}

/// The rules of one table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableRules {
    /// Which table.
    pub table: Table,
    /// Rules, each with its chain.
    pub rules: Vec<(&'static str, Rule)>,
    /// Chains that TCP goes through.
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

/// As `iptables` takes it, without the chain.
impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for matched in &self.matches {
            write!(f, "{matched} ")?;
        }
        self.target.fmt(f)
    }
}
