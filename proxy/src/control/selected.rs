//! Objects of the namespaces that the mesh configuration selects (`discoverySelectors`).

use std::sync::Arc;

use config_loader::ResourceSet;
use config_loader::resource::istio::MeshConfig;

use crate::identity::Identity;

/// Selected objects of the last resources; `None` if all are in effect.
#[derive(Debug, Default)]
pub struct SelectedResources(Option<Selection>);

#[derive(Debug)]
struct Selection {
    all: Arc<ResourceSet>,
    by: Arc<MeshConfig>,
    selected: Arc<ResourceSet>,
}

impl SelectedResources {
    /// Returns the objects that are in effect for a proxy; the same ones as before if nothing has changed.
    pub fn of(
        &mut self,
        all: Arc<ResourceSet>,
        by: &Arc<MeshConfig>,
        identity: &Identity,
    ) -> Arc<ResourceSet> {
        if by.namespaces.is_empty() {
            self.0 = None;
            return all;
        }
        let last = self
            .0
            .take()
            .filter(|last| Arc::ptr_eq(&last.all, &all) && last.by.namespaces == by.namespaces);
        let selection = self.0.insert(last.unwrap_or_else(|| Selection {
            selected: Arc::new(selected(&all, by, identity)),
            by: Arc::clone(by),
            all,
        }));
        Arc::clone(&selection.selected)
    }
}

/// Returns the objects that are in effect for a proxy. Those of its namespace and of the root namespace always are: they
/// have the policies that restrict its clients.
pub fn selected(all: &ResourceSet, by: &MeshConfig, identity: &Identity) -> ResourceSet {
    config_loader::selected(all, by, &[&identity.namespace, &identity.root_namespace])
}
