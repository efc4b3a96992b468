//! Precedence of the command line over the environment, for arguments that exclude each other, and of both over the mesh
//! configuration.

use std::ffi::OsString;

use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command, Id};
use config_loader::resource::istio::FlagValue;

use super::args::ModeArg;
use super::own_settings::{ANNOTATION, OwnSettings};
use crate::app::{CONCURRENCY, OriginKind, SettingOrigin};
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

/// Values that resources have for flags, the first one of a flag counts: of this proxy alone, then of the mesh.
#[derive(Debug, Default)]
pub(super) struct Offered {
    command: String,
    values: Vec<OfferedValue>,
}

/// Value for a flag.
#[derive(Debug)]
struct OfferedValue {
    flag: &'static str,
    value: String,
    origin: String,
    kind: OriginKind,
}

impl Offered {
    /// Reads the values that `--pod-annotations`, `--proxy-config` and `--mesh-config` of a command line name. A file with
    /// errors is reported later.
    pub(super) fn of(command: &Command, args: &[OsString]) -> Self {
        let lenient = command.clone().ignore_errors(true);
        let Ok(matches) = lenient.try_get_matches_from(args) else {
            return Self::default();
        };
        let Some((name, given)) = matches.subcommand() else {
            return Self::default();
        };
        let is_sidecar = matches!(given.try_get_one("mode"), Ok(Some(ModeArg::Sidecar)));
        let mut values: Vec<OfferedValue> = Vec::new();
        let mut add = |value: &FlagValue, origin: &str, kind| {
            let (flag, value) = (value.0, value.1.clone());
            let is_known = values.iter().any(|one| one.flag == flag);
            if !is_known && fits(flag, is_sidecar) {
                values.push(OfferedValue {
                    flag,
                    value,
                    origin: origin.to_owned(),
                    kind,
                });
            }
        };
        let own = |id| given.try_get_one::<OwnSettings>(id).ok().flatten();
        let settings = |id| own(id).map(|own| own.settings.clone()).unwrap_or_default();
        let pod = settings("pod_annotations");
        pod.flag_values(!is_sidecar)
            .for_each(|value| add(value, ANNOTATION, OriginKind::Own));
        let narrow = pod.or(&settings("proxy_config"));
        narrow
            .flag_values(!is_sidecar)
            .for_each(|value| add(value, "--proxy-config", OriginKind::Own));
        if let Ok(Some(file)) = given.try_get_one::<MeshConfigFile>("mesh_config") {
            let origin = file.path.display().to_string();
            let config = file.config.of_proxy(&narrow);
            config
                .flag_values(!is_sidecar)
                .for_each(|value| add(value, &origin, OriginKind::Mesh));
        }
        Self {
            command: name.to_owned(),
            values,
        }
    }

    /// Makes the values the defaults of their flags.
    pub(super) fn as_defaults(&self, command: Command) -> Command {
        if self.values.is_empty() {
            return command;
        }
        command.mut_subcommand(&self.command, |command| {
            command.mut_args(|arg| match self.value(&arg) {
                // parsed once per process
                Some(offered) => arg.default_value(&*offered.value.clone().leak()),
                None => arg,
            })
        })
    }

    fn value(&self, arg: &Arg) -> Option<&OfferedValue> {
        let mut values = self.values.iter();
        values.find(|one| arg.get_long() == Some(one.flag))
    }

    /// Returns the origins of the settings that resources have values for, and of the number of workers.
    pub(super) fn origins(&self, cli: &Command, given: &ArgMatches) -> Vec<SettingOrigin> {
        let command = cli.find_subcommand(&self.command);
        let arguments = command.into_iter().flat_map(Command::get_arguments);
        let origins = arguments.filter_map(|arg| {
            let offered = self.value(arg);
            let id = arg.get_id().as_str();
            let set_by = match given.value_source(id)? {
                ValueSource::CommandLine => Some(format!("--{}", arg.get_long()?)),
                ValueSource::EnvVariable => Some(arg.get_env()?.to_string_lossy().into_owned()),
                _ => None,
            };
            let flag = match offered {
                Some(offered) => offered.flag,
                None if set_by.is_some() && arg.get_long() == Some(CONCURRENCY) => CONCURRENCY,
                None => return None,
            };
            let texts = given.get_raw(id)?.map(|value| value.to_string_lossy());
            let value = texts.collect::<Vec<_>>().join(",");
            let kind = match (&set_by, offered) {
                (None, Some(offered)) => offered.kind,
                _ => OriginKind::Flag,
            };
            let others = offered.filter(|one| set_by.is_some() && one.value != value);
            Some(SettingOrigin {
                flag,
                origin: set_by
                    .unwrap_or_else(|| offered.map_or_else(String::new, |one| one.origin.clone())),
                kind,
                instead_of: others.map(|one| (one.value.clone(), one.origin.clone())),
                value,
            })
        });
        origins.collect()
    }
}

/// Whether a value of the mesh for a flag is about proxies of this mode.
fn fits(flag: &str, is_sidecar: bool) -> bool {
    match flag {
        "client-cert-header" | "trusted-hops" => !is_sidecar,
        "inbound-listener" | "outbound-listener" | "termination-drain" => is_sidecar,
        _ => true,
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
