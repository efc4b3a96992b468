//! Arguments of `strait simulate`.

use std::path::PathBuf;

use clap::Args;

use crate::command::args::{IdentityArgs, OutputArg, ReadingArgs};

const HELP: &str = "\
Plays the events of a scenario on a virtual clock, through the balancer, outlier detection, health checks, retries, failover and \
limits that traffic runs through. Nothing is sent; the same seed prints the same bytes. A scenario is YAML beside the \
configuration, named *.scenario.yaml; `strait run` and `strait check` pass over it.

Examples:
  strait simulate examples/clusters-failover/outage.scenario.yaml
  strait simulate outage.scenario.yaml --html outage.html
  strait simulate outage.scenario.yaml --seed 7 -o json
  strait simulate --schema > strait-simulate.schema.json

Exit codes: 0 all expectations hold, 1 one does not, or the scenario has a mistake, 2 the usage is wrong.";

/// Arguments of `strait simulate`.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub struct SimulateArgs {
    /// Scenario to play
    #[arg(value_name = "SCENARIO", required_unless_present = "schema")]
    pub scenario: Option<PathBuf>,
    /// File or directory of the configuration; default: `config` of the scenario, else its directory. May be repeated
    #[arg(
        short = 'f',
        long = "config",
        visible_alias = "filename",
        value_name = "PATH",
        env = "STRAIT_CONFIG",
        value_delimiter = ','
    )]
    pub config: Vec<PathBuf>,
    /// Strictness of reading.
    #[command(flatten)]
    pub reading: ReadingArgs,
    /// Identity of the proxies, where the scenario does not say it.
    #[command(flatten)]
    pub identity: IdentityArgs,
    /// Seed of all random numbers
    #[arg(
        long,
        value_name = "NUMBER",
        default_value_t = 1,
        env = "STRAIT_SIMULATE_SEED"
    )]
    pub seed: u64,
    /// Write the report as one HTML page with charts, too
    #[arg(long, value_name = "FILE", env = "STRAIT_SIMULATE_HTML")]
    pub html: Option<PathBuf>,
    /// Print the JSON Schema of scenarios
    #[arg(long)]
    pub schema: bool,
    /// Format of the report
    #[arg(short, long, value_enum, default_value_t = OutputArg::Text, env = "STRAIT_OUTPUT")]
    pub output: OutputArg,
}
