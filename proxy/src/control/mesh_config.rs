//! Mesh configuration (`--mesh-config`): settings of Istio's MeshConfig.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use config_loader::diagnostic::codes::istio::MC102;
use config_loader::resource::DefaultExports;
use config_loader::resource::istio::{MeshConfig, ProxySettings};
use config_loader::{Diagnostic, SettingsUpdate, Severity};

use crate::identity::{Identity, Mode};

/// Mesh configuration as read at the start.
#[derive(Clone, Debug)]
pub struct MeshConfigFile {
    /// Path of the file.
    pub path: PathBuf,
    /// Its settings.
    pub config: MeshConfig,
    /// Warnings about it.
    pub warnings: Vec<Diagnostic>,
}

impl MeshConfigFile {
    /// Reads the file.
    ///
    /// # Errors
    ///
    /// Returns all of its diagnostics if any of them is an error.
    pub fn read(path: &Path) -> Result<Self, Vec<Diagnostic>> {
        let (config, warnings) = config_loader::read_settings(path)?;
        Ok(Self {
            path: path.to_owned(),
            config,
            warnings,
        })
    }

    /// Returns the state of the file after an update, for a proxy with settings of its own. Flags are set only at the
    /// start.
    pub fn updated(
        &self,
        update: SettingsUpdate<MeshConfig>,
        own: &ProxySettings,
    ) -> MeshConfigState {
        let (now, started) = (update.settings.of_proxy(own), self.config.of_proxy(own));
        // values of a profile are about gateways
        let flags = |config: &MeshConfig| config.flag_values(true).cloned().collect::<Vec<_>>();
        let differs = now.exports != started.exports || flags(&now) != flags(&started);
        let differs = differs || now.disables_tracing != started.disables_tracing;
        let differs = differs || now.networks != started.networks;
        let differs = differs || now.proxies.read_at_start() != started.proxies.read_at_start();
        let file = self.path.display().to_string();
        let message = "settings that are read at the start have changed since".to_owned();
        let advice = (message, "restart the proxy to apply them");
        MeshConfigState {
            config: Some(Arc::new(now)),
            needs_restart: differs,
            ..MeshConfigState::of(update.diagnostics, differs.then_some((file, advice)))
        }
    }
}

/// Mesh configuration as of its last update.
#[derive(Clone, Debug, Default)]
pub struct MeshConfigState {
    /// Settings; `None` before the first update, which means those of the start.
    pub config: Option<Arc<MeshConfig>>,
    /// Whether the ConfigMap of an API server was not looked up yet: without it, the proxy could serve what it forbids.
    pub is_awaited: bool,
    /// Whether settings that are read at the start have changed.
    pub needs_restart: bool,
    /// Findings about the current file.
    pub diagnostics: Vec<Diagnostic>,
}

impl MeshConfigState {
    /// Returns the state after an update of the ConfigMap of an API server, which sets no flags of a proxy with this
    /// identity.
    pub fn of_config_map(update: SettingsUpdate<MeshConfig>, identity: &Identity) -> Self {
        let config = update.settings.of_proxy(&identity.own);
        let others = config.flag_values(identity.mode == Mode::Gateway);
        let others = others.filter(|(flag, value)| !identity.has_setting(flag, value));
        let mut others: Vec<String> = others
            .map(|(flag, value)| format!("--{flag}={value}"))
            .collect();
        if config.exports != DefaultExports::default() {
            others.push("defaults of `exportTo`".to_owned());
        }
        if !config.networks.is_empty() {
            others.push("`meshNetworks`".to_owned());
        }
        let message = format!(
            "the ConfigMap sets no flags, and says {}",
            others.join(", ")
        );
        let advice = (
            message,
            "give these flags, or the ConfigMap as a file by --mesh-config",
        );
        let name = "configmaps/istio".to_owned();
        Self {
            config: Some(Arc::new(config)),
            ..Self::of(
                update.diagnostics,
                (!others.is_empty()).then_some((name, advice)),
            )
        }
    }

    fn of(
        mut diagnostics: Vec<Diagnostic>,
        advice: Option<(String, (String, &'static str))>,
    ) -> Self {
        if let Some((file, (message, help))) = advice {
            let mut found = Diagnostic::about_file(Severity::Warning, MC102, file.into(), message);
            found.help(help);
            diagnostics.push(found);
        }
        Self {
            diagnostics,
            ..Self::default()
        }
    }
}
