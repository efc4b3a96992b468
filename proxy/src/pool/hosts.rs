//! Request hosts used as TLS server names, deduplicated and limited in number.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use crate::tls::client::server_name;
use crate::upstream::Host;

/// Maximum hosts per worker with idle TLS connections, since clients choose them. One more evicts the host that was not
/// used for longest.
pub const TLS_HOSTS_MAX: usize = 1_024;

/// Hosts of one worker.
#[derive(Debug, Default)]
pub(super) struct Hosts {
    known: RefCell<HashMap<Box<str>, Rc<Host>>>,
    /// Serial of the newest host.
    serial: Cell<u64>,
    /// Counter of uses.
    clock: Cell<u64>,
}

impl Hosts {
    /// Returns the host with this name, and the host that was evicted for it, if any.
    pub(super) fn find(&self, text: &str) -> (Rc<Host>, Option<Rc<Host>>) {
        let now = self.clock.get() + 1;
        self.clock.set(now);
        let mut known = self.known.borrow_mut();
        if let Some(host) = known.get(text) {
            host.used.set(now);
            return (Rc::clone(host), None);
        }
        let gone = (known.len() >= TLS_HOSTS_MAX).then(|| {
            let oldest = known.iter().min_by_key(|(_, host)| host.used.get());
            let name = oldest.map(|(name, _)| name.clone())?;
            known.remove(&name)
        });
        self.serial.set(self.serial.get() + 1);
        let host = Rc::new(Host {
            serial: self.serial.get(),
            name: server_name(text),
            used: Cell::new(now),
        });
        known.insert(text.into(), Rc::clone(&host));
        (host, gone.flatten())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cached_host_is_reused_until_evicted() {
        let hosts = Hosts::default();
        let (first, _) = hosts.find("a.example");
        for number in 1..TLS_HOSTS_MAX {
            assert!(hosts.find(&format!("{number}.example")).1.is_none());
        }
        let (again, gone) = hosts.find("a.example");
        assert_eq!((again.serial, gone.is_none()), (first.serial, true));
        let (_, gone) = hosts.find("one-more.example");
        let second = hosts.find("1.example").0;
        assert!(gone.is_some_and(|gone| gone.serial == first.serial + 1));
        assert!(second.serial > TLS_HOSTS_MAX as u64, "it is another now");
        assert_eq!(hosts.find("a.example").0.serial, first.serial);
        assert_eq!(hosts.known.borrow().len(), TLS_HOSTS_MAX);
    }

    #[test]
    fn invalid_host_has_no_server_name() {
        let hosts = Hosts::default();
        for (text, known) in [
            ("a.example", true),
            ("10.1.2.3", true),
            ("a b", false),
            ("", false),
        ] {
            assert_eq!(hosts.find(text).0.name.is_some(), known, "{text}");
        }
    }
}
