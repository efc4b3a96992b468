//! Mesh configuration (`--mesh-config`): settings of Istio's MeshConfig.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use config_loader::diagnostic::codes::istio::MC102;
use config_loader::resource::istio::MeshConfig;
use config_loader::{Diagnostic, SettingsUpdate, Severity};

use traffic::authz::ExtAuthz;

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
        let SettingsUpdate {
            settings,
            mut diagnostics,
        } = update;
        if settings.flags != self.config.flags {
            let file = Arc::from(self.path.display().to_string());
            let message = "other settings than providers have changed since the start".to_owned();
            let mut found = Diagnostic::about_file(Severity::Warning, MC102, file, message);
            found.help("restart the proxy to apply them");
            diagnostics.push(found);
        }
        MeshConfigState {
            authorizers: Some(settings.authorizers),
            diagnostics,
        }
    }
}

/// Mesh configuration as of its last update.
#[derive(Clone, Debug, Default)]
pub struct MeshConfigState {
    /// Providers of external authorization; `None` before the first update, which means those of the start.
    pub authorizers: Option<Vec<Arc<ExtAuthz>>>,
    /// Findings about the current file.
    pub diagnostics: Vec<Diagnostic>,
}
