//! `strait imports`: the ServiceImports that one cluster needs, from what the others export.

mod yaml;

use std::fs;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use config_loader::diagnostic::codes::imports::IM004;
use config_loader::diagnostic::render;
use config_loader::imports::{Import, Imported, Importing, Source, imports};
use config_loader::resource::flomesh::ClusterKey;
use config_loader::{Diagnostic, Kind, Loaded, ReadOptions, Severity};

use super::args::{UnknownFieldsArg, cluster_key, read_clusters_file};
use super::{EXIT_DONE, EXIT_INPUT, EXIT_INTERNAL, counted, report};
use crate::control::remote_clusters::ClustersFile;

const HELP: &str = "\
Does the work of a multi-cluster controller, once: writes a ServiceImport for every service that other clusters export to \
this one, with the gateway of each exporting cluster. Ports are merged by name, then by number. A cluster exports to the \
clusters in `targetClusters`, or to all without that field; an Exact rule cannot be imported (X298).

A cluster without any resource is an error, because all of its imports would be removed (IM004): an unmounted directory \
looks the same. Use --allow-empty if it is intended.

It reads ServiceExport, Service, and Cluster for gateways that --clusters does not name. Findings go to standard error; \
with an error, nothing is written.

Examples:
  strait imports --for c3 --from c1=./c1 --from c2=./c2 --clusters clusters.yaml --to c3/imports.yaml
  strait imports --for eu/a/prod/c3 --from eu/a/prod/c1=./c1 | kubectl apply -f -

Exits with 1 when there is an error; warnings and notes alone exit with 0.";

/// Arguments of `strait imports`.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub struct ImportsArgs {
    /// Cluster that imports: region/zone/group/name, or just the name
    #[arg(long = "for", value_name = "KEY", env = "STRAIT_IMPORTS_FOR", value_parser = cluster_key)]
    pub importer: String,
    /// Cluster, and a file or directory of its resources. May be repeated, also for one cluster. Services that the
    /// importing cluster exports itself are not imported
    #[arg(long = "from", value_name = "KEY=PATH", required = true, env = "STRAIT_IMPORTS_FROM", value_delimiter = ',', value_parser = source)]
    pub sources: Vec<(String, PathBuf)>,
    /// Remote clusters file, YAML; its gateways take precedence over those of Cluster objects
    #[arg(long, value_name = "FILE", env = "STRAIT_CLUSTERS", value_parser = read_clusters_file)]
    pub clusters: Option<ClustersFile>,
    /// File for the imports, replaced atomically; default: standard output
    #[arg(long = "to", value_name = "FILE", env = "STRAIT_IMPORTS_TO")]
    pub to: Option<PathBuf>,
    /// Accept a cluster without any resources: nothing is imported from it
    #[arg(long, env = "STRAIT_IMPORTS_ALLOW_EMPTY")]
    pub allow_empty: bool,
    /// Treatment of unknown fields of a resource
    #[arg(long, value_enum, default_value_t = UnknownFieldsArg::Error, env = "STRAIT_UNKNOWN_FIELDS", help_heading = "Compatibility")]
    pub unknown_fields: UnknownFieldsArg,
}

/// Loads the exports, merges them, and writes the imports. Returns the exit code.
pub fn run(args: &ImportsArgs) -> u8 {
    let (Some(importer), Some((sources, mut found))) =
        (ClusterKey::parse(&args.importer), load(args))
    else {
        return EXIT_INTERNAL; // keys were checked when they were read
    };
    let told = args.clusters.as_ref().map(|file| &*file.clusters);
    let Imported {
        imports,
        differences: mut own,
        found: more,
        ..
    } = imports(&Importing {
        importer: &importer,
        sources: &sources,
        told: told.unwrap_or_default(),
    });
    own.extend(more);
    config_loader::fill_source_lines(&mut own);
    found.extend(own);
    print_findings(&found, &imports);
    if found.iter().any(|one| one.severity == Severity::Error) {
        return EXIT_INPUT;
    }
    let text = text(&importer, &imports);
    match &args.to {
        None => {
            let mut out = io::stdout().lock();
            let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
            match written {
                Ok(()) => EXIT_DONE,
                Err(_) => EXIT_INTERNAL, // the reader went away
            }
        }
        Some(path) => match replace(path, &text) {
            Ok(()) => EXIT_DONE,
            Err(error) => {
                report(&format!("cannot write {}: {error}", path.display()));
                EXIT_INPUT
            }
        },
    }
}

/// Loads the resources of each cluster, in the order of the arguments, and the diagnostics of resources that exports
/// depend on.
fn load(args: &ImportsArgs) -> Option<(Vec<Source>, Vec<Diagnostic>)> {
    let mut paths: Vec<(&str, Vec<PathBuf>)> = Vec::new();
    for (key, path) in &args.sources {
        match paths.iter_mut().find(|(known, _)| known == key) {
            Some((_, known)) => known.push(path.clone()),
            None => paths.push((key, vec![path.clone()])),
        }
    }
    let options = ReadOptions {
        unknown_fields_pass: args.unknown_fields == UnknownFieldsArg::Warning,
        ..ReadOptions::default()
    };
    let mut found = Vec::new();
    let mut sources = Vec::new();
    for (key, paths) in paths {
        let loaded = config_loader::load_files(
            &paths,
            config_loader::LoadOptions {
                read: options,
                ..config_loader::LoadOptions::default()
            },
        );
        let counting = loaded.diagnostics.iter();
        found.extend(counting.filter(|one| counts(one, &loaded)).cloned());
        if !args.allow_empty && is_nothing(&loaded) {
            found.push(nothing_of(key, &paths));
        }
        sources.push(Source {
            cluster: ClusterKey::parse(key)?,
            resources: loaded.set,
        });
    }
    Some((sources, found))
}

/// Returns whether no resource was found and no error explains it.
fn is_nothing(loaded: &Loaded) -> bool {
    let mut found = loaded.diagnostics.iter();
    loaded.set.is_empty() && !found.any(|one| one.severity == Severity::Error)
}

/// Finding that a cluster has no resources, so that all its imports would be removed.
fn nothing_of(key: &str, paths: &[PathBuf]) -> Diagnostic {
    let file = paths.first().map(|path| path.display().to_string());
    let file = file.unwrap_or_default().into();
    let message = format!("nothing is there of cluster `{key}`: all imports from it would go");
    let mut found = Diagnostic::about_file(Severity::Error, IM004, file, message);
    found.help(
        "see whether the directory is the right one, and mounted; leave out --from of a cluster that is gone, or write \
         --allow-empty if it is to export nothing",
    );
    found
}

/// Returns whether a diagnostic is about a resource that exports depend on; documents that cannot be parsed may be
/// exports.
fn counts(found: &Diagnostic, loaded: &Loaded) -> bool {
    let Some(object) = &found.object else {
        return true;
    };
    match object.kind {
        Kind::Cluster | Kind::ServiceExport => true,
        Kind::Service => loaded.set.service_exports.contains_key(&object.to_name()),
        _ => false,
    }
}

/// Prints the findings and a summary to standard error.
fn print_findings(found: &[Diagnostic], imports: &[Import]) {
    let mut error = io::stderr().lock();
    let style = match error.is_terminal() {
        true => render::Style::Coloured,
        false => render::Style::Plain,
    };
    let count = |severity| found.iter().filter(|one| one.severity == severity).count();
    let errors = count(Severity::Error);
    let findings = render::text(found, style);
    let counts = format!(
        "{}, {}",
        counted(errors, "error"),
        counted(count(Severity::Warning), "warning")
    );
    let _ = match errors {
        0 => writeln!(
            error,
            "{findings}{}, {counts}",
            counted(imports.len(), "import")
        ),
        _ => writeln!(error, "{findings}{counts}: nothing was written"),
    };
}

fn text(importer: &ClusterKey, imports: &[Import]) -> String {
    let documents = yaml::documents(imports);
    format!(
        "# Made by `strait imports --for {importer}` from what other clusters export: change that.\n{documents}"
    )
}

/// Replaces a file atomically: a proxy that watches it sees either the old or the new text.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    let Some(name) = path.file_name() else {
        return Err(io::ErrorKind::IsADirectory.into());
    };
    let draft = path.with_file_name(format!(".{}.draft", name.display()));
    fs::write(&draft, text)?;
    fs::rename(&draft, path).inspect_err(|_| _ = fs::remove_file(&draft))
}

/// Parses `KEY=PATH`.
fn source(text: &str) -> Result<(String, PathBuf), String> {
    match text.split_once('=') {
        Some((key, path)) if !path.is_empty() => Ok((cluster_key(key)?, path.into())),
        _ => Err("expected KEY=PATH, such as c1=./c1".to_owned()),
    }
}

#[cfg(test)]
mod tests;
