//! `strait simulate`: plays failures on a virtual clock, through the code that traffic runs through.

mod args;
mod html;
mod schema;
mod text;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use config_loader::diagnostic::suggest;
use config_loader::{EventAction, Location, ResourceSet, Scenario};

use super::args::OutputArg;
use super::test::rendered;
use super::{EXIT_DONE, EXIT_INPUT, EXIT_INTERNAL, explain, print, report as complain};
use crate::control::selected::selected;
use crate::explain::Question;
use crate::identity::Identity;
use crate::simulate::{Inputs, Report, Unknown, run as simulate};
pub use args::SimulateArgs;

/// Runs a scenario, and prints its report. Returns the exit code.
pub fn run(args: &SimulateArgs) -> u8 {
    if args.schema {
        return print(&schema::text());
    }
    let report = match report(args) {
        Ok(report) => report,
        Err(error) => {
            complain(&error);
            return EXIT_INPUT;
        }
    };
    if let Some(path) = &args.html
        && let Err(error) = std::fs::write(path, html::page(&report))
    {
        complain(&format!("--html {}: {error}", path.display()));
        return EXIT_INPUT;
    }
    let text = match args.output {
        OutputArg::Text => text::render(&report),
        OutputArg::Json => match serde_json::to_string_pretty(&report) {
            Ok(json) => json + "\n",
            Err(error) => {
                complain(&error.to_string());
                return EXIT_INTERNAL;
            }
        },
    };
    match print(&text) {
        EXIT_DONE if !report.passed() => EXIT_INPUT,
        code => code,
    }
}

/// Reads a scenario and its configurations, and runs it.
fn report(args: &SimulateArgs) -> Result<Report, String> {
    let path = args.scenario.as_deref().unwrap_or(Path::new(""));
    let read = config_loader::read_settings::<Scenario>(path);
    let (scenario, _) = read.map_err(|found| rendered(&found))?;
    let identity = args.identity.identity_of(&scenario.proxy);
    let directory = path.parent().unwrap_or(Path::new(""));
    let at = |written: &str| {
        let path = directory.join(written);
        let is_here = path.as_os_str().is_empty();
        if is_here { PathBuf::from(".") } else { path }
    };
    let paths = match args.config.is_empty() {
        true => vec![at(scenario.config.as_deref().unwrap_or_default())],
        false => args.config.clone(),
    };
    let resources = load(args, &paths, &identity)?;
    let later = scenario.events.iter().map(|event| match &event.action {
        EventAction::Config(written) => load(args, &[at(written)], &identity).map(Some),
        _ => Ok(None),
    });
    let later = later.collect::<Result<Vec<_>, String>>()?;
    let question = question(&scenario).map_err(|error| {
        let place = &scenario.load.location;
        format!("{place}: {error}")
    })?;
    let inputs = Inputs {
        scenario: &scenario,
        question: &question,
        identity: &identity,
        resources: &resources,
        later: &later,
        seed: args.seed,
    };
    simulate(&inputs).map_err(|unknown| {
        let lines = unknown.iter().map(|one| not_there(one, &scenario));
        lines.collect::<Vec<_>>().join("\n")
    })
}

fn load(
    args: &SimulateArgs,
    paths: &[PathBuf],
    identity: &Identity,
) -> Result<Arc<ResourceSet>, String> {
    let loaded = explain::load(paths, args.reading, &args.identity)?;
    explain::print_findings(&loaded.diagnostics);
    Ok(Arc::new(selected(
        &loaded.set,
        &identity.mesh_config,
        identity,
    )))
}

fn question(scenario: &Scenario) -> Result<Question, String> {
    let load = &scenario.load;
    let mut question = Question::parse(&load.method, &load.url)?;
    for (name, value) in &load.headers {
        question.header(&format!("{name}: {value}"))?;
    }
    Ok(question.outcome_only())
}

/// Describes a name that no endpoint has, with its location and the nearest name.
fn not_there(unknown: &Unknown, scenario: &Scenario) -> String {
    let place: &Location = match unknown.at {
        Ok(event) => &scenario.events[event].location,
        Err(expected) => &scenario.expected[expected].location,
    };
    let name = unknown.written.split_once(' ').map_or("", |(_, name)| name);
    let known = || {
        unknown
            .known
            .iter()
            .map(|key| key.rsplit('/').next().unwrap_or(key))
    };
    let help = match suggest::nearest(name, known()) {
        Some(near) => format!("did you mean `{near}`?"),
        None if unknown.known.is_empty() => "the requests reach no endpoint".to_owned(),
        None => format!("known are {}", known().collect::<Vec<_>>().join(", ")),
    };
    format!("{place}: the requests reach no {}: {help}", unknown.written)
}
