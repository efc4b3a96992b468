//! Listeners of one port that exclude each other.

use super::listeners::ServedListener;
use crate::resource::gateway_api::{Listener, ListenerProtocol};

/// Conflict of two listeners of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Conflict {
    /// They have the same host.
    Hostname,
    /// Their protocols cannot share a port.
    Protocol,
}

/// Protocols that can share a port.
#[derive(PartialEq, Eq)]
enum Sharing {
    Http,
    /// TLS, by server name.
    Tls,
    Nothing,
}

fn sharing(listener: &Listener) -> Sharing {
    match listener.protocol {
        ListenerProtocol::Http => Sharing::Http,
        ListenerProtocol::Https(_) | ListenerProtocol::Tls(_) => Sharing::Tls,
        ListenerProtocol::Other(_) | ListenerProtocol::Tcp | ListenerProtocol::Udp => {
            Sharing::Nothing
        }
    }
}

fn conflict(one: &Listener, other: &Listener) -> Option<Conflict> {
    if one.port != other.port {
        return None;
    }
    match (sharing(one), sharing(other)) {
        (Sharing::Nothing, _) | (_, Sharing::Nothing) => Some(Conflict::Protocol),
        (one, other) if one != other => Some(Conflict::Protocol),
        _ => (one.hostname == other.hostname).then_some(Conflict::Hostname),
    }
}

/// Returns the conflicts of the listeners of one object, by position: with those of earlier objects, which keep their
/// port, or with each other, in which case nobody keeps it. Each has the listener on the other side.
pub(super) fn conflicts<'l, 'a>(
    earlier: &[&'l ServedListener<'a>],
    own: &[&'l ServedListener<'a>],
) -> Vec<Option<(Conflict, &'l ServedListener<'a>)>> {
    let find = |one: &ServedListener<'_>, others: &[&'l ServedListener<'a>]| {
        let mut others = others.iter();
        others.find_map(|other| Some((conflict(one.listener, other.listener)?, *other)))
    };
    let lost: Vec<_> = own.iter().map(|one| find(one, earlier)).collect();
    let left: Vec<_> = own
        .iter()
        .zip(&lost)
        .filter(|(_, lost)| lost.is_none())
        .collect();
    let left: Vec<_> = left.into_iter().map(|(one, _)| *one).collect();
    let own = own.iter().zip(lost);
    own.map(|(one, lost)| {
        lost.or_else(|| {
            let others = left.iter().filter(|other| !std::ptr::eq(**other, *one));
            find(one, &others.copied().collect::<Vec<_>>())
        })
    })
    .collect()
}
