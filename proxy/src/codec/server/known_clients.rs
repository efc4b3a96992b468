//! Addresses of clients, with the protocols they used before: mutual TLS of the mesh or plain text.

use std::cell::RefCell;
use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Duration;

use crate::runtime::clock::Tick;

/// Time that an endpoint's first bytes are held back from a client of unknown protocol: the first message of its TLS
/// may be on the way.
const HELD: Duration = Duration::from_millis(100);

/// The same for a client of an address with clients known for TLS of the mesh, whatever else they speak: a wait costs
/// less than a connection that fails. The first message may have to be retransmitted, which TCP does after 200 ms, then
/// after 400 ms.
const HELD_FOR_MESH: Duration = Duration::from_secs(2);

/// Times until which each protocol of a client address is remembered.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    mesh_tls: Tick,
    plain_text: Tick,
}

/// Protocols of the clients of a worker, on ports that accept both mutual TLS of the mesh and plain text.
#[derive(Debug, Default)]
pub(crate) struct KnownClients(RefCell<HashMap<IpAddr, Known>>);

impl KnownClients {
    /// Maximum remembered addresses. Beyond it, all are forgotten.
    pub(crate) const MAX: usize = 4096;

    /// Time that an address is remembered.
    const TIME: Duration = Duration::from_secs(3600);

    /// Remembers that a client of this address began mutual TLS of the mesh, perhaps after the endpoint had spoken.
    pub(in crate::codec) fn saw_mesh_tls(&self, client: IpAddr, now: Tick) {
        self.note(client, |known| known.mesh_tls = now.after(Self::TIME));
    }

    /// Remembers that a client of this address sent plain text, or let the endpoint speak first: that is plain text as
    /// well, unless its message was lost.
    pub(in crate::codec) fn saw_plain_text(&self, client: IpAddr, now: Tick) {
        self.note(client, |known| known.plain_text = now.after(Self::TIME));
    }

    fn note(&self, client: IpAddr, change: impl FnOnce(&mut Known)) {
        let mut all = self.0.borrow_mut();
        if all.len() >= Self::MAX && !all.contains_key(&client) {
            all.clear();
        }
        change(all.entry(client).or_default());
    }

    /// Returns the time that the endpoint's first bytes are held back from a client of this address.
    pub(in crate::codec) fn held(&self, client: IpAddr, now: Tick) -> Duration {
        let known = self.0.borrow().get(&client).copied().unwrap_or_default();
        match (now < known.mesh_tls, now < known.plain_text) {
            (true, _) => HELD_FOR_MESH,
            (false, true) => Duration::ZERO,
            (false, false) => HELD,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn greeting_is_held_back_by_what_the_address_spoke_before() {
        let (clients, now) = (KnownClients::default(), Tick(7));
        let address = |last| IpAddr::from([192, 0, 2, last]);
        clients.saw_plain_text(address(1), now);
        clients.saw_mesh_tls(address(2), now);
        let held = |last| clients.held(address(last), now);
        assert_eq!(held(0), HELD);
        assert_eq!(held(1), Duration::ZERO);
        assert_eq!(held(2), HELD_FOR_MESH);
        // in either order
        clients.saw_mesh_tls(address(1), now);
        clients.saw_plain_text(address(2), now);
        assert_eq!((held(1), held(2)), (HELD_FOR_MESH, HELD_FOR_MESH));
        let later = now.after(KnownClients::TIME);
        clients.saw_plain_text(address(2), later);
        assert_eq!(clients.held(address(1), later), HELD);
        assert_eq!(clients.held(address(2), later), Duration::ZERO);
    }

    #[test]
    fn number_of_known_addresses_is_bounded() {
        let clients = KnownClients::default();
        for number in 0..3 * KnownClients::MAX as u32 {
            clients.saw_plain_text(IpAddr::from(number.to_be_bytes()), Tick(0));
            assert!(clients.0.borrow().len() <= KnownClients::MAX);
        }
    }
}
