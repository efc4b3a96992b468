//! Objects of the namespaces that the mesh configuration selects (`discoverySelectors`).

use std::sync::Arc;

use config_loader::diagnostic::Code;
use config_loader::diagnostic::codes::istio::{MC103, MC104};
use config_loader::resource::istio::MeshConfig;
use config_loader::{Diagnostic, ResourceSet, Severity, selected_namespaces};

use crate::identity::Identity;

/// Largest number of namespaces that a finding names.
const NAMES_MAX: usize = 10;

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

/// Returns findings about objects that are not in effect, or could not be, because of the namespaces that a mesh
/// configuration selects. `read` are the namespaces that the proxy reads; empty for all.
pub fn findings(
    all: &ResourceSet,
    by: &MeshConfig,
    identity: &Identity,
    read: &[String],
) -> Vec<Diagnostic> {
    if by.namespaces.is_empty() {
        return Vec::new();
    }
    if all.namespaces.is_empty() {
        return vec![finding(
            MC103,
            "no Namespace is known: discoverySelectors select all objects".to_owned(),
            "let the proxy read namespaces, by --control-workloads and its rights, or from a file",
        )];
    }
    if read.is_empty() {
        return Vec::new();
    }
    let namespaces = selected_namespaces(all, by);
    let always = [&*identity.namespace, &*identity.root_namespace];
    let selected = namespaces.iter().filter(|(_, is_selected)| **is_selected);
    let mut unread: Vec<&str> = selected.map(|(name, _)| &**name).chain(always).collect();
    unread.retain(|name| !read.iter().any(|read| read == name));
    unread.sort_unstable();
    unread.dedup();
    let left_out = |name: &&str| !always.contains(name) && namespaces.get(*name) != Some(&true);
    let left_out: Vec<&str> = read.iter().map(|name| &**name).filter(left_out).collect();
    let unread = names(&unread).map(|names| {
        let message = format!(
            "policies and other objects of {names} are not read: --control-namespace does not name what discoverySelectors select"
        );
        finding(MC104, message, "name them by --control-namespace as well, or leave it out")
    });
    let left_out = names(&left_out).map(|names| {
        let message = format!(
            "objects of {names} are read, and have no effect: discoverySelectors select other namespaces"
        );
        finding(MC104, message, "select them as well, or do not name them by --control-namespace")
    });
    unread.into_iter().chain(left_out).collect()
}

/// Returns the names of namespaces as text; `None` without any.
fn names(all: &[&str]) -> Option<String> {
    let more = match all.len().saturating_sub(NAMES_MAX) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let named = &all[..all.len().min(NAMES_MAX)];
    (!all.is_empty()).then(|| format!("{}{more}", named.join(", ")))
}

fn finding(code: Code, message: String, help: &str) -> Diagnostic {
    let mut found = Diagnostic::about_file(Severity::Warning, code, "MeshConfig".into(), message);
    found.help(help);
    found
}

#[cfg(test)]
mod tests {
    use config_loader::Diagnostics;

    use super::*;

    #[test]
    fn namespaces_that_are_selected_and_not_read_are_found() {
        let namespaces: String = ["a", "b", "c"]
            .map(|name| {
                let labels = if name == "c" { "" } else { "env: prod" };
                format!("---\napiVersion: v1\nkind: Namespace\nmetadata: {{name: {name}, labels: {{{labels}}}}}\n")
            })
            .concat();
        let mut errors = Diagnostics::default();
        let all = config_loader::load_bytes("a.yaml", namespaces.as_bytes(), &mut errors);
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(
            file.path(),
            "discoverySelectors: [{matchLabels: {env: prod}}]\n",
        )
        .unwrap();
        let (by, _) = config_loader::read_settings::<MeshConfig>(file.path()).unwrap();
        let identity = Identity {
            namespace: "a".to_owned(),
            root_namespace: "root".to_owned(),
            ..Identity::default()
        };
        let told = |read: &[&str]| -> Vec<String> {
            let read: Vec<String> = read.iter().map(|name| (*name).to_owned()).collect();
            let found = findings(&all, &by, &identity, &read).into_iter();
            found
                .map(|one| format!("{} {}", one.code, one.message))
                .collect()
        };
        assert_eq!(told(&[]), [""; 0]);
        assert_eq!(told(&["a", "b", "root"]), [""; 0]);
        let [unread, left_out] = &told(&["b", "c"])[..] else {
            panic!("two findings")
        };
        assert!(
            unread.starts_with("MC104 policies and other objects of a, root are not"),
            "{unread}"
        );
        assert!(
            left_out.starts_with("MC104 objects of c are read, and"),
            "{left_out}"
        );
        let none = findings(&ResourceSet::default(), &by, &identity, &[]);
        assert_eq!(none[0].code, MC103);
        assert!(findings(&all, &MeshConfig::default(), &identity, &["x".to_owned()]).is_empty());
    }
}
