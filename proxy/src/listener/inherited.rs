//! Listening sockets that another process has opened: a predecessor that hands them over, or the service manager.
//!
//! Their queues outlive a process: as long as another process has a socket open as well, closing it loses no connection.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::UnixListener;

use super::socket::Listening;
use crate::snapshot::ListenAddress;

/// Who else has a socket open, so that its queue is left alone when it is closed here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeptBy {
    /// The process that hands its sockets over, until this one is ready.
    Predecessor,
    /// The service manager, which gives it to the next process.
    ServiceManager,
    /// The process that has taken over.
    Successor,
}

/// A socket that another process has opened.
#[derive(Debug)]
pub struct InheritedSocket {
    /// The socket.
    pub socket: Listening,
    /// Who else has it open.
    pub kept_by: KeptBy,
}

/// The sockets that have not been given to workers yet, by address.
#[derive(Debug, Default)]
pub(super) struct Inherited {
    groups: BTreeMap<ListenAddress, Group>,
    workers: usize,
}

/// The sockets of one address.
#[derive(Debug)]
struct Group {
    sockets: Vec<Option<Listening>>,
    /// For workers beyond the number of sockets: they accept from the queue of another worker.
    shared: Listening,
    kept_by: KeptBy,
}

impl Inherited {
    /// Sockets for this number of workers.
    ///
    /// # Errors
    ///
    /// When a socket has no address, or the process no file descriptor left.
    pub(super) fn new(sockets: Vec<InheritedSocket>, workers: usize) -> io::Result<Self> {
        let mut groups = BTreeMap::<_, Group>::new();
        for InheritedSocket { socket, kept_by } in sockets {
            let address = address(&socket)?;
            // a service manager leaves them blocking
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

    /// The sockets of a worker on an address; every socket belongs to one worker. None if no process has opened the
    /// address.
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

    /// A Unix socket, which all workers share.
    pub(super) fn take_unix(&mut self, wanted: &ListenAddress) -> Option<(UnixListener, KeptBy)> {
        let group = self.groups.get_mut(wanted)?;
        match group.sockets.pop()?? {
            Listening::Unix(unix) => Some((unix, group.kept_by)),
            Listening::Tcp(_) => None,
        }
    }

    /// Where the wanted address was opened: `[::]` is `0.0.0.0` on a system without IPv6.
    fn find(&self, wanted: &ListenAddress) -> Option<ListenAddress> {
        if self.groups.contains_key(wanted) {
            return Some(wanted.clone());
        }
        let ip = wanted.ip().filter(|at| at.ip().is_unspecified())?;
        let at = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), ip.port());
        let at = ListenAddress::Ip(at);
        self.groups.contains_key(&at).then_some(at)
    }

    /// The addresses that no listener has taken.
    pub(super) fn unused(&self) -> Vec<&ListenAddress> {
        let groups = self.groups.iter();
        let unused = groups.filter(|(_, group)| {
            !group.sockets.is_empty() && group.sockets.iter().all(Option::is_some)
        });
        unused.map(|(address, _)| address).collect()
    }
}

/// What a worker gets.
#[derive(Debug)]
pub(super) struct Taken {
    /// The address of the sockets.
    pub(super) address: ListenAddress,
    /// At least one.
    pub(super) sockets: Vec<Listening>,
    /// Who else has them open.
    pub(super) kept_by: KeptBy,
}

/// Where a socket listens.
///
/// # Errors
///
/// When the kernel cannot tell, or the socket has no name.
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
