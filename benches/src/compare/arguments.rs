//! Command line of `compare`.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::compare::configure::Proxy;
use crate::compare::failure::Failure;
use crate::compare::scenario::Scenario;
use crate::compare::tool::{self, Tool, Wanted};
use crate::load;

/// Puts the same work through Strait, nginx, HAProxy and Envoy in one run, and compares the CPU time and memory.
///
/// Each proxy has one worker on one core; the load generator and the upstream have another core. Programs that
/// are not installed are named, with the command that installs them, and left out. Build the proxy first:
/// `cargo build --release -p proxy`.
#[derive(Clone, Debug, Parser)]
#[command(name = "compare", version)]
pub struct Arguments {
    /// Scenarios to run; may be given more than once. Default: all.
    #[arg(long = "scenario", value_name = "NAME", value_enum)]
    pub scenarios: Vec<Scenario>,

    /// Number of rounds, in each of which every proxy has one turn; the median is reported.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub rounds: u32,

    /// Length of one turn under load, in seconds.
    #[arg(long, value_name = "S", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=600))]
    pub seconds: u32,

    /// Idle connections to open when memory per connection is measured.
    #[arg(long, value_name = "N", default_value_t = 5_000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub connections: u32,

    /// File that gets the Markdown tables, in addition to standard output.
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,

    /// The binary of Strait. Default: `strait` beside this program.
    #[arg(long, value_name = "PATH")]
    pub strait: Option<PathBuf>,

    /// Another binary of Strait: it takes its turns in the same run, as `Strait before`.
    #[arg(long, value_name = "PATH")]
    pub before: Option<PathBuf>,

    /// Proxies to measure; may be given more than once. Default: all that are installed.
    #[arg(long = "proxy", value_name = "NAME", value_enum)]
    pub proxies: Vec<Proxy>,

    /// The core for the proxies. Default: the last one.
    #[arg(long, value_name = "CORE")]
    pub proxy_core: Option<usize>,

    /// The core for the load generator and the upstream. Default: the first one.
    #[arg(long, value_name = "CORE")]
    pub load_core: Option<usize>,

    /// Keep the directory with the generated configurations and logs.
    #[arg(long)]
    pub keep: bool,

    /// Subcommand to run instead of the comparison.
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// Subcommands other than the comparison.
#[derive(Clone, Debug, Subcommand)]
pub enum Command {
    /// Be the upstream: print the ports, then answer every request until killed.
    #[command(hide = true)]
    Upstream {
        /// Loopback addresses to answer on, from 127.0.0.1 on.
        #[arg(long, default_value_t = 1)]
        addresses: u16,
    },
    /// Be a load generator: put load on a port for a while, then print what was counted.
    #[command(hide = true)]
    Generate(Generate),
    /// Be the program `load`.
    #[command(hide = true)]
    Load(Box<load::arguments::Arguments>),
}

/// Arguments of this program's own load generator.
#[derive(Args, Clone, Debug)]
pub struct Generate {
    /// Kind of load.
    #[arg(value_enum)]
    pub work: GeneratedWork,

    /// Port of 127.0.0.1 to send the load to.
    #[arg(long)]
    pub port: u16,

    /// Connections open at once.
    #[arg(long)]
    pub connections: u32,

    /// Requests in flight at once (`rotation` only).
    #[arg(long, default_value_t = 64)]
    pub in_flight: u32,

    /// Request path (`rotation` only).
    #[arg(long, default_value = "/")]
    pub path: String,

    /// Process whose CPU time is counted while all connections are open (`rotation` only).
    #[arg(long)]
    pub pid: Option<u32>,

    /// Time after which nothing new is started, in seconds.
    #[arg(long)]
    pub seconds: u64,

    /// The certificate that the proxy must show, as PEM.
    #[arg(long)]
    pub certificate: Option<PathBuf>,
}

/// Loads of this program's own generator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum GeneratedWork {
    /// Connections, each with a full TLS handshake and one request.
    Full,
    /// Connections, each with a resumed TLS session and one request.
    Resumed,
    /// Requests over many keep-alive connections in turn.
    Rotation,
    /// A fixed number of bytes through a TCP connection, both ways at once.
    Bulk,
}

impl Arguments {
    /// Returns the scenarios to run, each once, in the order of the tables.
    pub fn chosen(&self) -> Vec<Scenario> {
        let all = Scenario::ALL.into_iter();
        all.filter(|scenario| self.scenarios.is_empty() || self.scenarios.contains(scenario))
            .collect()
    }

    /// Returns the number of loopback addresses that the upstream must listen on.
    pub fn upstream_addresses(&self) -> u16 {
        let chosen = self.chosen().into_iter();
        chosen.map(Scenario::upstream_addresses).max().unwrap_or(1)
    }

    /// Returns the maximum number of files that a program of this run has open at once.
    pub fn open_files(&self) -> u64 {
        let idle = u64::from(self.connections) * 3 + 4096;
        let chosen = self.chosen().into_iter();
        chosen.map(Scenario::open_files).fold(idle, u64::max)
    }

    /// Returns the programs to look for, and their paths.
    ///
    /// # Errors
    /// If the path of this program or the working directory is not known.
    pub fn wanted(&self) -> Result<Wanted, Failure> {
        let before = self.before.as_deref();
        let is_left_out = |proxy: Proxy| match proxy {
            Proxy::Before => before.is_none(),
            _ => !self.proxies.is_empty() && !self.proxies.contains(&proxy),
        };
        let left_out = Proxy::ALL.into_iter().filter(|proxy| is_left_out(*proxy));
        let mut left_out: BTreeSet<Tool> = left_out.map(Proxy::tool).collect();
        if left_out.contains(&Tool::Nginx) {
            left_out.insert(Tool::NginxStream);
        }
        Ok(Wanted {
            strait: tool::strait_binary(self.strait.as_deref())?,
            before: before
                .map(|path| tool::strait_binary(Some(path)))
                .transpose()?,
            left_out,
        })
    }

    /// Length of one turn under load.
    pub fn turn(&self) -> Duration {
        Duration::from_secs(u64::from(self.seconds))
    }
}

/// Reads the command line. Prints the help or a usage error and exits when appropriate.
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

    #[test]
    fn proxies_that_are_not_named_are_left_out() {
        let left_out = |more: &[&str]| {
            let line = ["compare"].iter().chain(more);
            let wanted = Arguments::parse_from(line).wanted().unwrap();
            (wanted.left_out, wanted.before.is_some())
        };
        assert_eq!(left_out(&[]), (BTreeSet::from([Tool::Before]), false));
        let (named, before) = left_out(&["--proxy", "haproxy", "--before", "other/strait"]);
        let expected = [Tool::Strait, Tool::Nginx, Tool::NginxStream, Tool::Envoy];
        assert_eq!(named, BTreeSet::from(expected));
        assert!(before);
    }
}
