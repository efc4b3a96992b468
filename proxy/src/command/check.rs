//! `strait check`: validate configuration and list every finding.

mod about;
mod access;
pub(super) mod paths;
mod telemetries;

use std::env;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::{Args, ValueEnum};
use config_loader::catalog::gateway_api::status::CrdBundle;
use config_loader::diagnostic::codes::istio::AZ122;
use config_loader::diagnostic::codes::references::X326;
use config_loader::diagnostic::render;
use config_loader::resource::flomesh::ClusterKey;
use config_loader::resource::gloo::MeshRef;
use config_loader::{AccessTable, Diagnostic, Fleet, Loaded, NamedText, ObjectRef, Severity};
use config_server::conditions::{GatewayController, preview};
use serde_json::{Value, json};

use super::args::{IdentityArgs, ReadingArgs};
use super::{EXIT_DONE, EXIT_INPUT, EXIT_INTERNAL, EXIT_USAGE, counted, report};
use crate::compile::certificates::Scope;
use crate::compile::{lacks_export_listener, unknown_provider};
use crate::control::certificates;
use crate::control::certificates::Delivered;
use crate::control::remote_clusters::workload;
use crate::control::selected::selected;
use crate::identity::Identity;
use crate::tls::Store;
use about::warning_about;
use paths::Paths;

/// Environment variable with paths, for a command line without any.
const PATHS_VARIABLE: &str = "STRAIT_CONFIG";

/// Arguments of `strait check`.
#[derive(Debug, Args)]
#[command(after_help = "\
Give the same identity as to `strait run`: Secrets are those of --namespace. Without --labels every Gateway is checked, \
with --labels only Gateways that select them.

Examples:
  strait check ./mesh
  strait check --config ./mesh --namespace istio-system --labels istio=ingressgateway
  strait check ./mesh --cluster eu/a/prod/c1 --clusters clusters.yaml
  strait check -f 'mesh/*.yaml' -o json | jq '.findings[].code'
  kustomize build . | strait check -
  strait check mesh/cart.yaml --context mesh
  strait check ./mesh -o github       annotations for a pull request
  strait check ./mesh --access access.yaml       who may do what

Exits with 1 when there is an error; warnings and notes alone exit with 0.")]
pub struct CheckArgs {
    /// File or directory of resources (YAML or JSON), a pattern such as 'mesh/*.yaml', or - for standard input;
    /// directories are read recursively. Default: those of --config, else those of STRAIT_CONFIG
    #[arg(value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    /// The same, as a flag of `strait run` and kubectl. May be repeated
    #[arg(
        short = 'f',
        long = "config",
        visible_alias = "filename",
        value_name = "PATH",
        value_delimiter = ','
    )]
    pub config: Vec<PathBuf>,
    /// File or directory that completes the configuration, such as that of all files in a pre-commit hook: what PATH refers to is
    /// found there, and only findings about PATH are printed. May be repeated
    #[arg(
        long,
        value_name = "PATH",
        value_delimiter = ',',
        env = "STRAIT_CHECK_CONTEXT"
    )]
    pub context: Vec<PathBuf>,
    /// File of clients and requests: print which policies allow, and fail where that differs from `expect` in it
    #[arg(long, value_name = "FILE", env = "STRAIT_CHECK_ACCESS")]
    pub access: Option<PathBuf>,
    /// Strictness of reading.
    #[command(flatten)]
    pub reading: ReadingArgs,
    /// Identity of the proxy.
    #[command(flatten)]
    pub identity: IdentityArgs,
    /// Format of the findings
    #[arg(short, long, value_enum, default_value_t = Output::Text, env = "STRAIT_OUTPUT")]
    pub output: Output,
    /// Treat warnings as errors
    #[arg(long, env = "STRAIT_DENY_WARNINGS")]
    pub deny_warnings: bool,
}

/// `--output`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// For a person at a terminal
    Text,
    /// One object, for programs: the findings, and the statuses that objects of the Gateway API would have
    Json,
    /// Annotations of GitHub Actions
    Github,
}

/// Loads and validates the resources, and prints the findings. Returns the exit code.
pub fn run(args: &CheckArgs) -> u8 {
    let (mut loaded, text) = match load(args) {
        Ok(loaded) => loaded,
        Err(error) => {
            report(&error);
            return EXIT_USAGE;
        }
    };
    let identity = args.identity.identity();
    check_export_listeners(&mut loaded, text.as_ref(), &identity);
    check_providers(&mut loaded, text.as_ref(), &identity);
    telemetries::check(&mut loaded, text.as_ref(), &identity);
    check_certificates(&mut loaded, text.as_ref(), &identity);
    if let Some(file) = &args.identity.mesh_config {
        loaded.diagnostics.extend(file.warnings.iter().cloned());
    }
    if !args.context.is_empty() {
        leave_out_context(args, &mut loaded);
    }
    let table = check_access(args, &mut loaded);
    let statuses = match args.output {
        Output::Json => statuses(args, &loaded),
        Output::Text | Output::Github => Value::Null,
    };
    let mut text = render(&loaded, statuses, args.output, style());
    if args.output == Output::Text && !table.is_empty() {
        text = format!("{table}\n{text}");
    }
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

/// Loads all named paths; also returns standard input, if it was read.
fn load(args: &CheckArgs) -> Result<(Loaded, Option<NamedText>), String> {
    let mut written: Vec<PathBuf> = [&*args.paths, &*args.config].concat();
    if written.is_empty() {
        let paths = env::var(PATHS_VARIABLE).unwrap_or_default();
        let paths = paths.split(',').filter(|path| !path.is_empty());
        written.extend(paths.map(PathBuf::from));
    }
    if written.is_empty() {
        return Err(format!(
            "nothing to check; name a file or directory, - for standard input, or set {PATHS_VARIABLE}"
        ));
    }
    let mut paths = Paths::of(written)?;
    paths.files.extend(Paths::of(args.context.clone())?.files);
    let options = args.reading.options(&args.identity.identity());
    let text = paths.stdin.then(paths::stdin).transpose();
    let text = text.map_err(|error| format!("cannot read standard input: {error}"))?;
    let loaded = config_loader::load_files(
        &paths.files,
        config_loader::LoadOptions {
            read: options,
            fleet: fleet(args),
            text: text.clone(),
        },
    );
    Ok((loaded, text))
}

/// Removes findings about paths that are only context.
fn leave_out_context(args: &CheckArgs, loaded: &mut Loaded) {
    let whole = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let written = Paths::of([&*args.paths, &*args.config].concat()).unwrap_or_default();
    let checked: Vec<PathBuf> = written.files.iter().map(|path| whole(path)).collect();
    let is_checked = |file: &str| match file {
        paths::STDIN_NAME => written.stdin,
        file => {
            let file = whole(Path::new(file));
            checked.iter().any(|path| file.starts_with(path))
        }
    };
    loaded.quarantined.retain(|one| {
        let mut locations = one.diagnostics.iter().map(|found| &found.location);
        locations.any(|location| is_checked(&location.file))
    });
    loaded.diagnostics.retain(|found| {
        let related = found.related.iter().map(|(location, _)| location);
        let mut all = related.chain([&found.location]);
        all.any(|location| is_checked(&location.file))
    });
}

/// Returns the fleet as the proxy sees it: its local cluster and its remote clusters.
fn fleet(args: &CheckArgs) -> Fleet {
    let of_controller = &args.identity.gateways.of_controller;
    let members = &args.identity.members;
    let mesh = members.gloo_mesh.as_ref();
    let own = args.identity.cluster.as_deref();
    let identity = args.identity.identity();
    Fleet {
        naming: identity.naming(),
        own: own.and_then(ClusterKey::parse),
        told: members.clusters.as_ref().map_or_else(Vec::new, |file| {
            file.clusters.iter().map(Into::into).collect()
        }),
        mesh: mesh.map(|mesh| MeshRef {
            name: mesh.name.as_str().into(),
            namespace: mesh.namespace.as_str().into(),
        }),
        namespace: Some(args.identity.namespace().into()),
        root_namespace: Some(args.identity.root_namespace.as_str().into()),
        // without the flag, files may be of any mesh
        trust_domains: match &args.identity.workload.trust_domain {
            Some(_) => identity.trust_domains().map(Arc::from).collect(),
            None => Vec::new(),
        },
        gateway_controller: Some(of_controller.gateway_controller.as_str().into()),
        has_gateway_pool: !of_controller.pool().is_empty(),
        ingress: identity.ingress.clone(),
        path_normalization: identity.path_normalization(),
        workload: workload(&identity),
    }
}

/// Adds findings where policies decide otherwise than the file of `--access` expects. Returns the decisions as text.
fn check_access(args: &CheckArgs, loaded: &mut Loaded) -> String {
    let Some(path) = &args.access else {
        return String::new();
    };
    let (mut found, text) = match config_loader::read_settings::<AccessTable>(path) {
        Ok((table, _)) => {
            let identity = args.identity.identity_of(&table.proxy);
            let resources = selected(&loaded.set, &identity.mesh_config, &identity);
            access::decide(&table, &resources, identity)
        }
        Err(found) => (found, String::new()),
    };
    config_loader::fill_source_lines_with(&mut found, None);
    loaded.diagnostics.extend(found);
    text
}

/// Adds a finding if no server serves exports.
fn check_export_listeners(loaded: &mut Loaded, text: Option<&NamedText>, identity: &Identity) {
    if !lacks_export_listener(&loaded.set, identity) {
        return;
    }
    let Some(export) = loaded.set.service_exports.values().next() else {
        return;
    };
    let message = "nothing is served to other clusters: no HTTP server of a Gateway has a port that --export-listener names";
    let mut found = warning_about(export, X326, message);
    found.help(
        "name the port or the port name of an HTTP or HTTPS server, or leave --export-listener out",
    );
    let mut found = [found];
    config_loader::fill_source_lines_with(&mut found, text);
    loaded.diagnostics.extend(found);
}

/// Adds findings about policies whose provider is not in the mesh configuration.
fn check_providers(loaded: &mut Loaded, text: Option<&NamedText>, identity: &Identity) {
    let policies = loaded.set.authorization_policies.values();
    let unknown = policies.filter_map(|policy| {
        let provider = unknown_provider(&policy.spec, identity)?;
        let message =
            format!("there is no provider `{provider}`: what the policy selects is denied");
        let mut found = warning_about(policy, AZ122, &message);
        found.help("add it to `extensionProviders` of the file of --mesh-config");
        Some(found)
    });
    let mut found: Vec<Diagnostic> = unknown.collect();
    config_loader::fill_source_lines_with(&mut found, text);
    loaded.diagnostics.extend(found);
}

/// Adds findings about the certificates that resources name, in files and Secrets.
fn check_certificates(loaded: &mut Loaded, text: Option<&NamedText>, identity: &Identity) {
    let (store, delivered) = (Store::default(), Delivered::default());
    let identity = certificates::located(identity.clone());
    let scope = Scope::Any(&identity);
    let now = certificates::now();
    let mut look = certificates::look(&store, &loaded.set, &delivered, scope, now);
    config_loader::fill_source_lines_with(&mut look.findings, text);
    loaded.diagnostics.extend(look.findings);
    loaded.diagnostics.sort_by(|a, b| {
        let place = |found: &Diagnostic| (Arc::clone(&found.location.file), found.location.line);
        place(a).cmp(&place(b))
    });
}

/// Returns the status that `strait control` would write to objects of the Gateway API.
fn statuses(args: &CheckArgs, loaded: &Loaded) -> Value {
    let of_controller = &args.identity.gateways.of_controller;
    let controller = GatewayController {
        name: of_controller.gateway_controller.clone(),
        pool: of_controller.pool(),
        root_namespace: args.identity.root_namespace.clone(),
        crds: CrdBundle {
            is_experimental: true,
            version: None,
        },
        ..GatewayController::default()
    };
    let domain = &args.identity.domain;
    let all = preview(controller, domain, &loaded.set, &loaded.diagnostics);
    let all = all.into_iter().map(|(object, status)| {
        let ObjectRef {
            kind,
            namespace,
            name,
            ..
        } = object;
        let object = json!({"kind": kind.as_str(), "namespace": *namespace, "name": *name});
        json!({"object": object, "status": status})
    });
    all.collect()
}

/// Renders all findings; the text format ends with a summary, and JSON has the statuses of objects as well.
fn render(loaded: &Loaded, statuses: Value, output: Output, style: render::Style) -> String {
    let found = &loaded.diagnostics;
    match output {
        Output::Text => {
            let (errors, warnings) = (
                count(loaded, Severity::Error),
                count(loaded, Severity::Warning),
            );
            let text = render::text(found, style);
            let rejected = match loaded.quarantined.len() {
                0 => String::new(),
                count => format!(", {count} rejected"),
            };
            format!(
                "{text}{}{rejected}, {}, {}\n",
                counted(objects(loaded), "object"),
                counted(errors, "error"),
                counted(warnings, "warning"),
            )
        }
        Output::Json => {
            let all = json!({"findings": render::json(found), "statuses": statuses});
            format!("{all:#}\n")
        }
        Output::Github => render::github(found),
    }
}

/// Returns the number of objects that were read, including rejected ones.
fn objects(loaded: &Loaded) -> usize {
    let rejected = loaded
        .quarantined
        .iter()
        .filter(|one| !one.in_force && !one.denies);
    loaded.set.len() + rejected.count()
}

fn count(loaded: &Loaded, severity: Severity) -> usize {
    let found = loaded.diagnostics.iter();
    found.filter(|found| found.severity == severity).count()
}

/// Returns the style: colors for a terminal, plain text otherwise.
fn style() -> render::Style {
    if std::io::stdout().is_terminal() {
        render::Style::Coloured
    } else {
        render::Style::Plain
    }
}

#[cfg(test)]
mod tests;
