//! The commands of the binary: one file each.
//!
//! Only start-up errors live here: context for a person at a terminal, and an exit code. Exit codes: 0 done, 1 the
//! input is wrong, 2 the usage is wrong, 70 an internal error.

mod admin_client;
mod annotations;

pub mod args;

pub mod backend;

pub mod check;

pub mod completions;

pub mod control;

pub mod crds;

pub mod demo;

pub mod diff;

mod exit;

pub mod explain;
mod fit;

pub mod health;

pub mod imports;

pub mod inject;

pub mod iptables;
mod load;

pub mod migrate;

mod otel;
mod own_settings;
mod pod;
mod precedence;

pub mod run;
pub mod simulate;

pub mod tap;

pub mod test;

pub mod top;

use std::ffi::OsString;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use config_loader::resource::istio::MeshConfig;

pub use exit::{EXIT_DONE, EXIT_INPUT, EXIT_INTERNAL, EXIT_USAGE};
use exit::{counted, print, report};

use crate::app::Reread;

const ABOUT: &str = "Strait routes live traffic by the mesh YAML that you already have.

It reads Istio, flomesh, Karmada and Gloo Mesh resources from files, follows their changes, and serves what the \
Gateways with a matching selector describe. No control plane is needed.";

const EXAMPLES: &str = "\
Examples:
  strait demo                                  three clusters and an edge gateway
  strait check --config ./mesh                 find every mistake in a directory of YAML
  strait run --config ./mesh --labels istio=ingressgateway
                                               serve it, and follow every change
  strait explain --config ./mesh --labels istio=ingressgateway GET http://shop.example/cart
                                               why a request goes where it goes

Exit codes: 0 done, 1 the input is wrong, 2 the usage is wrong, 70 an internal error.";

/// The command line.
#[derive(Debug, Parser)]
#[command(name = "strait", version, about = ABOUT, after_help = EXAMPLES, max_term_width = 100)]
pub struct Cli {
    /// Command to run.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serve, and follow every change of the configuration
    Run(Box<run::RunArgs>),
    /// Check a configuration: every finding with its location and fix
    #[command(visible_alias = "validate")]
    Check(check::CheckArgs),
    /// Show why a request goes where it goes
    Explain(explain::ExplainArgs),
    /// Show which requests a change of the configuration moves, before it is applied
    Diff(Box<diff::DiffArgs>),
    /// Test routes as code is tested: requests, and what must become of them
    Test(test::TestArgs),
    /// Show what would happen when clusters, zones or endpoints fail, on a virtual clock
    Simulate(Box<simulate::SimulateArgs>),
    /// Show the requests of a running proxy as they end
    Tap(tap::TapArgs),
    /// Show rates, failures and latency of a running proxy
    Top(top::TopArgs),
    /// Tell whether the proxy on this machine is ready, by the exit code
    Health(health::HealthArgs),
    /// Wait until the proxy on this machine is ready
    Wait(health::WaitArgs),
    /// Make the proxy on this machine tell its clients to go elsewhere, when its pod begins to end
    Drain(health::DrainArgs),
    /// Make the kernel hand a workload's connections to its sidecar
    Iptables(iptables::IptablesArgs),
    /// Add a sidecar to the workloads of files and pipes
    Inject(Box<inject::InjectArgs>),
    /// Remove the sidecar that `inject` has added
    Uninject(inject::UninjectArgs),
    /// Show what Ingresses become, and what moves from another mesh
    Migrate(migrate::MigrateArgs),
    /// Write the ServiceImports of one cluster from what other clusters export
    Imports(imports::ImportsArgs),
    /// Keep configuration durably and serve it as a Kubernetes API server does
    Control(Box<control::ControlArgs>),
    /// Run three clusters and an edge gateway in one process, to try things out
    Demo(demo::DemoArgs),
    /// Be a backend that says who it is, or a client that counts who responds
    Backend(backend::BackendArgs),
    /// Print the CustomResourceDefinitions of the kinds that are read
    Crds(crds::CrdsArgs),
    /// Print a completion script for a shell
    Completions(completions::CompletionsArgs),
    /// Print the version
    Version,
}

/// Parses the command line and runs it.
pub fn main(args: impl Iterator<Item = OsString>) -> ExitCode {
    let cli = match parse(args) {
        Ok(cli) => cli,
        Err(error) => {
            // help and version are answers, not errors
            let code = if error.use_stderr() {
                EXIT_USAGE
            } else {
                EXIT_DONE
            };
            let _ = error.print();
            return ExitCode::from(code);
        }
    };
    // What went wrong is on standard error already; the code tells it from a mistake in the input.
    let code = catch_unwind(AssertUnwindSafe(|| dispatch(&cli.command)));
    ExitCode::from(code.unwrap_or(EXIT_INTERNAL))
}

/// The command line. The demo shows its own screen, on which only warnings are worth a line.
fn command_line() -> clap::Command {
    Cli::command().mut_subcommand("demo", |demo| {
        demo.mut_arg("log_level", |level| level.default_value("warn"))
    })
}

fn version() -> u8 {
    print(&command_line().render_version())
}

fn parse(args: impl Iterator<Item = OsString>) -> Result<Cli, clap::Error> {
    let args: Vec<OsString> = args.collect();
    let command = precedence::prefer_command_line(command_line(), &args);
    let offered = precedence::Offered::of(&command, &args);
    let mut cli = read(&args, &offered)?;
    if let Command::Run(run) = &mut cli.command {
        run.reread = Some(reread(args, offered));
    }
    Ok(cli)
}

/// Returns a function that reads this command line of `strait run` again. `offered` are the values that resources had for its
/// flags at the start.
fn reread(args: Vec<OsString>, offered: precedence::Offered) -> Reread {
    Reread::new(move |config: &MeshConfig| {
        let offered = offered.with_mesh(config);
        let cli = read(&args, &offered).map_err(|error| {
            let text = error.to_string();
            let line = text.lines().next().unwrap_or_default();
            line.trim_start_matches("error: ").to_owned()
        })?;
        match cli.command {
            Command::Run(mut run) => {
                run.identity.mesh_config = offered.instead();
                run.settings()
            }
            _ => Err("this is not the command `run`".to_owned()),
        }
    })
}

/// Parses the command line with the values that resources have for its flags.
fn read(args: &[OsString], offered: &precedence::Offered) -> Result<Cli, clap::Error> {
    let command = precedence::prefer_command_line(command_line(), args);
    let command = offered.as_defaults(command);
    let matches = command.try_get_matches_from(args)?;
    let mut cli = Cli::from_arg_matches(&matches)?;
    if let Command::Run(args) = &mut cli.command
        && let Some(run) = matches.subcommand_matches("run")
    {
        args.given = fit::GivenFlags::of(&command_line(), run);
        args.origins = offered.origins(&command_line(), run);
    }
    Ok(cli)
}

fn dispatch(command: &Command) -> u8 {
    match command {
        Command::Run(args) => run::run(args),
        Command::Check(args) => check::run(args),
        Command::Explain(args) => explain::run(args),
        Command::Diff(args) => diff::run(args),
        Command::Test(args) => test::run(args),
        Command::Simulate(args) => simulate::run(args),
        Command::Tap(args) => tap::run(args),
        Command::Top(args) => top::run(args),
        Command::Health(args) => health::health(args),
        Command::Wait(args) => health::wait(args),
        Command::Drain(args) => health::drain(args),
        Command::Iptables(args) => iptables::run(args),
        Command::Inject(args) => inject::run(args),
        Command::Uninject(args) => inject::undo(args),
        Command::Migrate(args) => migrate::run(args),
        Command::Imports(args) => imports::run(args),
        Command::Control(args) => control::run(args),
        Command::Demo(args) => demo::run(args),
        Command::Backend(args) => backend::run(args),
        Command::Crds(args) => crds::run(args),
        Command::Completions(args) => completions::run(args, command_line()),
        Command::Version => version(),
    }
}

#[cfg(test)]
mod tests;
