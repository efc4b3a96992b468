//! Listening sockets opened by another process: a predecessor that hands them over, or the service manager.
//!
//! Queued connections survive a process: while another process has the socket open, closing it loses none.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::UnixListener;

use super::socket::Listening;
use crate::snapshot::ListenAddress;

/// Other process that has a socket open, so that closing it here keeps its queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeptBy {
    /// Process that hands its sockets over, until this one is ready.
    Predecessor,
    /// Service manager, which passes the socket to the next process.
    ServiceManager,
    /// Process that has taken over.
    Successor,
}

/// A socket opened by another process.
#[derive(Debug)]
pub struct InheritedSocket {
    /// Socket.
    pub socket: Listening,
    /// Other process that has it open.
    pub kept_by: KeptBy,
}

/// Inherited sockets that no worker has taken yet, by address.
#[derive(Debug, Default)]
pub(super) struct Inherited {
    groups: BTreeMap<ListenAddress, Group>,
    workers: usize,
}

/// Sockets of one address.
#[derive(Debug)]
struct Group {
    sockets: Vec<Option<Listening>>,
    /// Duplicate for workers beyond the number of sockets: they share the queue of another worker.
    shared: Listening,
    kept_by: KeptBy,
}

impl Inherited {
    /// Returns the sockets for this number of workers.
    ///
    /// # Errors
    ///
    /// If a socket has no address, or the process has no file descriptor left.
    pub(super) fn new(sockets: Vec<InheritedSocket>, workers: usize) -> io::Result<Self> {
        let mut groups = BTreeMap::<_, Group>::new();
        for InheritedSocket { socket, kept_by } in sockets {
            let address = address(&socket)?;
            // a service manager leaves sockets in blocking mode
            match &socket {
                Listening::Tcp(tcp) => tcp.set_nonblocking(true)?,
                Listening::Unix(unix) => unix.set_nonblocking(true)?,
            }
            match groups.get_mut(&address) {
                Some(group) => group.sockets.push(Some(socket)),
                None => {
                    let group = Group {
                        shared: socket.share()?,
                        sockets: vec![Some(socket)],
                        kept_by,
                    };
                    groups.insert(address, group);
                }
            }
        }
        Ok(Self { groups, workers })
    }

    /// Takes the sockets of a worker on an address; each socket belongs to one worker. `None` if the address was not
    /// inherited.
    pub(super) fn take(&mut self, worker: usize, wanted: &ListenAddress) -> Option<Taken> {
        let address = self.find(wanted)?;
        let group = self.groups.get_mut(&address)?;
        let sockets = group.sockets.iter_mut().enumerate();
        let own = sockets.filter(|(number, _)| number % self.workers.max(1) == worker);
        let mut sockets: Vec<_> = own.filter_map(|(_, socket)| socket.take()).collect();
        if sockets.is_empty() {
            sockets.push(group.shared.share().ok()?);
        }
        let kept_by = group.kept_by;
        Some(Taken {
            address,
            sockets,
            kept_by,
        })
    }

    /// Takes a Unix socket, which all workers share.
    pub(super) fn take_unix(&mut self, wanted: &ListenAddress) -> Option<(UnixListener, KeptBy)> {
        let group = self.groups.get_mut(wanted)?;
        match group.sockets.pop()?? {
            Listening::Unix(unix) => Some((unix, group.kept_by)),
            Listening::Tcp(_) => None,
        }
    }

    /// Returns the inherited address for a wanted one: `0.0.0.0` for `[::]` on a system without IPv6.
    fn find(&self, wanted: &ListenAddress) -> Option<ListenAddress> {
        if self.groups.contains_key(wanted) {
            return Some(wanted.clone());
        }
        let ip = wanted.ip().filter(|at| at.ip().is_unspecified())?;
        let at = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), ip.port());
        let at = ListenAddress::Ip(at);
        self.groups.contains_key(&at).then_some(at)
    }

    /// Returns the addresses that no listener has taken.
    pub(super) fn unused(&self) -> Vec<&ListenAddress> {
        let groups = self.groups.iter();
        let unused = groups.filter(|(_, group)| {
            !group.sockets.is_empty() && group.sockets.iter().all(Option::is_some)
        });
        unused.map(|(address, _)| address).collect()
    }
}

/// Sockets of one worker.
#[derive(Debug)]
pub(super) struct Taken {
    /// Address of the sockets.
    pub(super) address: ListenAddress,
    /// Sockets, at least one.
    pub(super) sockets: Vec<Listening>,
    /// Other process that has them open.
    pub(super) kept_by: KeptBy,
}

/// Returns the address of a listening socket.
///
/// # Errors
///
/// If the kernel does not return it, or the socket has no name.
pub fn address(socket: &Listening) -> io::Result<ListenAddress> {
    let unix = match socket {
        Listening::Tcp(tcp) => return Ok(ListenAddress::Ip(tcp.local_addr()?)),
        Listening::Unix(unix) => unix.local_addr()?,
    };
    let path = unix.as_pathname().and_then(|path| path.to_str());
    let name = || std::str::from_utf8(unix.as_abstract_name()?).ok();
    let text = path
        .map(str::to_owned)
        .or_else(|| Some(format!("@{}", name()?)));
    let text = text.ok_or_else(|| io::Error::other("a Unix socket without a name"))?;
    Ok(ListenAddress::Unix(text.into()))
}

#[cfg(test)]
mod tests {
    use super::super::socket::listen;
    use super::*;

    fn sockets(count: usize) -> (SocketAddr, Vec<InheritedSocket>) {
        let first = listen(([127, 0, 0, 1], 0).into(), 16).unwrap();
        let at = first.local_addr().unwrap();
        let more = (1..count).map(|_| listen(at, 16).unwrap());
        let all = std::iter::once(first).chain(more);
        let inherited = all
            .collect::<Vec<_>>()
            .into_iter()
            .map(|socket| InheritedSocket {
                socket: Listening::Tcp(socket),
                kept_by: KeptBy::Predecessor,
            });
        (at, inherited.collect())
    }

    #[test]
    fn each_socket_is_given_to_one_worker() {
        for (count, workers, expected) in [(4, 2, [2, 2]), (3, 2, [2, 1]), (1, 2, [1, 1])] {
            let (at, sockets) = sockets(count);
            let mut inherited = Inherited::new(sockets, workers).unwrap();
            assert_eq!(inherited.unused(), [&ListenAddress::Ip(at)]);
            let wanted = ListenAddress::Ip(at);
            let taken = [0, 1].map(|worker| inherited.take(worker, &wanted).unwrap().sockets.len());
            assert_eq!(taken, expected, "{count} sockets");
            assert!(inherited.unused().is_empty());
        }
    }

    #[test]
    fn wildcard_is_found_where_it_was_opened_without_ipv6() {
        let socket = listen((Ipv4Addr::UNSPECIFIED, 0).into(), 16).unwrap();
        let port = socket.local_addr().unwrap().port();
        let socket = InheritedSocket {
            socket: Listening::Tcp(socket),
            kept_by: KeptBy::ServiceManager,
        };
        let mut inherited = Inherited::new(vec![socket], 1).unwrap();
        let other = ListenAddress::Ip(([127, 0, 0, 1], port).into());
        assert!(inherited.take(0, &other).is_none());
        let wildcard = SocketAddr::from((std::net::Ipv6Addr::UNSPECIFIED, port));
        let taken = inherited.take(0, &ListenAddress::Ip(wildcard)).unwrap();
        assert_eq!(taken.kept_by, KeptBy::ServiceManager);
    }
}
