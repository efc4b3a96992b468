//! Precedence of the command line over the environment, for arguments that exclude each other, and of both over the mesh
//! configuration.

use std::ffi::OsString;

use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command, Id};

use crate::control::mesh_config::MeshConfigFile;

/// Ignores the environment variables of arguments that conflict with one on the command line. An environment is often
/// set for many commands, and none of them may fail because of it.
pub(super) fn prefer_command_line(command: Command, args: &[OsString]) -> Command {
    let lenient = command.clone().ignore_errors(true);
    let Ok(matches) = lenient.try_get_matches_from(args) else {
        return command;
    };
    match matches.subcommand() {
        Some((name, given)) => command.mut_subcommand(name, |command| {
            let excluded = excluded(&command, given);
            command.mut_args(|arg| match excluded.contains(arg.get_id()) {
                true => arg.env(None::<&'static str>),
                false => arg,
            })
        }),
        None => command,
    }
}

/// Makes the settings of `--mesh-config` the defaults of their flags. A file with errors is reported later.
pub(super) fn default_to_mesh_config(command: Command, args: &[OsString]) -> Command {
    let lenient = command.clone().ignore_errors(true);
    let Ok(matches) = lenient.try_get_matches_from(args) else {
        return command;
    };
    let Some((name, given)) = matches.subcommand() else {
        return command;
    };
    let Ok(Some(file)) = given.try_get_one::<MeshConfigFile>("mesh_config") else {
        return command;
    };
    command.mut_subcommand(name, |command| {
        command.mut_args(|arg| {
            let mut flags = file.config.flags.iter();
            let is_set = |flag: &&(&str, String)| arg.get_long() == Some(flag.0);
            match flags.find(is_set) {
                // parsed once per process
                Some((_, value)) => arg.default_value(&*value.clone().leak()),
                None => arg,
            }
        })
    })
}

/// Returns the arguments that conflict with the command line.
fn excluded(command: &Command, given: &ArgMatches) -> Vec<Id> {
    let is_given =
        |arg: &Arg| given.value_source(arg.get_id().as_str()) == Some(ValueSource::CommandLine);
    let mut excluded = Vec::new();
    for arg in command.get_arguments() {
        for other in command.get_arg_conflicts_with(arg) {
            if is_given(arg) {
                excluded.push(other.get_id().clone());
            }
            if is_given(other) {
                excluded.push(arg.get_id().clone());
            }
        }
    }
    excluded
}
