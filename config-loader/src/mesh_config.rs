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
use crate::validate::istio::{mesh_config, mesh_networks, proxy_settings, without_effect};

pub use config_map::follow_config_map;
pub use selected::{selected, selected_namespaces};

impl SettingsFile for MeshConfig {
    const FLAG: &'static str = "--mesh-config";

    const EMPTY: &'static str = "for the defaults of the mesh, write `{}`";

    /// Istio ignores unknown fields; those of providers may be about access.
    fn passes(field: &str) -> bool {
        !field.starts_with("extensionProviders")
    }

    fn parse(file: &Arc<str>, text: &str) -> Parsed<Self> {
        let lines = Lines::new(text);
        let locator = settings_file::whole(file, text, &lines);
        let root = parse::tree(&locator, &mut Vec::new());
        let root = root.filter(|root| root.get("kind").and_then(Node::text) == Some("ConfigMap"));
        let Some(root) = root else {
            return parse(locator);
        };
        let Some(mesh) = inner(&root, locator, "mesh") else {
            let (file, message) = (Arc::clone(file), "the ConfigMap has no text `mesh`");
            let mut found = Diagnostic::about_file(Severity::Error, CM022, file, message);
            found.help("write the mesh configuration under `data.mesh`");
            return Err(vec![found]);
        };
        let networks = inner(&root, locator, "meshNetworks");
        both(locator, &mesh, networks.as_ref())
    }
}

/// Parses a mesh configuration and its networks, which have texts of their own.
fn both(locator: Locator<'_>, mesh: &Inner, networks: Option<&Inner>) -> Parsed<MeshConfig> {
    let mesh = within(locator, mesh, parse);
    let Some(networks) = networks else {
        return mesh;
    };
    let of_networks = within(locator, networks, |locator| {
        let check = |raw: &raw::istio::MeshNetworks, _: &Node, check: &mut Check<'_>| {
            mesh_networks(raw, check)
        };
        settings_file::parse_text(locator, &[], check)
    });
    match (mesh, of_networks) {
        (Ok((mesh, mut found)), Ok((networks, of_networks))) => {
            found.extend(of_networks);
            let networks = networks.networks;
            Ok((MeshConfig { networks, ..mesh }, found))
        }
        (Err(mut found), Err(others)) => {
            found.extend(others);
            Err(found)
        }
        (Err(found), Ok(_)) | (Ok(_), Err(found)) => Err(found),
    }
}

/// Parses a text within a document.
fn within(
    locator: Locator<'_>,
    (text, first_line): &Inner,
    parse: impl FnOnce(Locator<'_>) -> Parsed<MeshConfig>,
) -> Parsed<MeshConfig> {
    let lines = Lines::new(text);
    parse(Locator {
        text,
        lines: &lines,
        first_line: *first_line,
        ..locator
    })
}

impl SettingsFile for ProxySettings {
    const FLAG: &'static str = "--proxy-config";

    const EMPTY: &'static str = "for the defaults of the mesh, write `{}`";

    fn passes(_field: &str) -> bool {
        true
    }

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

/// Text under a key of a ConfigMap, and its first line.
type Inner = (Arc<str>, u32);

fn inner(root: &Node, locator: Locator<'_>, key: &str) -> Option<Inner> {
    let data = root.get("data")?;
    let line = locator.location(data.key_span(key)).line;
    let text: Arc<str> = data.get(key)?.text()?.into();
    // the text of a block begins on the line after its key
    let is_block = text.contains('\n');
    Some((text, line + u32::from(is_block)))
}

#[cfg(test)]
mod tests;
