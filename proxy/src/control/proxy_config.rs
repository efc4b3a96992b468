//! ProxyConfig resources of this proxy, whose values are read when it starts.

use std::collections::BTreeMap;

use config_loader::ResourceSet;
use config_loader::catalog::proxy_configs_of;
use config_loader::diagnostic::codes::istio::MC102;
use config_loader::{Diagnostic, Severity};

use crate::compile::workload;
use crate::identity::Identity;

/// Values of the ProxyConfigs of this proxy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProxyConfigValues {
    /// Number of workers, of the narrowest resource that has one.
    pub workers: Option<Workers>,
    /// Variables of the environment; narrower resources win.
    pub variables: BTreeMap<String, String>,
}

/// Number of workers by a ProxyConfig.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workers {
    /// The number; 0 for one per core.
    pub count: u16,
    /// Whether the resource selects the proxy by labels.
    pub is_selected: bool,
    /// Name of the resource.
    pub origin: String,
}

impl ProxyConfigValues {
    /// Returns the values for a proxy of this identity.
    pub fn of(resources: &ResourceSet, identity: &Identity) -> Self {
        let configs = proxy_configs_of(resources, workload(identity));
        let mut workers = configs.iter().filter_map(|config| {
            Some(Workers {
                count: config.spec.concurrency?,
                is_selected: !config.spec.selector.is_empty(),
                origin: config.id.to_string(),
            })
        });
        let variables = configs.iter().rev();
        let variables = variables.flat_map(|config| config.spec.variables.clone());
        Self {
            workers: workers.next(),
            variables: variables.collect(),
        }
    }

    /// Returns a finding about values that differ from those of the start.
    pub fn finding(&self, started: &Self) -> Option<Diagnostic> {
        if self == started {
            return None;
        }
        let workers = self.workers.as_ref().or(started.workers.as_ref());
        let name = workers.map_or("ProxyConfig", |workers| &workers.origin);
        let message = "a ProxyConfig has changed since the start, when it is read";
        let mut found = Diagnostic::about_file(Severity::Warning, MC102, name.into(), message);
        found.help("restart the proxy to apply it; before resources of a server arrive, only flags are known");
        Some(found)
    }
}
