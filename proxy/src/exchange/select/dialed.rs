//! Addresses that clients dialed, as endpoints of clusters that have none of their own.

use std::cell::RefCell;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use crate::cluster::{Dialed, Endpoint};
use crate::registry::{Address, Registry};

/// Most addresses that a worker remembers. Beyond it, it forgets all of them; connections stay in the pools as long as
/// requests for their address come.
pub const DIALED_ENDPOINTS_MAX: usize = 4096;

/// An address, and the scope of the state of such endpoints.
type Key = (SocketAddr, Arc<str>);

/// Addresses that clients of a worker dialed, each with what is known of it as an endpoint. The registry would have to be
/// locked for each request.
pub struct DialedEndpoints {
    registry: Arc<Registry>,
    by_address: RefCell<HashMap<Key, Rc<Endpoint>>>,
}

impl DialedEndpoints {
    /// Remembers none yet; the registry has the state of each.
    pub fn new(registry: Arc<Registry>) -> Self {
        Self {
            registry,
            by_address: RefCell::default(),
        }
    }

    /// The endpoint at this address.
    pub fn endpoint(&self, dialed: &Dialed, address: SocketAddr) -> Rc<Endpoint> {
        let address = dialed.address(address);
        let mut by_address = self.by_address.borrow_mut();
        let key = (address, Arc::clone(&dialed.common.scope));
        if let Some(known) = by_address.get(&key)
            && Arc::ptr_eq(&known.common, &dialed.common)
        {
            return Rc::clone(known);
        }
        if by_address.len() >= DIALED_ENDPOINTS_MAX {
            by_address.clear();
        }
        let address = Address::Ip(address);
        let state = self.registry.endpoint(&dialed.common.scope, &address);
        let endpoint = Rc::new(Endpoint {
            address,
            alternates: None,
            weight: 1,
            common: Arc::clone(&dialed.common),
            state,
        });
        by_address.insert(key, Rc::clone(&endpoint));
        endpoint
    }
}
