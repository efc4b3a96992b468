//! `strait test`: unit tests of routes, decided by the code that traffic runs through.

mod args;
mod compare;
mod coverage;
mod find;
mod report;
mod runner;
mod subject;
mod watch;
mod written;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use config_loader::diagnostic::render;
use config_loader::{Diagnostic, Loaded, Severity, TestFile};

use super::check::paths::Paths;
use super::explain;
use super::{EXIT_DONE, EXIT_INPUT, EXIT_USAGE, counted, print, report as complain};
pub use args::{Output, TestArgs};
use coverage::Coverage;
use report::FileReport;
use runner::{AskedProxies, AskedProxy};

/// JSON Schema of test files.
const SCHEMA: &str = include_str!("test/schema.json");

/// Runs the tests, and prints the results. Returns the exit code.
pub fn run(args: &TestArgs) -> u8 {
    if args.schema {
        return print(SCHEMA);
    }
    if args.init || args.record.is_some() {
        return match written(args) {
            Ok(text) => print(&text),
            Err(error) => {
                complain(&error);
                EXIT_INPUT
            }
        };
    }
    let files = match files(args) {
        Ok(files) => files,
        Err(error) => {
            complain(&error);
            return EXIT_USAGE;
        }
    };
    match args.watch {
        true => watch::run(args, &files, once),
        false => once(args, &files),
    }
}

/// Returns the test file of `--init` or `--record`.
fn written(args: &TestArgs) -> Result<String, String> {
    let given = [&args.config, &args.paths]
        .into_iter()
        .find(|paths| !paths.is_empty());
    let paths = given.cloned().unwrap_or_else(|| vec![PathBuf::from(".")]);
    let loaded = load(args, &paths)?;
    let proxy = AskedProxy::new(args.identity.identity(), &loaded.set, &[]);
    let Some(log) = &args.record else {
        return Ok(written::of_rules(&proxy));
    };
    let text = std::fs::read_to_string(log);
    let text = text.map_err(|error| format!("--record {}: {error}", log.display()))?;
    let (tests, unread) = written::of_log(&proxy, &text);
    if unread > 0 {
        let lines = counted(unread, "line");
        complain(&format!(
            "{}: {lines} left out: no request in JSON",
            log.display()
        ));
    }
    Ok(tests)
}

/// Loads a configuration, and complains of its errors.
fn load(args: &TestArgs, paths: &[PathBuf]) -> Result<Loaded, String> {
    let loaded = explain::load(paths, args.reading, &args.identity)?;
    explain::print_findings(&loaded.diagnostics);
    Ok(loaded)
}

/// Returns the test files that the arguments name.
fn files(args: &TestArgs) -> Result<Vec<PathBuf>, String> {
    let written = match args.paths.is_empty() {
        true => vec![PathBuf::from(".")],
        false => args.paths.clone(),
    };
    let paths = Paths::of(written)?;
    let mut files = Vec::new();
    for path in paths.files {
        match path.is_dir() {
            true => files.extend(find::test_files(&path)),
            false => files.push(path),
        }
    }
    match files.is_empty() {
        true => Err(
            "no file is named *.test.yaml; name test files, or a directory that has some"
                .to_owned(),
        ),
        false => Ok(files),
    }
}

fn once(args: &TestArgs, files: &[PathBuf]) -> u8 {
    let mut reports = Vec::new();
    let mut proxies = BTreeMap::new();
    let mut configurations = BTreeMap::new();
    let mut broken = false;
    for path in files {
        match of_file(args, path, &mut configurations, &mut proxies) {
            Ok(report) => reports.push(report),
            Err(error) => {
                complain(&error);
                broken = true;
            }
        }
    }
    let wants_coverage = args.coverage || args.min_coverage.is_some();
    let coverage = wants_coverage.then(|| {
        let outcomes = reports.iter().flat_map(|report| &report.outcomes);
        Coverage::of(proxies.values(), outcomes)
    });
    let text = match args.output {
        Output::Text => report::text(&reports, coverage.as_ref()),
        Output::Json => report::json(&reports, coverage.as_ref()),
        Output::Junit => report::junit(&reports),
        Output::Github => report::github(&reports),
    };
    let least = f64::from(args.min_coverage.unwrap_or_default());
    let reached = coverage.as_ref().map_or(100.0, Coverage::percent);
    if reached < least {
        complain(&format!(
            "coverage {reached:.1} % is below --min-coverage {least}"
        ));
    }
    if !broken && !args.filter.is_empty() && reports.iter().all(|one| one.outcomes.is_empty()) {
        complain(&format!("no test has {:?} in its name", args.filter));
        broken = true;
    }
    broken |= configurations.values().any(has_errors);
    match print(&text) {
        EXIT_DONE if broken || reached < least || report::counts(&reports).1 > 0 => EXIT_INPUT,
        code => code,
    }
}

/// Whether an object is rejected, so that tests would be of another configuration.
fn has_errors(loaded: &Loaded) -> bool {
    let mut found = loaded.diagnostics.iter();
    found.any(|one| one.severity == Severity::Error)
}

/// Configurations by their paths; each is loaded once.
type Configurations = BTreeMap<Vec<PathBuf>, Loaded>;

/// Runs the tests of a file.
///
/// # Errors
///
/// Says what is wrong with the file or its configuration; the text is for users.
fn of_file(
    args: &TestArgs,
    path: &Path,
    configurations: &mut Configurations,
    proxies: &mut BTreeMap<Vec<PathBuf>, AskedProxies>,
) -> Result<FileReport, String> {
    let (file, _) =
        config_loader::read_settings::<TestFile>(path).map_err(|found| rendered(&found))?;
    let paths = runner::config_of(&file, path, &args.config);
    if !configurations.contains_key(&paths) {
        let loaded = load(args, &paths)?;
        configurations.insert(paths.clone(), loaded);
    }
    let resources = &configurations[&paths].set;
    Ok(FileReport {
        file: path.display().to_string(),
        outcomes: runner::run(
            &file,
            &args.filter,
            resources,
            &args.identity,
            proxies.entry(paths).or_default(),
        ),
    })
}

/// Renders all findings about a file.
pub(super) fn rendered(found: &[Diagnostic]) -> String {
    let mut found = found.to_vec();
    config_loader::fill_source_lines_with(&mut found, None);
    render::text(&found, render::Style::Plain)
}
