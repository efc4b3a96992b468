//! Mesh configuration (`--mesh-config`): settings of Istio's MeshConfig.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use config_loader::diagnostic::codes::istio::{MC010, MC102};
use config_loader::resource::DefaultExports;
use config_loader::resource::istio::{MeshConfig, ProxySettings};
use config_loader::{Diagnostic, SettingsUpdate, Severity};

use crate::identity::FollowedSettings;

/// Flags that are read when the proxy starts. Values of a mesh configuration for others are followed.
pub const AT_START: [&str; 9] = [
    "admin",
    "concurrency",
    "health",
    "http-proxy-listener",
    "inbound-listener",
    "interception-mode",
    "outbound-listener",
    "root-namespace",
    "trust-domain",
];

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

    /// Returns a finding about settings of the start that differ in another version of the file, for a proxy with settings of
    /// its own.
    pub fn pending(&self, now: &MeshConfig, own: &ProxySettings) -> Option<Diagnostic> {
        let [now, started] = [now, &self.config].map(|config| {
            let config = config.of_proxy(own);
            // values of a profile are about gateways
            let flags = config.flag_values(true);
            let flags = flags.filter(|(flag, _)| AT_START.contains(flag)).cloned();
            let flags = flags.collect::<Vec<_>>();
            (flags, config.proxies.variables, config.exports)
        });
        let file = self.path.display().to_string();
        let message = "settings that are read at the start have changed since".to_owned();
        (now != started).then(|| warning(file, message, "restart the proxy to apply them"))
    }
}

/// Mesh configuration as of its last update.
#[derive(Clone, Debug, Default)]
pub struct MeshConfigState {
    /// Settings; `None` before the first update, which means those of the start.
    pub config: Option<Arc<MeshConfig>>,
    /// Values of flags that are followed; `None` before the first update, which means those of the start.
    pub followed: Option<FollowedSettings>,
    /// Whether the ConfigMap of an API server was not looked up yet: without it, the proxy could serve what it forbids.
    pub is_awaited: bool,
    /// Whether settings that are read at the start have changed.
    pub needs_restart: bool,
    /// Findings about the current file.
    pub diagnostics: Vec<Diagnostic>,
    /// Findings about values that flags contradict; `None` before the first update.
    pub contradicted: Option<Vec<Diagnostic>>,
}

impl MeshConfigState {
    /// Returns the state after an update, for a proxy with settings of its own. Without values of flags that can be used, the
    /// settings stay. `pending` is about settings of the start.
    #[must_use]
    pub fn updated(
        &self,
        update: SettingsUpdate<MeshConfig>,
        own: &ProxySettings,
        followed: Result<FollowedSettings, String>,
        pending: Option<Diagnostic>,
    ) -> Self {
        let mut diagnostics = update.diagnostics;
        let (config, followed) = match followed {
            Ok(followed) => {
                let config = Arc::new(update.settings.of_proxy(own));
                (Some(config), Some(followed))
            }
            Err(error) => {
                let (name, message) = ("the mesh configuration".into(), error);
                let mut found = Diagnostic::about_file(Severity::Error, MC010, name, message);
                found.help("write a value that the flag accepts; the last settings stay in effect");
                diagnostics.push(found);
                (self.config.clone(), self.followed.clone())
            }
        };
        let needs_restart = pending.is_some();
        diagnostics.extend(pending);
        Self {
            config,
            followed,
            is_awaited: false,
            needs_restart,
            diagnostics,
            contradicted: None,
        }
    }
}

/// Returns a finding about settings of the start that the ConfigMap of an API server has other values for. `has` says whether
/// the proxy has a value.
pub fn not_followed(
    config: &MeshConfig,
    is_gateway: bool,
    has: impl Fn(&str, &str) -> bool,
) -> Option<Diagnostic> {
    let others = config.flag_values(is_gateway);
    let others = others.filter(|(flag, value)| AT_START.contains(flag) && !has(flag, value));
    let others = others.map(|(flag, value)| format!("--{flag}={value}"));
    let exports = "defaults of `exportTo`".to_owned();
    let exports = (config.exports != DefaultExports::default()).then_some(exports);
    let others = others.chain(exports).collect::<Vec<_>>().join(", ");
    let message =
        format!("the ConfigMap sets nothing that is read at the start, and says {others}");
    let help = "give these flags, or the ConfigMap as a file by --mesh-config";
    let name = "configmaps/istio".to_owned();
    (!others.is_empty()).then(|| warning(name, message, help))
}

fn warning(file: String, message: String, help: &'static str) -> Diagnostic {
    let mut found = Diagnostic::about_file(Severity::Warning, MC102, file.into(), message);
    found.help(help);
    found
}
