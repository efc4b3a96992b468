//! Addresses of clients, with what they spoke before: the mesh's TLS or plain text.

use std::cell::RefCell;
use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Duration;

use crate::runtime::clock::Tick;

/// Time that the first bytes of an endpoint are held back from a client of which nothing is known, for the first message of
/// the mesh's TLS that may be on its way.
const HELD: Duration = Duration::from_millis(100);

/// The same for a client of which only the mesh's TLS is known. Its first message may have to be sent again, which TCP does
/// after 200 ms, then after 400 ms.
const HELD_FOR_MESH: Duration = Duration::from_secs(2);

/// Times until which it counts what clients of one address spoke.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    mesh_tls: Tick,
    plain_text: Tick,
    /// The same as `plain_text`, but only guessed: a client let the endpoint speak first.
    silence: Tick,
}

/// Protocols of the clients of a worker, on ports that take both the mesh's TLS and plain text.
#[derive(Debug, Default)]
pub struct KnownClients(RefCell<HashMap<IpAddr, Known>>);

impl KnownClients {
    /// Most addresses that are remembered. Beyond it, all are forgotten.
    pub const MAX: usize = 4096;

    /// Time that an address is remembered.
    const TIME: Duration = Duration::from_secs(3600);

    /// Notes that a client of this address began the mesh's TLS.
    pub(in crate::codec) fn saw_mesh_tls(&self, client: IpAddr, now: Tick) {
        self.note(client, |known| known.mesh_tls = now.after(Self::TIME));
    }

    /// Notes that a client of this address began the mesh's TLS after the endpoint had spoken: its silence was no plain text.
    pub(in crate::codec) fn saw_late_mesh_tls(&self, client: IpAddr, now: Tick) {
        self.saw_mesh_tls(client, now);
        self.note(client, |known| known.silence = Tick::default());
    }

    /// Notes that a client of this address spoke plain text.
    pub(in crate::codec) fn saw_plain_text(&self, client: IpAddr, now: Tick) {
        self.note(client, |known| known.plain_text = now.after(Self::TIME));
    }

    /// Notes that a client of this address let the endpoint speak first: plain text, unless its message was lost.
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

    /// Time that the first bytes of an endpoint are held back from a client of this address.
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
        // a silence that was the mesh's TLS is none of plain text, unless other clients of the address spoke that
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
