//! Checks that the flags of `strait run` fit its mode and each other.

use clap::parser::ValueSource;
use clap::{Arg, ArgMatches};

use super::pod::PodArgs;
use crate::app::Settings;
use crate::identity::Mode;

/// Flags under the heading of sidecars that a gateway supports as well.
const OF_BOTH_MODES: [&str; 2] = ["app_probers", "exit_with_pid"];

/// Sidecar flags that are set on the command line or in the environment, by name.
#[derive(Clone, Debug, Default)]
pub struct GivenFlags(Vec<String>);

impl GivenFlags {
    /// Collects the flags of `strait run`, a command of `cli`.
    pub(super) fn of(cli: &clap::Command, run: &ArgMatches) -> Self {
        let arguments = cli
            .find_subcommand("run")
            .into_iter()
            .flat_map(clap::Command::get_arguments);
        let of_sidecars = arguments.filter(|arg| arg.get_help_heading() == Some("Sidecar"));
        Self(
            of_sidecars
                .filter_map(|arg| name_of_given(arg, run))
                .collect(),
        )
    }

    fn has(&self, flag: &str) -> bool {
        self.0.iter().any(|given| given.starts_with(flag))
    }
}

/// Returns the name of a flag that is set.
fn name_of_given(arg: &Arg, run: &ArgMatches) -> Option<String> {
    let id = arg.get_id().as_str();
    if OF_BOTH_MODES.contains(&id) {
        return None;
    }
    let long = arg.get_long()?;
    match run.value_source(id)? {
        ValueSource::CommandLine => Some(format!("--{long}")),
        ValueSource::EnvVariable => {
            let variable = arg.get_env()?.to_string_lossy();
            Some(format!("--{long} ({variable})"))
        }
        _ => None,
    }
}

/// Checks that the flags of a proxy fit its mode and each other.
///
/// # Errors
///
/// Names the flags that do not fit, and the fix.
pub(super) fn check(given: &GivenFlags, pod: &PodArgs, settings: &Settings) -> Result<(), String> {
    if settings.identity.mode == Mode::Gateway
        && let Some(flag) = given.0.first()
    {
        return Err(format!(
            "{flag} has no effect on a gateway, it needs --mode sidecar: set that, or leave it out"
        ));
    }
    let (drain, minimum) = (pod.termination_drain, pod.termination_drain_minimum);
    // the default of the minimum is lowered to the drain time
    if drain < minimum && given.has("--termination-drain-minimum") {
        return Err(format!(
            "--termination-drain ({drain:?}) is shorter than --termination-drain-minimum ({minimum:?}): make it at least as long"
        ));
    }
    if let Some([one, other]) = settings.identity.sockets.collision() {
        return Err(format!(
            "{one} and {other} have the same address: write another port, or `off` for one of them"
        ));
    }
    let own = settings.health.into_iter().chain(settings.metrics);
    let own = own.chain([settings.admin]);
    let own: Vec<u16> = own.map(|address| address.port()).collect();
    match settings.app_probers.first_path_for_ports(&own) {
        Some(path) => Err(format!(
            "--app-probers: {path} asks a port of the proxy itself: write the port of the container"
        )),
        None => Ok(()),
    }
}
