//! The command line of `compare`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, Subcommand};

use crate::compare::scenario::Scenario;

/// Puts the same work through Strait, nginx, HAProxy and Envoy in one run, and compares the CPU time and memory.
///
/// Each proxy has one worker on one core; the load generator and the upstream have another core. Programs that
/// are not installed are named, with the command that installs them, and left out. Build the proxy first:
/// `cargo build --release -p proxy`.
#[derive(Clone, Debug, Parser)]
#[command(name = "compare", version)]
pub struct Arguments {
    /// What to measure; may be given more than once. Default: all.
    #[arg(long = "scenario", value_name = "NAME", value_enum)]
    pub scenarios: Vec<Scenario>,

    /// How often each proxy gets its turn; the median is reported.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub rounds: u32,

    /// Length of one turn under load, in seconds.
    #[arg(long, value_name = "S", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=600))]
    pub seconds: u32,

    /// Idle connections to open when memory per connection is measured.
    #[arg(long, value_name = "N", default_value_t = 5_000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub connections: u32,

    /// Where to write the Markdown tables, besides standard output.
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,

    /// The binary of Strait. Default: `strait` beside this program.
    #[arg(long, value_name = "PATH")]
    pub strait: Option<PathBuf>,

    /// The core for the proxies. Default: the last one.
    #[arg(long, value_name = "CORE")]
    pub proxy_core: Option<usize>,

    /// The core for the load generator and the upstream. Default: the first one.
    #[arg(long, value_name = "CORE")]
    pub load_core: Option<usize>,

    /// Keep the directory with the generated configurations and logs.
    #[arg(long)]
    pub keep: bool,

    /// What to do instead of measuring.
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// What the program can do besides measuring.
#[derive(Clone, Debug, Subcommand)]
pub enum Command {
    /// Be the upstream: print the port, then answer every request until killed.
    #[command(hide = true)]
    Upstream,
}

impl Arguments {
    /// The scenarios to run, each once, in the order of the tables.
    pub fn chosen(&self) -> Vec<Scenario> {
        let all = Scenario::ALL.into_iter();
        all.filter(|scenario| self.scenarios.is_empty() || self.scenarios.contains(scenario))
            .collect()
    }

    /// Length of one turn under load.
    pub fn turn(&self) -> Duration {
        Duration::from_secs(u64::from(self.seconds))
    }
}

/// Reads the command line; prints help or the usage error and exits if that is what it asks for.
pub fn parse() -> Arguments {
    Arguments::parse()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn command_line_is_well_formed() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn no_scenario_means_all_in_order() {
        let arguments = Arguments::parse_from(["compare"]);
        assert_eq!(arguments.chosen(), Scenario::ALL);
    }

    #[test]
    fn named_scenarios_run_once_and_in_table_order() {
        let line = [
            "compare",
            "--scenario",
            "h2c",
            "--scenario",
            "small",
            "--scenario",
            "h2c",
        ];
        assert_eq!(
            Arguments::parse_from(line).chosen(),
            [Scenario::Small, Scenario::H2c]
        );
    }
}
