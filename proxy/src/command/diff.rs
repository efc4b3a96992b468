//! `strait diff`: which requests a change of the configuration moves, before it is applied.

mod found;
mod render;
mod source;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use clap::{Args, ValueEnum};
use config_loader::{Diagnostic, Loaded, ResourceSet, WrittenProxy};
use serde_json::json;

use super::args::{IdentityArgs, ReadingArgs};
use super::explain::{certificates_of, compiled_after, load_options, print_findings, settings_of};
use super::{EXIT_DONE, EXIT_INPUT, EXIT_USAGE, print, report as complain};
use crate::compile::Survey;
use crate::control::selected::selected;
use crate::difference::report::Report;
use crate::difference::{Side, compare};
use crate::identity::Identity;
use crate::snapshot::Snapshot;
use crate::telemetry::StatsRegistry;
use found::{Differences, OfProxy};
use source::Configuration;
use traffic::registry::Registry;

const HELP: &str = "\
Compares two configurations by what becomes of requests. The rules of both cut the requests into classes; each class whose outcome \
differs is shown with a request that is in it, what it matches before and after, and each field that differs. Nothing is sent: the \
answers are those of `strait explain`.

OLD and NEW are each a file or directory, several of them with commas, git:REVISION or git:REVISION:PATH, or - for standard input.

Examples:
  strait diff git:main mesh                  what a branch changes
  strait diff git:main:mesh mesh -o markdown for a comment on a pull request
  strait diff old.yaml new.yaml --for proxies.yaml
  strait diff mesh mesh-next --fail-on breaking

Exit codes: 0 nothing differs (with --fail-on breaking: nothing that breaks a request), 1 something does, or an input cannot be read, \
2 the usage is wrong.";

/// Arguments of `strait diff`.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub struct DiffArgs {
    /// Configuration before the change
    #[arg(value_name = "OLD")]
    pub old: String,
    /// Configuration after the change
    #[arg(value_name = "NEW")]
    pub new: String,
    /// Strictness of reading.
    #[command(flatten)]
    pub reading: ReadingArgs,
    /// Identity of the proxy.
    #[command(flatten)]
    pub identity: IdentityArgs,
    /// File with several proxies, which are all compared: a mapping of names to `mode`, `namespace`, `labels`, `cluster`, `locality` and
    /// `network`
    #[arg(long = "for", value_name = "FILE", env = "STRAIT_DIFF_FOR")]
    pub proxies: Option<PathBuf>,
    /// Differences that make the exit code 1
    #[arg(long, value_enum, default_value_t = FailOn::Any, env = "STRAIT_DIFF_FAIL_ON")]
    pub fail_on: FailOn,
    /// Differences that are not reported
    #[arg(long, value_enum, value_delimiter = ',', env = "STRAIT_DIFF_IGNORE")]
    pub ignore: Vec<Ignored>,
    /// Format of the differences
    #[arg(short, long, value_enum, default_value_t = Output::Text, env = "STRAIT_OUTPUT")]
    pub output: Output,
}

/// `--fail-on`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FailOn {
    /// Every difference
    Any,
    /// A request that was served is refused or redirected elsewhere, or a request loses a protection: a denial, a timeout, limits, TLS
    Breaking,
}

/// `--ignore`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Ignored {
    /// Endpoints that are added or removed
    Endpoints,
    /// Findings of `strait check` that appear or go
    Findings,
}

/// `--output`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// For a person at a terminal
    Text,
    /// One object, for programs
    Json,
    /// For a comment on a pull request, of at most 60 kB
    Markdown,
}

/// Compares the configurations, and prints what differs. Returns the exit code.
pub fn run(args: &DiffArgs) -> u8 {
    let found = match differences(args) {
        Ok(found) => found,
        Err((error, code)) => {
            complain(&error);
            return code;
        }
    };
    let text = match args.output {
        Output::Text => render::text(&found),
        Output::Json => json(&found),
        Output::Markdown => render::markdown(&found),
    };
    let fails = match args.fail_on {
        FailOn::Any => !found.is_empty(),
        FailOn::Breaking => found.proxies.iter().any(|one| one.report.is_breaking()),
    };
    match print(&text) {
        EXIT_DONE if fails => EXIT_INPUT,
        code => code,
    }
}

fn json(found: &Differences) -> String {
    let proxies = found
        .proxies
        .iter()
        .map(|one| json!({"proxy": one.name, "differences": one.report}));
    let findings = |all: &[Diagnostic]| {
        let all = all.iter().map(|one| {
            json!({"code": one.code.to_string(), "location": one.location.to_string(), "message": one.message})
        });
        all.collect::<Vec<_>>()
    };
    let whole = json!({
        "proxies": proxies.collect::<Vec<_>>(),
        "findings": {"appeared": findings(&found.appeared), "gone": findings(&found.gone)},
    });
    format!("{whole:#}\n")
}

/// Returns what differs, or an error with its exit code.
fn differences(args: &DiffArgs) -> Result<Differences, (String, u8)> {
    let proxies = match &args.proxies {
        None => BTreeMap::from([(String::new(), WrittenProxy::default())]),
        Some(path) => source::proxies(path).map_err(|error| (error, EXIT_INPUT))?,
    };
    let options = load_options(args.reading, &args.identity);
    let load = |written: &str| source::load(written, options.clone());
    if args.old == "-" && args.new == "-" {
        return Err(("only one of OLD and NEW can be -".to_owned(), EXIT_USAGE));
    }
    let old = load(&args.old).map_err(|error| (error, EXIT_INPUT))?;
    let new = load(&args.new).map_err(|error| (error, EXIT_INPUT))?;
    for one in [&old, &new] {
        print_findings(&one.loaded.diagnostics);
    }
    let proxies = proxies.into_iter().map(|(name, written)| OfProxy {
        name,
        report: of_proxy(args, args.identity.identity_of(&written), [&old, &new]),
    });
    let has_findings = !args.ignore.contains(&Ignored::Findings);
    let only = |these: &Loaded, others: &Loaded| {
        let is_in = |one: &&Diagnostic| {
            let mut others = others.diagnostics.iter();
            has_findings && !others.any(|other| is_same(one, other))
        };
        these.diagnostics.iter().filter(is_in).cloned().collect()
    };
    Ok(Differences {
        proxies: proxies.collect(),
        appeared: only(&new.loaded, &old.loaded),
        gone: only(&old.loaded, &new.loaded),
    })
}

/// Whether two findings are the same, on whatever line.
fn is_same(one: &Diagnostic, other: &Diagnostic) -> bool {
    (one.code, &one.field, &one.message) == (other.code, &other.field, &other.message)
}

/// Compiles both configurations for a proxy, the later one after the earlier one, and compares them.
fn of_proxy(args: &DiffArgs, identity: Identity, [old, new]: [&Configuration; 2]) -> Report {
    let (registry, stats) = (Registry::default(), StatsRegistry::new(1));
    let compiled = |of: &Configuration, previous: &Snapshot| {
        let resources = selected(&of.loaded.set, &identity.mesh_config, &identity);
        let store = certificates_of(&resources, &identity);
        Arc::new(compiled_after(
            &resources,
            &identity,
            &store,
            (&registry, &stats),
            previous,
        ))
    };
    let before = compiled(old, &Snapshot::default());
    let after = compiled(new, &before);
    let nothing = ResourceSet::default();
    let settings = settings_of(&identity);
    let side = |snapshot| Side {
        snapshot,
        settings: &settings,
        survey: Survey::new(&nothing, &identity),
    };
    let mut report = compare(&side(before), &side(after));
    let witnesses = report.requests.iter_mut();
    for witness in witnesses.flat_map(|entry| &mut entry.witnesses) {
        for (rule, of) in [(&mut witness.before, old), (&mut witness.after, new)] {
            if let Some(rule) = rule {
                rule.source.file = of.shown(&rule.source.file);
            }
        }
    }
    if args.ignore.contains(&Ignored::Endpoints) {
        report.endpoints.clear();
    }
    report
}
