//! Mesh configuration of Istio: `--mesh-config FILE`, which has a MeshConfig or the ConfigMap with one, or the ConfigMap of
//! an API server. Beside it, the settings of a single proxy (`--proxy-config`).

mod config_map;
mod selected;

use std::sync::Arc;

use crate::diagnostic::codes::common::CM022;
use crate::diagnostic::{Diagnostic, Locator, Severity};
use crate::parse::{self, Node};
use crate::raw;
use crate::resource::istio::{MeshConfig, ProxySettings};
use crate::settings_file::{self, Parsed, SettingsFile};
use crate::span::Lines;
use crate::validate::Check;
use crate::validate::istio::{mesh_config, proxy_settings, without_effect};

pub use config_map::follow_config_map;
pub use selected::{selected, selected_namespaces};

impl SettingsFile for MeshConfig {
    const FLAG: &'static str = "--mesh-config";

    const EMPTY: &'static str = "for the defaults of the mesh, write `{}`";

    fn parse(file: &Arc<str>, text: &str) -> Parsed<Self> {
        let lines = Lines::new(text);
        let locator = settings_file::whole(file, text, &lines);
        match in_config_map(locator) {
            Err(found) => Err(vec![*found]),
            Ok(None) => parse(locator),
            Ok(Some((inner, first_line))) => {
                let lines = Lines::new(&inner);
                parse(Locator {
                    text: &inner,
                    lines: &lines,
                    first_line,
                    ..locator
                })
            }
        }
    }
}

impl SettingsFile for ProxySettings {
    const FLAG: &'static str = "--proxy-config";

    const EMPTY: &'static str = "for the defaults of the mesh, write `{}`";

    fn parse(file: &Arc<str>, text: &str) -> Parsed<Self> {
        let lines = Lines::new(text);
        let locator = settings_file::whole(file, text, &lines);
        let check = |raw: &raw::istio::ProxySettings, root: &Node, check: &mut Check<'_>| {
            proxy_settings(raw, root, "", check)
        };
        settings_file::parse_text(locator, &[], check)
    }
}

fn parse(locator: Locator<'_>) -> Parsed<MeshConfig> {
    let ignored: Vec<&str> = without_effect().collect();
    settings_file::parse_text(
        locator,
        &ignored,
        |raw: &raw::istio::MeshConfig, root, check| mesh_config(raw, root, check),
    )
}

/// Text under `mesh` of a ConfigMap, and its first line.
type Inner = (Arc<str>, u32);

/// Returns the text of a ConfigMap; `None` for another document.
///
/// # Errors
///
/// A ConfigMap without the text.
fn in_config_map(locator: Locator<'_>) -> Result<Option<Inner>, Box<Diagnostic>> {
    let root = parse::tree(&locator, &mut Vec::new());
    let kind = root.as_ref().and_then(|root| root.get("kind")?.text());
    if kind != Some("ConfigMap") {
        return Ok(None);
    }
    inner(root.as_ref(), locator).map(Some).ok_or_else(|| {
        let (file, message) = (Arc::clone(locator.file), "the ConfigMap has no text `mesh`");
        let mut found = Diagnostic::about_file(Severity::Error, CM022, file, message);
        found.help("write the mesh configuration under `data.mesh`");
        Box::new(found)
    })
}

fn inner(root: Option<&Node>, locator: Locator<'_>) -> Option<Inner> {
    let data = root?.get("data")?;
    let line = locator.location(data.key_span("mesh")).line;
    let text: Arc<str> = data.get("mesh")?.text()?.into();
    // the text of a block begins on the line after its key
    let is_block = text.contains('\n');
    Some((text, line + u32::from(is_block)))
}

#[cfg(test)]
mod tests;
