//! Arguments of `strait test`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::command::args::{IdentityArgs, ReadingArgs};

const HELP: &str = "\
Asks for the requests and connections of test files what `strait explain` would answer, by the code that traffic runs \
through, and compares it with what they expect. Nothing is sent. A test file is named *.test.yaml and lies beside the \
YAML that it is about; `strait run` and `strait check` pass over it.

Examples:
  strait test                               every *.test.yaml below the current directory
  strait test mesh/cart.test.yaml --coverage
  strait test mesh -o junit > results.xml
  strait test mesh --watch                  again at each change
  strait test --init --labels istio=ingressgateway mesh > mesh/routes.test.yaml
  strait test --record access.log --labels istio=ingressgateway mesh > mesh/today.test.yaml
  strait test --schema > strait-test.schema.json

Exit codes: 0 all tests pass, 1 a test fails, a file has a mistake, or the coverage is below --min-coverage, 2 the usage \
is wrong.";

/// Arguments of `strait test`.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub struct TestArgs {
    /// Test file, directory that is searched for *.test.yaml, or a pattern such as 'mesh/*.test.yaml'; default: the
    /// current directory
    #[arg(value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    /// File or directory of the configuration, for all test files; default: `config` of each, else its directory. May be
    /// repeated
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
    /// Identity of the proxy, where a test file does not say it.
    #[command(flatten)]
    pub identity: IdentityArgs,
    /// Run only tests whose names contain this text
    #[arg(
        long,
        value_name = "TEXT",
        default_value = "",
        hide_default_value = true,
        env = "STRAIT_TEST_FILTER"
    )]
    pub filter: String,
    /// List the rules, subsets and rules of policies that no test has reached
    #[arg(long, env = "STRAIT_TEST_COVERAGE")]
    pub coverage: bool,
    /// Fail if tests reach fewer of them, in percent
    #[arg(long, value_name = "PERCENT", env = "STRAIT_TEST_MIN_COVERAGE", value_parser = clap::value_parser!(u8).range(0..=100))]
    pub min_coverage: Option<u8>,
    /// Run again at each change of a file, until interrupted
    #[arg(long, env = "STRAIT_TEST_WATCH")]
    pub watch: bool,
    /// Print a test file with a test for each rule of requests of the configuration, which is --config, else PATH, else the current directory
    #[arg(long, conflicts_with_all = ["watch", "record"])]
    pub init: bool,
    /// Print a test file with a test for each rule that an access log has requests of: a file in the format of --access-log json. Headers
    /// are left out, and the query where no rule needs it, or else its parameters with credentials
    #[arg(
        long,
        value_name = "LOG",
        conflicts_with = "watch",
        env = "STRAIT_TEST_RECORD"
    )]
    pub record: Option<PathBuf>,
    /// Print the JSON Schema of test files
    #[arg(long)]
    pub schema: bool,
    /// Format of the results
    #[arg(short, long, value_enum, default_value_t = Output::Text, env = "STRAIT_OUTPUT")]
    pub output: Output,
}

/// `--output`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// For a person at a terminal
    Text,
    /// One object, for programs
    Json,
    /// XML of JUnit, for CI servers
    Junit,
    /// Annotations of GitHub Actions
    Github,
}
