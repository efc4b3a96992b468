//! EndpointSlices by service, updated incrementally: an update takes time in proportion to the change.

use std::collections::HashMap;
use std::sync::Arc;

use super::differences;
use crate::resource::core::EndpointSlice;
use crate::resource::{Object, Objects};

type Slice = Arc<Object<EndpointSlice>>;

/// EndpointSlices by namespace and name of their service.
#[derive(Clone, Debug, Default)]
pub struct Slices(HashMap<Arc<str>, HashMap<Arc<str>, Vec<Slice>>>);

impl Slices {
    /// Applies a change of the slices.
    pub fn update(&mut self, before: &Objects<EndpointSlice>, now: &Objects<EndpointSlice>) {
        for (gone, came) in differences(before, now) {
            if let Some(gone) = gone {
                self.remove(gone);
            }
            if let Some(came) = came {
                self.add(came);
            }
        }
    }

    fn add(&mut self, slice: &Slice) {
        let Some(service) = &slice.spec.service else {
            return;
        };
        let namespace = self.0.entry(Arc::clone(&slice.id.namespace)).or_default();
        let slices = namespace.entry(Arc::clone(service)).or_default();
        let at = slices.partition_point(|known| known.id.name < slice.id.name);
        slices.insert(at, Arc::clone(slice));
    }

    fn remove(&mut self, slice: &Slice) {
        let Some(service) = slice.service_name() else {
            return;
        };
        let Some(namespace) = self.0.get_mut(&*slice.id.namespace) else {
            return;
        };
        if let Some(slices) = namespace.get_mut(service) {
            slices.retain(|known| known.id.name != slice.id.name);
            if slices.is_empty() {
                namespace.remove(service);
            }
        }
        if namespace.is_empty() {
            self.0.remove(&*slice.id.namespace);
        }
    }

    /// Returns the slices of a service, sorted by name.
    pub fn of(&self, namespace: &str, service: &str) -> &[Slice] {
        let slices = self
            .0
            .get(namespace)
            .and_then(|services| services.get(service));
        slices.map_or(&[], Vec::as_slice)
    }
}
