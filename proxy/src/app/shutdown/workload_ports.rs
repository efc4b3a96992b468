//! Listening ports of a sidecar's workload, from the kernel's list of sockets of the network namespace.
//!
//! A workload that shuts down closes its ports first, and nothing that reaches the sidecar after that can be served.
//! The list is read instead of making a connection, since a workload may log connections that send nothing.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufRead, BufReader};

use crate::snapshot::{Direction, Snapshot};

/// Sockets of the network namespace of this process, by address family; sockets that listen come first.
const LISTS: [&str; 2] = ["/proc/self/net/tcp", "/proc/self/net/tcp6"];

/// State of a socket that listens (`TCP_LISTEN`).
const LISTEN: &str = "0A";

/// Watched ports of the workload; the workload is gone once all are closed. `None` if its end cannot be observed.
#[derive(Debug)]
pub(super) struct WorkloadPorts(Option<BTreeSet<u16>>);

impl WorkloadPorts {
    /// Finds the configured ports of the workload that listen now.
    pub(super) fn find(snapshot: &Snapshot) -> Self {
        Self(watched(&inbound_ports(snapshot), &listening()))
    }

    /// Returns whether the end of the workload can be observed.
    pub(super) fn are_known(&self) -> bool {
        self.0.is_some()
    }

    /// Returns whether the workload has ports and none of them listens any more.
    pub(super) fn are_gone(&self) -> bool {
        let ports = self.0.as_ref();
        ports.is_some_and(|ports| ports.is_disjoint(&listening()))
    }
}

/// Returns the workload's ports that listen: an empty set if all of them are closed already. `None` if the workload has
/// no port, or if `listening` is empty: the proxy's own ports would be in it, so the kernel has no list.
fn watched(ports: &BTreeSet<u16>, listening: &BTreeSet<u16>) -> Option<BTreeSet<u16>> {
    let is_known = !ports.is_empty() && !listening.is_empty();
    is_known.then(|| ports.intersection(listening).copied().collect())
}

/// Returns the destination ports of inbound connections: the dialed port, or the endpoint of a listener that has one. Empty if one
/// of them is a Unix socket, which is in no list.
fn inbound_ports(snapshot: &Snapshot) -> BTreeSet<u16> {
    let inbound = (snapshot.listeners.values())
        .filter(|one| one.direction == Direction::Inbound && !one.key.has_socket());
    let dialed = inbound.map(|listener| Some(listener.key.address.port()));
    let clusters = snapshot.clusters.iter().flatten();
    let inbound = clusters.filter(|cluster| cluster.name().starts_with("inbound|"));
    let endpoints = inbound.flat_map(|cluster| cluster.endpoints().iter());
    let endpoints = endpoints.map(|endpoint| Some(endpoint.address.socket()?.port()));
    let ports: Option<BTreeSet<u16>> = dialed.chain(endpoints).collect();
    let mut ports = ports.unwrap_or_default();
    // 0 belongs to the listener for all ports that no service has
    ports.remove(&0);
    ports
}

/// Returns the listening TCP ports of this network namespace; empty if the kernel has no list.
fn listening() -> BTreeSet<u16> {
    let lists = LISTS.iter().filter_map(|path| File::open(path).ok());
    lists.flat_map(|list| ports(BufReader::new(list))).collect()
}

/// Parses the ports of listening sockets: local addresses of the lines before the first socket in another state.
fn ports(list: impl BufRead) -> BTreeSet<u16> {
    let lines = list.lines().map_while(Result::ok).skip(1);
    lines.map_while(|line| port(&line)).collect()
}

fn port(line: &str) -> Option<u16> {
    let mut fields = line.split_ascii_whitespace().skip(1);
    let (_, port) = fields.next()?.rsplit_once(':')?;
    let state = fields.nth(1)?;
    u16::from_str_radix(port, 16)
        .ok()
        .filter(|_| state == LISTEN)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    impl<const N: usize> From<[u16; N]> for WorkloadPorts {
        fn from(ports: [u16; N]) -> Self {
            Self(Some(ports.into()))
        }
    }

    #[test]
    fn ports_are_those_of_sockets_that_listen() {
        let list = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when\n   \
            0: 00000000:2378 00000000:0000 0A 00000000:00000000 00:00000000 00000000\n   \
            1: 00000000000000000000000001000000:0050 00000000000000000000000000000000:0000 0A 0:0 0:0 0\n   \
            2: 020200C0:865E 507100CB:01BB 01 00000000:00000000 00:00000000 00000000\n";
        assert_eq!(ports(list.as_bytes()), BTreeSet::from([9080, 80]));
        assert_eq!(ports("".as_bytes()), BTreeSet::new());
    }

    #[test]
    fn ports_are_gone_once_all_of_them_are_closed() {
        let sockets = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
        let ports = sockets
            .each_ref()
            .map(|one| one.local_addr().unwrap().port());
        let found = WorkloadPorts::from(ports);
        assert!(!found.are_gone());
        let [first, second] = sockets;
        drop(first);
        assert!(!found.are_gone());
        drop(second);
        assert!(found.are_gone());
    }

    #[test]
    fn workload_without_ports_is_not_gone_and_one_that_was_quicker_is() {
        let set = |ports: &[u16]| ports.iter().copied().collect::<BTreeSet<u16>>();
        for (ports, listening, expected) in [
            (&[80, 81][..], &[15_001, 80][..], Some(&[80][..])),
            (&[81], &[15_001, 80], Some(&[])),
            (&[], &[15_001, 80], None),
            (&[80], &[], None),
        ] {
            assert_eq!(watched(&set(ports), &set(listening)), expected.map(set));
        }
        assert!(WorkloadPorts::from([]).are_gone());
        assert!(!WorkloadPorts(None).are_gone());
    }
}
