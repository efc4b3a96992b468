//! Precedence of the command line over the environment, for arguments that exclude each other, and of both over the mesh
//! configuration.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command, Id};
use config_loader::resource::istio::{FlagValue, MeshConfig, ProxySettings};

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
#[derive(Clone, Debug, Default)]
pub(super) struct Offered {
    command: String,
    is_sidecar: bool,
    /// Settings of this proxy alone.
    own: ProxySettings,
    /// Name of the mesh configuration.
    mesh: String,
    /// Mesh configuration in place of the one that the command line names.
    instead: Option<MeshConfigFile>,
    values: Vec<OfferedValue>,
}

/// Value for a flag.
#[derive(Clone, Debug)]
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
        let own = |id| given.try_get_one::<OwnSettings>(id).ok().flatten();
        let settings = |id| own(id).map(|own| own.settings.clone()).unwrap_or_default();
        let pod = settings("pod_annotations");
        let mut offered = Self {
            command: name.to_owned(),
            is_sidecar: matches!(given.try_get_one("mode"), Ok(Some(ModeArg::Sidecar))),
            own: pod.or(&settings("proxy_config")),
            mesh: "configmaps/istio".to_owned(),
            instead: None,
            values: Vec::new(),
        };
        let is_gateway = !offered.is_sidecar;
        let annotated = own("pod_annotations").map(|own| &own.annotations.flags);
        for (name, value) in annotated.into_iter().flatten() {
            offered.add([value].into_iter(), name, OriginKind::Own);
        }
        offered.add(pod.flag_values(is_gateway), ANNOTATION, OriginKind::Own);
        let own = offered.own.clone();
        let own = own.flag_values(is_gateway);
        offered.add(own, "--proxy-config", OriginKind::Own);
        if let Ok(Some(file)) = given.try_get_one::<MeshConfigFile>("mesh_config") {
            offered.mesh = file.path.display().to_string();
            offered.add_mesh(&file.config);
        }
        offered
    }

    /// Returns the values with those of another mesh configuration.
    pub(super) fn with_mesh(&self, config: &MeshConfig) -> Self {
        let mut offered = self.clone();
        offered.values.retain(|one| one.kind != OriginKind::Mesh);
        offered.add_mesh(config);
        offered.instead = Some(MeshConfigFile {
            path: PathBuf::new(),
            config: config.clone(),
            warnings: Vec::new(),
        });
        offered
    }

    /// Mesh configuration in place of the one that the command line names.
    pub(super) fn instead(&self) -> Option<MeshConfigFile> {
        self.instead.clone()
    }

    fn add_mesh(&mut self, config: &MeshConfig) {
        let (config, origin) = (config.of_proxy(&self.own), self.mesh.clone());
        let values = config.flag_values(!self.is_sidecar);
        self.add(values, &origin, OriginKind::Mesh);
    }

    /// Adds the values for flags that have none yet.
    fn add<'v>(
        &mut self,
        values: impl Iterator<Item = &'v FlagValue>,
        origin: &str,
        kind: OriginKind,
    ) {
        for &(flag, ref value) in values {
            let is_known = self.values.iter().any(|one| one.flag == flag);
            if !is_known && fits(flag, self.is_sidecar) {
                self.values.push(OfferedValue {
                    flag,
                    value: value.clone(),
                    origin: origin.to_owned(),
                    kind,
                });
            }
        }
    }

    /// Makes the values the defaults of their flags, and puts the other mesh configuration in place.
    pub(super) fn as_defaults(&self, command: Command) -> Command {
        if self.values.is_empty() && self.instead.is_none() {
            return command;
        }
        command.mut_subcommand(&self.command, |command| {
            command.mut_args(|arg| match (self.value(&arg), &self.instead) {
                (Some(offered), _) => arg.default_value(offered.value.clone()),
                (None, Some(file)) if arg.get_id() == "mesh_config" => {
                    let file = file.clone();
                    arg.value_parser(move |_: &str| Ok::<_, String>(file.clone()))
                }
                (None, _) => arg,
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
