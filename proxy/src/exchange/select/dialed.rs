//! Endpoints at addresses that clients dialed, for clusters without endpoints of their own.

use std::cell::RefCell;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use traffic::cluster::{Dialed, Endpoint};
use traffic::registry::{Address, Registry};

/// Maximum number of addresses that a worker caches; beyond it, the cache is cleared. Connections stay in the pools as
/// long as requests for their address arrive.
pub const DIALED_ENDPOINTS_MAX: usize = 4096;

/// An address, and the scope of the endpoint's state.
type Key = (SocketAddr, Arc<str>);

/// Cache of the endpoints at addresses that clients of a worker dialed. Without it, each request would lock the
/// registry.
pub struct DialedEndpoints {
    registry: Arc<Registry>,
    by_address: RefCell<HashMap<Key, Rc<Endpoint>>>,
}

impl DialedEndpoints {
    /// Creates an empty cache; the state of each endpoint is in the registry.
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
