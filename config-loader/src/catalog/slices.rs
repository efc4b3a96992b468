//! EndpointSlices by service, updated incrementally: an update takes time in proportion to the change.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::view::{answers, hash};
use super::{Changes, Read, View, differences};
use crate::resource::core::EndpointSlice;
use crate::resource::{Object, ResourceSet, Spec};

type Slice = Arc<Object<EndpointSlice>>;

/// Name of this index in recorded reads.
const INDEX: &str = "EndpointSlices of a service";

/// Read of the clusters that slices were copied from.
const SOURCES: Read<'_> = Read::Index("clusters of EndpointSlices", "", "");

/// EndpointSlices by namespace and name of their service.
#[derive(Clone, Debug, Default)]
pub struct Slices {
    by_service: HashMap<Arc<str>, HashMap<Arc<str>, Vec<Slice>>>,
    /// Number of slices that were copied from each cluster.
    sources: BTreeMap<Arc<str>, usize>,
}

impl Slices {
    /// Applies a change of the slices. Adds the changed lookup results to `changes`.
    pub fn update(&mut self, before: &ResourceSet, now: &ResourceSet, changes: &mut Changes) {
        for (gone, came) in differences(EndpointSlice::objects(before), EndpointSlice::objects(now))
        {
            for slice in [gone, came].into_iter().flatten() {
                let why = slice.id.to_string().into();
                if let Some(service) = slice.service_name() {
                    changes.add(Read::Index(INDEX, &slice.id.namespace, service), &why);
                }
                if gone.map(|gone| gone.source_cluster()) != came.map(|came| came.source_cluster())
                {
                    changes.add(SOURCES, &why);
                }
            }
            if let Some(gone) = gone {
                self.remove(gone);
            }
            if let Some(came) = came {
                self.add(came);
            }
        }
    }

    /// Returns the clusters that slices were copied from.
    pub fn sources(&self, view: View<'_>) -> impl Iterator<Item = &str> {
        view.read(SOURCES, || hash(self.sources.keys().collect::<Vec<_>>()));
        self.sources.keys().map(|source| &**source)
    }

    fn add(&mut self, slice: &Slice) {
        if let Some(source) = &slice.spec.source_cluster {
            *self.sources.entry(Arc::clone(source)).or_default() += 1;
        }
        let Some(service) = &slice.spec.service else {
            return;
        };
        let namespace = self
            .by_service
            .entry(Arc::clone(&slice.id.namespace))
            .or_default();
        let slices = namespace.entry(Arc::clone(service)).or_default();
        let at = slices.partition_point(|known| known.id.name < slice.id.name);
        slices.insert(at, Arc::clone(slice));
    }

    fn remove(&mut self, slice: &Slice) {
        if let Some(source) = slice.source_cluster()
            && let Some(count) = self.sources.get_mut(source)
        {
            *count -= 1;
            if *count == 0 {
                self.sources.remove(source);
            }
        }
        let Some(service) = slice.service_name() else {
            return;
        };
        let Some(namespace) = self.by_service.get_mut(&*slice.id.namespace) else {
            return;
        };
        if let Some(slices) = namespace.get_mut(service) {
            slices.retain(|known| known.id.name != slice.id.name);
            if slices.is_empty() {
                namespace.remove(service);
            }
        }
        if namespace.is_empty() {
            self.by_service.remove(&*slice.id.namespace);
        }
    }

    /// Returns the slices of a service, sorted by name.
    pub fn of(&self, view: View<'_>, namespace: &str, service: &str) -> &[Slice] {
        let slices = self
            .by_service
            .get(namespace)
            .and_then(|services| services.get(service));
        let slices = slices.map_or(&[][..], Vec::as_slice);
        view.read(Read::Index(INDEX, namespace, service), || answers(slices));
        slices
    }
}
