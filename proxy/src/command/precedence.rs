//! Precedence of the command line over the environment, for arguments that exclude each other.

use std::ffi::OsString;

use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command, Id};

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
