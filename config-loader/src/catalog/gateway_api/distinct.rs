//! Listeners of one port that exclude each other.

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

/// Returns the conflict of two listeners.
pub(super) fn conflict(one: &Listener, other: &Listener) -> Option<Conflict> {
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
/// port, or with each other, in which case none of them keeps it. Each has the position of the listener on the other side, in
/// `earlier` followed by `own`.
pub(super) fn conflicts(
    earlier: &[&Listener],
    own: &[&Listener],
) -> Vec<Option<(Conflict, usize)>> {
    let with_earlier = |one: &Listener| {
        let mut earlier = earlier.iter().enumerate();
        earlier.find_map(|(position, other)| Some((conflict(one, other)?, position)))
    };
    let lost: Vec<_> = own.iter().map(|one| with_earlier(one)).collect();
    let with_own = |position: usize, one: &Listener| {
        let mut others = own.iter().enumerate().zip(&lost);
        others.find_map(|((other, listener), lost)| {
            let counts = other != position && lost.is_none();
            let conflict = counts.then(|| conflict(one, listener))??;
            Some((conflict, earlier.len() + other))
        })
    };
    let own = own.iter().enumerate().zip(&lost);
    own.map(|((position, one), lost)| lost.or_else(|| with_own(position, one)))
        .collect()
}
