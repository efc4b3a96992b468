//! `strait check`: validate configuration and list every finding.

use std::io::{IsTerminal, Write};
use std::sync::Arc;

use clap::{Args, ValueEnum};
use config_loader::diagnostic::render;
use config_loader::resource::flomesh::ClusterKey;
use config_loader::resource::gloo::MeshRef;
use config_loader::{Diagnostic, Fleet, Loaded, Severity};

use super::args::{ConfigArgs, EjectionArgs, cluster_key, mesh_name, told_of_clusters};
use super::{EXIT_DONE, EXIT_INPUT, EXIT_INTERNAL, counted};
use crate::compile::certificates::Scope;
use crate::control::certificates;
use crate::control::members::ClustersFile;
use crate::identity::{MemberSettings, MeshName};
use crate::tls::Store;

/// Arguments of `strait check`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  strait check --config ./mesh
  strait check --config ./mesh --cluster eu/a/prod/c1 --clusters clusters.yaml
  strait check --config ./mesh -o json | jq '.[] | .code'
  strait check --config ./mesh -o github       annotations for a pull request

Exits with 1 when there is an error; warnings and notes alone exit with 0.")]
pub struct CheckArgs {
    /// Where configuration comes from.
    #[command(flatten)]
    pub config: ConfigArgs,
    /// What outlier detection may do.
    #[command(flatten)]
    pub ejection: EjectionArgs,
    /// Kubernetes cluster that resources are for: region/zone/group/name, or just the name; default: any
    #[arg(long, value_name = "KEY", env = "STRAIT_CLUSTER", value_parser = cluster_key)]
    pub cluster: Option<String>,
    /// YAML file of what is known of other clusters, to be checked, too
    #[arg(long, value_name = "FILE", env = "STRAIT_CLUSTERS", value_parser = told_of_clusters)]
    pub clusters: Option<ClustersFile>,
    /// Mesh of Gloo that resources are for, NAME.NAMESPACE; default: that of the Destinations of --cluster
    #[arg(long, value_name = "MESH", env = "STRAIT_GLOO_MESH", value_parser = mesh_name)]
    pub gloo_mesh: Option<MeshName>,
    /// How findings are written
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    pub output: Output,
    /// Treat warnings as errors
    #[arg(long)]
    pub deny_warnings: bool,
}

/// `--output`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// For a person at a terminal
    Text,
    /// One array, for programs
    Json,
    /// Annotations of GitHub Actions
    Github,
}

/// Loads, validates, prints.
pub fn run(args: &CheckArgs) -> u8 {
    let options = args.config.reading.options(&args.ejection);
    let mut loaded = config_loader::load_files_for(fleet(args), &args.config.paths, options);
    let members = args.clusters.as_ref().map(ClustersFile::members);
    check_certificates(&mut loaded, &members.unwrap_or_default());
    let text = render(&loaded, args.output, style());
    let mut out = std::io::stdout().lock();
    if out
        .write_all(text.as_bytes())
        .and_then(|()| out.flush())
        .is_err()
    {
        return EXIT_INTERNAL; // the reader went away
    }
    let (errors, warnings) = (
        count(&loaded, Severity::Error),
        count(&loaded, Severity::Warning),
    );
    if errors > 0 || (args.deny_warnings && warnings > 0) {
        EXIT_INPUT
    } else {
        EXIT_DONE
    }
}

/// Whom resources are for, and of whom that one is told.
fn fleet(args: &CheckArgs) -> Fleet {
    let mesh = args.gloo_mesh.as_ref();
    Fleet {
        own: args.cluster.as_deref().and_then(ClusterKey::parse),
        told: args.clusters.as_ref().map_or_else(Vec::new, |file| {
            file.clusters.iter().map(Into::into).collect()
        }),
        mesh: mesh.map(|mesh| MeshRef {
            name: mesh.name.as_str().into(),
            namespace: mesh.namespace.as_str().into(),
        }),
    }
}

/// Adds what is wrong with the certificates that are named, in files and Secrets.
fn check_certificates(loaded: &mut Loaded, members: &[MemberSettings]) {
    let store = Store::default();
    let wanting = (&*loaded.set, members);
    let mut look = certificates::look(&store, wanting, Scope::Any, certificates::now());
    config_loader::fill_source_lines(&mut look.findings);
    loaded.diagnostics.extend(look.findings);
    loaded.diagnostics.sort_by(|a, b| {
        let place = |found: &Diagnostic| (Arc::clone(&found.place.file), found.place.line);
        place(a).cmp(&place(b))
    });
}

/// Everything that is written, for people with a summary at its end.
fn render(loaded: &Loaded, output: Output, style: render::Style) -> String {
    let found = &loaded.diagnostics;
    match output {
        Output::Text => {
            let (errors, warnings) = (
                count(loaded, Severity::Error),
                count(loaded, Severity::Warning),
            );
            let text = render::text(found, style);
            format!(
                "{text}{}, {}, {}\n",
                counted(loaded.set.len(), "object"),
                counted(errors, "error"),
                counted(warnings, "warning"),
            )
        }
        Output::Json => render::json(found),
        Output::Github => render::github(found),
    }
}

fn count(loaded: &Loaded, severity: Severity) -> usize {
    let found = loaded.diagnostics.iter();
    found.filter(|found| found.severity == severity).count()
}

/// Colours for a terminal, plain text for everything else.
fn style() -> render::Style {
    if std::io::stdout().is_terminal() {
        render::Style::Coloured
    } else {
        render::Style::Plain
    }
}

#[cfg(test)]
mod tests;
