//! Addresses of clients, with the protocols they used before: mutual TLS of the mesh or plain text.

use std::cell::RefCell;
use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Duration;

use crate::runtime::clock::Tick;

/// Time that an endpoint's first bytes are held back from a client of unknown protocol: the first message of its TLS
/// may be on the way.
const HELD: Duration = Duration::from_millis(100);

/// The same for a client known only for TLS of the mesh. Its first message may have to be retransmitted, which TCP does
/// after 200 ms, then after 400 ms.
const HELD_FOR_MESH: Duration = Duration::from_secs(2);

/// Times until which each protocol of a client address is remembered.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    mesh_tls: Tick,
    plain_text: Tick,
    /// Like `plain_text`, but inferred: a client let the endpoint speak first.
    silence: Tick,
}

/// Protocols of the clients of a worker, on ports that accept both mutual TLS of the mesh and plain text.
#[derive(Debug, Default)]
pub struct KnownClients(RefCell<HashMap<IpAddr, Known>>);

impl KnownClients {
    /// Maximum remembered addresses. Beyond it, all are forgotten.
    pub const MAX: usize = 4096;

    /// Time that an address is remembered.
    const TIME: Duration = Duration::from_secs(3600);

    /// Remembers that a client of this address began mutual TLS of the mesh.
    pub(in crate::codec) fn saw_mesh_tls(&self, client: IpAddr, now: Tick) {
        self.note(client, |known| known.mesh_tls = now.after(Self::TIME));
    }

    /// Remembers that a client of this address began TLS of the mesh after the endpoint had spoken: its silence did not
    /// mean plain text.
    pub(in crate::codec) fn saw_late_mesh_tls(&self, client: IpAddr, now: Tick) {
        self.saw_mesh_tls(client, now);
        self.note(client, |known| known.silence = Tick::default());
    }

    /// Remembers that a client of this address sent plain text.
    pub(in crate::codec) fn saw_plain_text(&self, client: IpAddr, now: Tick) {
        self.note(client, |known| known.plain_text = now.after(Self::TIME));
    }

    /// Remembers that a client of this address let the endpoint speak first: plain text, unless its message was lost.
    pub(in crate::codec) fn saw_silence(&self, client: IpAddr, now: Tick) {
        self.note(client, |known| {
            if known.mesh_tls <= now {
                known.silence = now.after(Self::TIME);
            }
        });
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
        let plain_text = known.plain_text.max(known.silence);
        match (now < known.mesh_tls, now < plain_text) {
            (false, true) => Duration::ZERO,
            (true, false) => HELD_FOR_MESH,
            _ => HELD,
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
        clients.saw_silence(address(2), now);
        clients.saw_silence(address(3), now);
        clients.saw_mesh_tls(address(4), now);
        clients.saw_plain_text(address(4), now);
        let held = |last| clients.held(address(last), now);
        assert_eq!(held(0), HELD);
        assert_eq!(held(1), Duration::ZERO);
        assert_eq!(held(2), HELD_FOR_MESH);
        assert_eq!(held(3), Duration::ZERO);
        assert_eq!(held(4), HELD);
        // a silence that turned out to be TLS of the mesh means no plain text, unless other clients of the address sent
        // some
        clients.saw_late_mesh_tls(address(3), now);
        assert_eq!(held(3), HELD_FOR_MESH);
        clients.saw_late_mesh_tls(address(1), now);
        assert_eq!(held(1), HELD);
        let later = now.after(KnownClients::TIME);
        assert_eq!(clients.held(address(1), later), HELD);
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
