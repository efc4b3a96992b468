//! `strait explain`: explains how the proxy routes a request.

mod args;
mod live;

use std::path::PathBuf;
use std::sync::Arc;

use config_loader::{Diagnostic, Fleet, LoadOptions, Loaded, ResourceSet, Severity};

pub use args::ExplainArgs;

use super::args::{IdentityArgs, OutputArg, ReadingArgs};
use super::{EXIT_DONE, EXIT_INPUT, EXIT_INTERNAL, EXIT_USAGE, counted, print, report};
use crate::app::unreadable;
use crate::compile::certificates::Scope;
use crate::compile::{Inputs, Survey, compile};
use crate::control::certificates;
use crate::control::certificates::Delivered;
use crate::control::selected::selected;
use crate::exchange::settings::ExchangeSettings;
use crate::explain::text::{self, Detail};
use crate::explain::{self, Explanation, Question};
use crate::identity::{Identity, Mode};
use crate::runtime::clock;
use crate::snapshot::Snapshot;
use crate::telemetry::StatsRegistry;
use crate::tls::Store;
use traffic::registry::Registry;

/// Compiles the configuration or asks a running proxy, and prints the explanation. Returns the exit code.
pub fn run(args: &ExplainArgs) -> u8 {
    let question = match question(args) {
        Ok(question) => question,
        Err(error) => {
            report(&error);
            return EXIT_USAGE;
        }
    };
    let answer = match &args.admin {
        None => {
            let loaded = match load(&args.files.paths, args.reading, &args.identity) {
                Ok(loaded) => loaded,
                Err(error) => {
                    report(&error);
                    return EXIT_INPUT;
                }
            };
            answer(args, &question, &loaded)
        }
        Some(admin) => match live::ask(admin, args) {
            Ok(answer) => answer,
            Err(error) => {
                report(&error);
                return EXIT_INPUT;
            }
        },
    };
    let text = match args.output {
        OutputArg::Text => text::render(&answer, detail(args)),
        OutputArg::Json => match serde_json::to_string_pretty(&answer) {
            Ok(json) => json + "\n",
            Err(error) => {
                report(&error.to_string());
                return EXIT_INTERNAL;
            }
        },
    };
    match print(&text) {
        EXIT_DONE if !answer.outcome.is_served() => EXIT_INPUT,
        code => code,
    }
}

fn question(args: &ExplainArgs) -> Result<Question, String> {
    let (method, url) = (args.method(), args.url());
    if args.url.is_none() && url.bytes().all(|byte| byte.is_ascii_uppercase()) {
        return Err(format!(
            "{url} is no URL: name one, too, as in `strait explain {url} http://shop.example/cart`"
        ));
    }
    let mut question = Question::parse(method, url)?;
    for header in &args.headers {
        question
            .header(header)
            .map_err(|error| format!("-H {error}"))?;
    }
    if let Some(client) = &args.client {
        question
            .by_client(client)
            .map_err(|error| format!("--client {error}"))?;
    }
    if let Some(identity) = &args.client_identity {
        question
            .with_identity(identity)
            .map_err(|error| format!("--identity {error}"))?;
    }
    if let Some(claims) = &args.jwt {
        question
            .with_claims(claims)
            .map_err(|error| format!("--jwt {error}"))?;
    }
    if let Some(listener) = &args.listener {
        question
            .at_listener(listener)
            .map_err(|error| format!("--listener {error}"))?;
    }
    Ok(question)
}

fn answer(args: &ExplainArgs, question: &Question, loaded: &Loaded) -> Explanation {
    let identity = certificates::located(args.identity.identity());
    let resources = &selected(&loaded.set, &identity.mesh_config, &identity);
    let store = Store::default();
    let scope = Scope::Proxy(&identity);
    let (delivered, now) = (Delivered::default(), certificates::now());
    let look = certificates::look(&store, resources, &delivered, scope, now);
    let found = [&loaded.diagnostics, &look.findings];
    let found: Vec<Diagnostic> = found.into_iter().flatten().cloned().collect();
    print_findings(&found);
    let snapshot = Arc::new(compiled(resources, &identity, &store));
    let survey = Survey::new(resources, &identity);
    explain::explain(question, &snapshot, &settings_of(&identity), &survey)
}

/// Returns how a proxy reads resources.
pub(super) fn load_options(reading: ReadingArgs, identity: &IdentityArgs) -> LoadOptions {
    let identity = identity.identity();
    LoadOptions {
        read: reading.options(&identity),
        fleet: Fleet {
            ingress: identity.ingress,
            ..Fleet::default()
        },
        ..LoadOptions::default()
    }
}

/// Loads the configuration of a proxy.
///
/// # Errors
///
/// Says which path cannot be read.
pub(super) fn load(
    paths: &[PathBuf],
    reading: ReadingArgs,
    identity: &IdentityArgs,
) -> Result<Loaded, String> {
    let loaded = config_loader::load_files(paths, load_options(reading, identity));
    match unreadable(&loaded.diagnostics) {
        Some(missing) => Err(format!("{}: {}", missing.location.file, missing.message)),
        None => Ok(loaded),
    }
}

/// Returns the settings of a proxy that carries no traffic.
pub(super) fn settings_of(identity: &Identity) -> ExchangeSettings {
    ExchangeSettings {
        is_sidecar: identity.mode == Mode::Sidecar,
        ..ExchangeSettings::default()
    }
}

/// Returns the certificates that resources of a proxy use.
pub(super) fn certificates_of(resources: &ResourceSet, identity: &Identity) -> Store {
    let store = Store::default();
    let (delivered, now) = (Delivered::default(), certificates::now());
    certificates::look(&store, resources, &delivered, Scope::Proxy(identity), now);
    store
}

/// Compiles resources for a proxy of this identity that carries no traffic.
pub(super) fn compiled(resources: &ResourceSet, identity: &Identity, store: &Store) -> Snapshot {
    let (registry, stats) = (Registry::default(), StatsRegistry::new(1));
    let state = (&registry, &stats);
    compiled_after(resources, identity, store, state, &Snapshot::default())
}

/// Compiles resources after a snapshot with the same registries, and shares what is the same.
pub(super) fn compiled_after(
    resources: &ResourceSet,
    identity: &Identity,
    store: &Store,
    (registry, stats): (&Registry, &StatsRegistry),
    previous: &Snapshot,
) -> Snapshot {
    let inputs = Inputs {
        now: registry.journal().at(clock::now()),
        resources,
        identity,
        registry,
        stats,
        certificates: store,
    };
    compile(&inputs, previous)
}

fn detail(args: &ExplainArgs) -> Detail {
    if args.all { Detail::All } else { Detail::Brief }
}

/// Reports on standard error that the configuration has errors, and how to list them; rejected resources do not affect
/// the explanation.
pub(super) fn print_findings(diagnostics: &[Diagnostic]) {
    let errors = diagnostics
        .iter()
        .filter(|diagnostic| diagnostic.severity == Severity::Error);
    let count = errors.clone().count();
    let Some(first) = errors.into_iter().next() else {
        return;
    };
    let (place, message) = (&first.location, &first.message);
    let errors = counted(count, "error");
    report(&format!(
        "{errors} in the configuration; what is rejected has no effect below. The first: {place}: {message}. \
         `strait check` shows all"
    ));
}

#[cfg(test)]
mod tests;
