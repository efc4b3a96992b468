//! IP addresses of a pod.

use std::net::IpAddr;
use std::ops::Deref;
use std::slice;

/// IP addresses of a pod. The common case of one address needs no allocation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Addresses {
    /// Single address.
    One(IpAddr),
    /// Zero or several addresses, the primary one first.
    Other(Box<[IpAddr]>),
}

impl Default for Addresses {
    fn default() -> Addresses {
        Addresses::Other(Box::default())
    }
}

impl FromIterator<IpAddr> for Addresses {
    fn from_iter<I: IntoIterator<Item = IpAddr>>(addresses: I) -> Addresses {
        let all: Box<[IpAddr]> = addresses.into_iter().collect();
        match *all {
            [one] => Addresses::One(one),
            _ => Addresses::Other(all),
        }
    }
}

impl Deref for Addresses {
    type Target = [IpAddr];

    fn deref(&self) -> &[IpAddr] {
        match self {
            Addresses::One(one) => slice::from_ref(one),
            Addresses::Other(all) => all,
        }
    }
}
