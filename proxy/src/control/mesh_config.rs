//! Mesh configuration (`--mesh-config`): settings of Istio's MeshConfig.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use config_loader::diagnostic::codes::istio::MC102;
use config_loader::resource::DefaultExports;
use config_loader::resource::istio::MeshConfig;
use config_loader::{Diagnostic, SettingsUpdate, Severity};

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

    /// Returns the state of the file after an update. Flags are set only at the start.
    pub fn updated(&self, update: SettingsUpdate<MeshConfig>) -> MeshConfigState {
        let (now, started) = (&update.settings, &self.config);
        let differs = now.flags != started.flags || now.exports != started.exports;
        let file = self.path.display().to_string();
        let message = "settings that are read at the start have changed since".to_owned();
        let advice = (message, "restart the proxy to apply them");
        MeshConfigState::of(update, differs.then_some((file, advice)))
    }
}

/// Mesh configuration as of its last update.
#[derive(Clone, Debug, Default)]
pub struct MeshConfigState {
    /// Settings; `None` before the first update, which means those of the start.
    pub config: Option<Arc<MeshConfig>>,
    /// Whether the ConfigMap of an API server was not looked up yet: without it, the proxy could serve what it forbids.
    pub is_awaited: bool,
    /// Findings about the current file.
    pub diagnostics: Vec<Diagnostic>,
}

impl MeshConfigState {
    /// Returns the state after an update of the ConfigMap of an API server, which sets no flags. `is_set` tells whether a
    /// flag has this value.
    pub fn of_config_map(
        update: SettingsUpdate<MeshConfig>,
        is_set: impl Fn(&str, &str) -> bool,
    ) -> Self {
        let flags = update.settings.flags.iter();
        let others = flags.filter(|(flag, value)| !is_set(flag, value));
        let mut others: Vec<String> = others
            .map(|(flag, value)| format!("--{flag}={value}"))
            .collect();
        if update.settings.exports != DefaultExports::default() {
            others.push("defaults of `exportTo`".to_owned());
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
        Self::of(update, (!others.is_empty()).then_some((name, advice)))
    }

    fn of(
        update: SettingsUpdate<MeshConfig>,
        advice: Option<(String, (String, &'static str))>,
    ) -> Self {
        let mut diagnostics = update.diagnostics;
        if let Some((file, (message, help))) = advice {
            let mut found = Diagnostic::about_file(Severity::Warning, MC102, file.into(), message);
            found.help(help);
            diagnostics.push(found);
        }
        Self {
            config: Some(Arc::new(update.settings)),
            is_awaited: false,
            diagnostics,
        }
    }
}
