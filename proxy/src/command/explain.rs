//! `strait explain`: why a request goes where it goes.

mod live;

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

use clap::{Args, ValueEnum};
use config_loader::{Diagnostic, Loaded, Severity};

use super::args::{IdentityArgs, ReadingArgs};
use super::{EXIT_DONE, EXIT_INPUT, EXIT_INTERNAL, EXIT_USAGE, counted, report};
use crate::app::unreadable;
use crate::compile::certificates::Scope;
use crate::compile::{Inputs, Survey, compile};
use crate::control::certificates;
use crate::explain::text::{self, Detail};
use crate::explain::{self, Explanation, Question};
use crate::registry::Registry;
use crate::snapshot::Snapshot;
use crate::telemetry::StatsRegistry;
use crate::tls::Store;

const HELP: &str = "\
Loads and compiles the configuration as `strait run` does, and uses the same matcher as traffic. Shows the listener, the \
virtual host, each rule up to the match and why it did not match (field, wanted, got, file:line), the rule that matched, \
its actions, and the destinations with the probability of each endpoint. Nothing is sent.

Give the identity of the proxy: a Gateway is served by the proxies whose labels it selects.

Examples:
  export STRAIT_CONFIG=./mesh STRAIT_LABELS=istio=ingressgateway
  strait explain GET http://shop.example/cart
  strait explain POST /cart -H 'Host: shop.example' -H 'end-user: jason'
  strait explain --listener 8081 GET http://shop.example/
  strait explain CONNECT tls://db.example:5432
  strait explain CONNECT tcp://127.0.0.1:9000
  strait explain --admin 127.0.0.1:15000 GET http://shop.example/cart
  strait explain -o json GET http://shop.example/ | jq .destinations

Exit codes: 0 a rule matches the request (even if no endpoint can serve it), 1 no rule does, nothing listens or --admin cannot be reached, 2 the usage is wrong.";

/// Arguments of `strait explain`.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub struct ExplainArgs {
    /// File or directory of resources (YAML or JSON); directories are read recursively. May be repeated
    #[arg(
        long = "config",
        value_name = "PATH",
        required_unless_present = "admin",
        env = "STRAIT_CONFIG",
        value_delimiter = ','
    )]
    pub paths: Vec<PathBuf>,
    /// How strictly it is read.
    #[command(flatten)]
    pub reading: ReadingArgs,
    /// Ask the admin server of a running proxy instead of files, for its current state. It knows its configuration and
    /// identity
    #[arg(long, value_name = "HOST:PORT")]
    pub admin: Option<String>,
    /// Who the proxy is.
    #[command(flatten)]
    pub identity: IdentityArgs,
    /// Listener of the request; default: the one with the URL's port, else one that serves the host
    #[arg(long, value_name = "IP:PORT|PORT")]
    pub listener: Option<String>,
    /// Address of the client, for session affinity and hashing by address
    #[arg(long, value_name = "IP")]
    pub client: Option<String>,
    /// Header of the request; may be repeated
    #[arg(short = 'H', long = "header", value_name = "NAME: VALUE")]
    pub headers: Vec<String>,
    /// Format of the output
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    pub output: Output,
    /// Show every rule and every condition, not only the deciding ones
    #[arg(long)]
    pub all: bool,
    /// Method of the request
    pub method: String,
    /// http://host:port/path?query, or a path with -H 'Host: ...'; tls://name:port or tcp://host:port for connections
    pub url: String,
}

/// `--output`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// For a person at a terminal
    Text,
    /// One object, for programs
    Json,
}

/// Loads, compiles, asks, prints.
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
            let loaded = config_loader::load_files_with(
                &args.paths,
                args.reading.options(&args.identity.ejection),
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
    let mut question = Question::parse(&args.method, &args.url)?;
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
    if let Some(listener) = &args.listener {
        question
            .at_listener(listener)
            .map_err(|error| format!("--listener {error}"))?;
    }
    Ok(question)
}

fn answer(args: &ExplainArgs, question: &Question, loaded: &Loaded) -> Explanation {
    let (identity, resources) = (args.identity.identity(), &*loaded.set);
    let store = Store::default();
    let scope = Scope::Proxy(&identity);
    let wanting = (resources, &*identity.members);
    let look = certificates::look(&store, wanting, scope, certificates::now());
    let found = [&loaded.diagnostics, &look.findings];
    let found: Vec<Diagnostic> = found.into_iter().flatten().cloned().collect();
    tell(&found);
    let registry = Registry::default();
    let inputs = Inputs {
        now: registry.journal().now(),
        resources,
        identity: &identity,
        registry: &registry,
        stats: &StatsRegistry::new(1),
        certificates: &store,
    };
    let snapshot = Arc::new(compile(&inputs, &Snapshot::default()));
    explain::explain(question, &snapshot, &Survey::new(resources, &identity))
}

fn detail(args: &ExplainArgs) -> Detail {
    if args.all { Detail::All } else { Detail::Brief }
}

/// Says on standard error that there are errors, and how to see them; refused resources have no say in the answer.
fn tell(diagnostics: &[Diagnostic]) {
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
        "{errors} in the configuration; what is refused has no say below. The first: {place}: {message}. \
         `strait check` shows all"
    ));
}

#[cfg(test)]
mod tests;
