//! `strait check`: validate configuration and list every finding.

use std::io::{IsTerminal, Write};

use clap::{Args, ValueEnum};
use config_loader::Severity;
use config_loader::diagnostic::render;

use super::args::ConfigArgs;
use super::{EXIT_DONE, EXIT_INPUT, EXIT_INTERNAL};

/// Arguments of `strait check`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  strait check --config ./mesh
  strait check --config ./mesh -o json | jq '.[] | .code'
  strait check --config ./mesh -o github       annotations for a pull request

Exits with 1 when there is an error; warnings and notes alone exit with 0.")]
pub struct CheckArgs {
    /// Where configuration comes from.
    #[command(flatten)]
    pub config: ConfigArgs,
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
    let loaded = config_loader::load_files(&args.config.paths);
    let text = match args.output {
        Output::Text => render::text(&loaded.diagnostics, style()),
        Output::Json => render::json(&loaded.diagnostics),
        Output::Github => render::github(&loaded.diagnostics),
    };
    let mut out = std::io::stdout().lock();
    if out
        .write_all(text.as_bytes())
        .and_then(|()| out.flush())
        .is_err()
    {
        return EXIT_INTERNAL; // the reader went away
    }
    let count = |severity: Severity| {
        loaded
            .diagnostics
            .iter()
            .filter(|diagnostic| diagnostic.severity == severity)
            .count()
    };
    let (errors, warnings) = (count(Severity::Error), count(Severity::Warning));
    if args.output == Output::Text {
        let objects = loaded.set.len();
        let summary = format!("{objects} objects, {errors} errors, {warnings} warnings\n");
        let _ = out.write_all(summary.as_bytes());
    }
    if errors > 0 || (args.deny_warnings && warnings > 0) {
        EXIT_INPUT
    } else {
        EXIT_DONE
    }
}

/// Colours for a terminal, plain text for everything else.
fn style() -> render::Style {
    if std::io::stdout().is_terminal() {
        render::Style::Coloured
    } else {
        render::Style::Plain
    }
}
