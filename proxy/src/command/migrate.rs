//! `strait migrate`: what the objects of others become.

mod config_map;
mod files;
mod mesh;
mod report;

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use config_loader::ingress::{IngressSettings, Translation, translate};
use config_loader::parse::to_yaml;
use config_loader::{Loaded, Severity};

use files::FilesArgs;

use super::args::IngressReadingArgs;
use super::check::paths::{Paths, stdin};
use super::{EXIT_DONE, EXIT_INPUT, EXIT_INTERNAL, EXIT_USAGE, report as report_error};

/// Arguments of `strait migrate`.
#[derive(Debug, Args)]
pub struct MigrateArgs {
    /// Objects to migrate.
    #[command(subcommand)]
    pub from: From,
}

/// Objects to migrate.
#[derive(Debug, Subcommand)]
pub enum From {
    /// Show what Ingresses and annotations of ingress-nginx become: the same that `strait run --ingress` serves
    Ingress(IngressMigrateArgs),
    /// Show which workloads of an Istio mesh can move, and what would be lost
    Istio(mesh::MeshMigrateArgs),
    /// Show which workloads of a Linkerd mesh can move, and what would be lost
    Linkerd(mesh::MeshMigrateArgs),
}

/// Arguments of `strait migrate ingress`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kubectl get ingress,ingressclass,service,secret -A -o yaml | strait migrate ingress -f -
  strait migrate ingress -f manifests/ -o yaml > gateway-api.yaml
  strait migrate ingress -f ingress.yaml --nginx-configmap configmap.yaml

Ingresses of ingress-nginx are read as well, and have its defaults.

Exits with 1 if an annotation or a setting is not followed, or if the input is wrong.")]
pub struct IngressMigrateArgs {
    /// Input.
    #[command(flatten)]
    pub from: FilesArgs,
    /// Output [default: report on a terminal, else yaml]
    #[arg(short, long, value_enum, env = "STRAIT_MIGRATE_OUTPUT")]
    pub output: Option<MigrateOutputArg>,
    /// ConfigMap of ingress-nginx, YAML: the report says what each of its settings becomes
    #[arg(long, value_name = "FILE", env = "STRAIT_MIGRATE_NGINX_CONFIGMAP")]
    pub nginx_configmap: Option<PathBuf>,
    /// Namespace of the Gateway
    #[arg(
        long,
        value_name = "NAME",
        default_value = "default",
        env = "STRAIT_MIGRATE_NAMESPACE"
    )]
    pub namespace: String,
    /// Reading of Ingresses.
    #[command(flatten)]
    pub reading: IngressReadingArgs,
}

/// `--output`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum MigrateOutputArg {
    /// Effect of each annotation, and the objects of each Ingress
    Report,
    /// Objects of the Gateway API and policies
    Yaml,
}

/// Runs the command. Returns the exit code.
pub fn run(args: &MigrateArgs) -> u8 {
    match &args.from {
        From::Ingress(args) => ingress(args),
        From::Istio(args) => mesh::run(args, mesh::Mesh::Istio),
        From::Linkerd(args) => mesh::run(args, mesh::Mesh::Linkerd),
    }
}

fn ingress(args: &IngressMigrateArgs) -> u8 {
    let loaded = match load(&args.from.filenames) {
        Ok(loaded) => loaded,
        Err(error) => {
            report_error(&error);
            return EXIT_USAGE;
        }
    };
    let errors = loaded.diagnostics.iter();
    let errors = errors.filter(|found| found.severity == Severity::Error);
    let mut is_whole = true;
    for error in errors {
        is_whole = false;
        let at = &error.location;
        report_error(&format!(
            "{}:{}: {} {}",
            at.file, at.line, error.code, error.message
        ));
    }
    let settings = settings(args);
    let translation = translate(&loaded.set, &settings);
    let config_map = match args
        .nginx_configmap
        .as_deref()
        .map(config_map::read)
        .transpose()
    {
        Ok(config_map) => config_map.unwrap_or_default(),
        Err(error) => {
            report_error(&error);
            return EXIT_INPUT;
        }
    };
    let default = match io::stdout().is_terminal() {
        true => MigrateOutputArg::Report,
        false => MigrateOutputArg::Yaml,
    };
    let text = match args.output.unwrap_or(default) {
        MigrateOutputArg::Report => report::text(&translation, &config_map),
        MigrateOutputArg::Yaml => yaml(&translation),
    };
    if io::stdout().lock().write_all(text.as_bytes()).is_err() {
        return EXIT_INTERNAL; // the reader went away
    }
    let mut outcomes = translation.outcomes.values().flatten();
    let has_loss = outcomes.any(|one| one.verdict.is_loss())
        || config_map.iter().any(|one| one.verdict.is_loss())
        || translation
            .findings
            .iter()
            .any(|found| found.severity == Severity::Warning);
    match is_whole && !has_loss {
        true => EXIT_DONE,
        false => EXIT_INPUT,
    }
}

fn load(written: &[PathBuf]) -> Result<Loaded, String> {
    let paths = Paths::of(written.to_vec())?;
    let text = paths.stdin.then(stdin).transpose();
    let text = text.map_err(|error| format!("cannot read standard input: {error}"))?;
    let options = config_loader::LoadOptions {
        text,
        ..config_loader::LoadOptions::default()
    };
    Ok(config_loader::load_files(&paths.files, options))
}

/// Returns the settings, by which Ingresses of ingress-nginx are read as well.
fn settings(args: &IngressMigrateArgs) -> IngressSettings {
    let mut settings = IngressSettings {
        namespace: args.namespace.as_str().into(),
        ..args.reading.settings()
    };
    let nginx = IngressSettings::NGINX_CONTROLLER;
    if !settings.controllers.iter().any(|one| one == nginx) {
        settings.controllers.push(nginx.to_owned());
    }
    if !settings.classes.iter().any(|one| one == "nginx") {
        settings.classes.push("nginx".to_owned());
    }
    settings
}

fn yaml(translation: &Translation) -> String {
    let objects = translation.objects.iter();
    let texts: Vec<String> = objects.map(|one| to_yaml(&one.to_value())).collect();
    texts.join("---\n")
}
