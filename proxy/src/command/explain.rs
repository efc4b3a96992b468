//! `strait explain`: explains how the proxy routes a request.

mod args;
mod live;

use std::io::Write;
use std::sync::Arc;

use config_loader::{Diagnostic, Fleet, Loaded, ResourceSet, Severity};

pub use args::{ExplainArgs, Output};

use super::{EXIT_DONE, EXIT_INPUT, EXIT_INTERNAL, EXIT_USAGE, counted, report};
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
            let loaded = config_loader::load_files(
                &args.files.paths,
                config_loader::LoadOptions {
                    read: args.reading.options(&args.identity.identity()),
                    fleet: Fleet {
                        ingress: args.identity.identity().ingress,
                        ..Fleet::default()
                    },
                    ..config_loader::LoadOptions::default()
                },
            );
            if let Some(missing) = unreadable(&loaded.diagnostics) {
                report(&format!("{}: {}", missing.location.file, missing.message));
                return EXIT_INPUT;
            }
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
        Output::Text => text::render(&answer, detail(args)),
        Output::Json => match serde_json::to_string_pretty(&answer) {
            Ok(json) => json + "\n",
            Err(error) => {
                report(&error.to_string());
                return EXIT_INTERNAL;
            }
        },
    };
    let mut out = std::io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    match written {
        Err(_) => EXIT_INTERNAL, // the reader went away
        Ok(()) if answer.outcome.is_served() => EXIT_DONE,
        Ok(()) => EXIT_INPUT,
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
    let settings = ExchangeSettings {
        is_sidecar: identity.mode == Mode::Sidecar,
        ..ExchangeSettings::default()
    };
    let survey = Survey::new(resources, &identity);
    explain::explain(question, &snapshot, &settings, &survey)
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
    let registry = Registry::default();
    let inputs = Inputs {
        now: registry.journal().at(clock::now()),
        resources,
        identity,
        registry: &registry,
        stats: &StatsRegistry::new(1),
        certificates: store,
    };
    compile(&inputs, &Snapshot::default())
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
