//! Status of Ingresses: the addresses of the gateways that serve them.

use std::collections::BTreeSet;
use std::net::IpAddr;

use config_loader::catalog::gateway_api::status::StatusAddress;
use config_loader::ingress::{IngressSettings, served_names};
use config_loader::resource::ResourceSet;
use config_loader::{Kind, ObjectRef};
use serde_json::{Value, json};

/// Status of the Ingresses of served classes.
#[derive(Debug)]
pub(super) struct IngressStatuses {
    settings: IngressSettings,
    /// Set that the served Ingresses were found in.
    set: ResourceSet,
    served: BTreeSet<ObjectRef>,
    /// Addresses, sorted; `None` until they are known.
    addresses: Option<Vec<String>>,
}

impl IngressStatuses {
    pub(super) fn new(settings: IngressSettings) -> Self {
        Self {
            settings,
            set: ResourceSet::default(),
            served: BTreeSet::new(),
            addresses: None,
        }
    }

    /// Follows the set and the addresses of the gateways. Returns the Ingresses whose status may have changed.
    pub(super) fn update(
        &mut self,
        set: &ResourceSet,
        addresses: Option<Vec<StatusAddress>>,
    ) -> BTreeSet<ObjectRef> {
        let mut changed = BTreeSet::new();
        let kinds = [Kind::Ingress, Kind::IngressClass];
        if !kinds.iter().all(|kind| set.is_same(&self.set, *kind)) {
            let now = served_names(set, &self.settings);
            changed.extend(now.symmetric_difference(&self.served).cloned());
            self.served = now;
        }
        self.set = set.clone();
        let addresses: Option<Vec<String>> = addresses.map(|all| {
            let texts = all.into_iter().map(|one| match one {
                StatusAddress::Host(host) => host,
                StatusAddress::Ip(ip) => ip.to_string(),
            });
            let texts: BTreeSet<String> = texts.collect();
            texts.into_iter().collect()
        });
        if addresses != self.addresses {
            self.addresses = addresses;
            changed.extend(self.served.iter().cloned());
        }
        changed
    }

    /// Returns the fields of the status of an Ingress; `None` if nothing changes. An Ingress that is not served keeps what
    /// another controller wrote.
    pub(super) fn status(&self, id: &ObjectRef, existing: &Value) -> Option<Value> {
        let own = self.addresses.as_ref()?;
        let written = existing["loadBalancer"]["ingress"].as_array();
        let written = written.into_iter().flatten();
        let mut written: Vec<&str> = written
            .filter_map(|one| one["ip"].as_str().or(one["hostname"].as_str()))
            .collect();
        written.sort_unstable();
        let is_own = written.iter().eq(own.iter());
        let desired = match (self.served.contains(id), is_own) {
            (true, false) => own.as_slice(),
            (false, true) if !own.is_empty() => &[],
            _ => return None,
        };
        let entries = desired.iter().map(|one| match one.parse::<IpAddr>() {
            Ok(_) => json!({"ip": one}),
            Err(_) => json!({"hostname": one}),
        });
        let entries: Vec<Value> = entries.collect();
        // a patch removes what is null
        let entries = (!entries.is_empty()).then_some(entries);
        Some(json!({"loadBalancer": {"ingress": entries}}))
    }
}
