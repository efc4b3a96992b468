//! Tools of the system: finds the installed ones, chooses a backend, and runs them.

use std::env;
use std::fmt;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use clap::ValueEnum;

use super::rules::Family;
use super::ruleset::{Ruleset, has_rules};

/// Directories of administrator tools that `PATH` may lack.
const MORE_PATHS: [&str; 4] = ["/usr/sbin", "/sbin", "/usr/bin", "/bin"];

/// `--backend`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum BackendArg {
    /// The backend that has rules, else nft, else legacy, else native
    Auto,
    /// iptables-nft, the rules of nf_tables
    Nft,
    /// iptables-legacy
    Legacy,
    /// Tables of its own in nf_tables, without any tool
    Native,
}

/// Implementation of iptables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Backend {
    /// `iptables-nft`.
    Nft,
    /// `iptables-legacy`.
    Legacy,
    /// Unknown implementation behind `iptables`, on systems that have only one.
    Unnamed,
}

impl Backend {
    /// All backends, in the order of preference.
    pub(crate) const ALL: [Self; 3] = [Self::Nft, Self::Legacy, Self::Unnamed];

    fn allows(self, wanted: BackendArg) -> bool {
        match wanted {
            BackendArg::Auto => true,
            BackendArg::Nft => self == Self::Nft,
            BackendArg::Legacy => self == Self::Legacy,
            BackendArg::Native => false,
        }
    }

    fn command(self, family: Family) -> String {
        let program = match family {
            Family::V4 => "iptables",
            Family::V6 => "ip6tables",
        };
        match self {
            Self::Nft => format!("{program}-nft"),
            Self::Legacy => format!("{program}-legacy"),
            Self::Unnamed => program.to_owned(),
        }
    }
}

/// Tools of one backend and IP version.
#[derive(Clone, Debug)]
pub(crate) struct Tools {
    /// Backend of the tools.
    pub backend: Backend,
    family: Family,
    save: PathBuf,
    restore: PathBuf,
}

impl fmt::Display for Tools {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.backend.command(self.family))
    }
}

/// Rules of a backend.
#[derive(Debug)]
pub(crate) struct Saved {
    /// Rules of Strait.
    pub ours: Ruleset,
    /// Whether the backend has any rules, ours or others.
    pub has_rules: bool,
}

impl Tools {
    /// Finds the tools of each installed backend.
    pub(crate) fn find(family: Family) -> Vec<Self> {
        let found = Backend::ALL.into_iter().filter_map(|backend| {
            let command = backend.command(family);
            Some(Self {
                backend,
                family,
                save: program(&format!("{command}-save"))?,
                restore: program(&format!("{command}-restore"))?,
            })
        });
        let mut found: Vec<_> = found.collect();
        // The unnamed one is one of the two others if those have their own names.
        if found.len() > 1 {
            found.retain(|tools| tools.backend != Backend::Unnamed);
        }
        found
    }

    /// Reads the installed rules.
    ///
    /// # Errors
    ///
    /// Returns the error of the tool.
    pub(crate) fn saved(&self) -> Result<Saved, String> {
        let output = run(Command::new(&self.save).stdin(Stdio::null()))?;
        let text = String::from_utf8_lossy(&output.stdout);
        Ok(Saved {
            ours: Ruleset::parse(&text),
            has_rules: has_rules(&text),
        })
    }

    /// Replaces our rules.
    ///
    /// # Errors
    ///
    /// Returns the error of the tool. Each table is changed as a whole or not at all.
    pub(crate) fn replace(&self, from: &Ruleset, to: &Ruleset) -> Result<(), String> {
        let text = from.replaced_by(to);
        if text.is_empty() {
            return Ok(());
        }
        let mut command = Command::new(&self.restore);
        // legacy has a lock file, which another process may hold
        command
            .args(["--noflush", "--wait=30"])
            .stdin(Stdio::piped());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command
            .spawn()
            .map_err(|error| cannot_run(&command, &error))?;
        if let Some(mut stdin) = child.stdin.take() {
            // a tool that fails early reads nothing; its message is more useful than the broken pipe
            let _ = stdin.write_all(text.as_bytes());
        }
        let output = child.wait_with_output();
        let output = output.map_err(|error| cannot_run(&command, &error))?;
        checked(&command, output).map(drop)
    }
}

/// Chooses the backend to install with: the one that has our rules, else one with rules of others, else the first that
/// works.
///
/// # Errors
///
/// Says what is missing, and how to get it.
pub(crate) fn choose(family: Family, wanted: BackendArg) -> Result<(Tools, Ruleset), String> {
    let found = Tools::find(family).into_iter();
    let mut found = found
        .filter(|tools| tools.backend.allows(wanted))
        .peekable();
    if found.peek().is_none() {
        return Err(missing(family, wanted));
    }
    let mut best: Option<(u8, Tools, Ruleset)> = None;
    let mut errors = Vec::new();
    for tools in found {
        match tools.saved() {
            Ok(saved) => {
                let rank = u8::from(saved.has_rules) + u8::from(!saved.ours.is_empty());
                if best.as_ref().is_none_or(|(known, ..)| rank > *known) {
                    best = Some((rank, tools, saved.ours));
                }
            }
            Err(error) => errors.push(error),
        }
    }
    best.map(|(_, tools, ours)| (tools, ours))
        .ok_or_else(|| errors.join("; "))
}

fn missing(family: Family, wanted: BackendArg) -> String {
    let command = match wanted {
        BackendArg::Auto | BackendArg::Native => Backend::Unnamed,
        BackendArg::Nft => Backend::Nft,
        BackendArg::Legacy => Backend::Legacy,
    };
    let command = command.command(family);
    format!(
        "{command}-restore and {command}-save are not in PATH: install the package iptables (Debian, Alpine, Fedora), or \
         use --backend native, which needs no tool"
    )
}

/// Returns the path of a program, if it is installed.
fn program(name: &str) -> Option<PathBuf> {
    let paths = env::var_os("PATH").unwrap_or_default();
    let paths: Vec<_> = env::split_paths(&paths).collect();
    let more = MORE_PATHS.iter().map(Path::new);
    let mut all = paths.iter().map(PathBuf::as_path).chain(more);
    all.find_map(|directory| {
        let path = directory.join(name);
        path.is_file().then_some(path)
    })
}

/// Runs a tool and waits for its end.
///
/// # Errors
///
/// Fails when it cannot be started, or exits with an error.
fn run(command: &mut Command) -> Result<Output, String> {
    let output = command.output();
    let output = output.map_err(|error| cannot_run(command, &error))?;
    checked(command, output)
}

fn checked(command: &Command, output: Output) -> Result<Output, String> {
    if output.status.success() {
        return Ok(output);
    }
    let text = String::from_utf8_lossy(&output.stderr);
    let text: Vec<_> = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    let text = if text.is_empty() {
        output.status.to_string()
    } else {
        text.join("; ")
    };
    Err(format!("{} fails: {text}{}", line(command), advice(&text)))
}

/// Returns the fix for an error of a tool.
fn advice(text: &str) -> &'static str {
    let text = text.to_lowercase();
    if text.contains("permission denied") || text.contains("operation not permitted") {
        "; it needs CAP_NET_ADMIN, with iptables-legacy also CAP_NET_RAW"
    } else if text.contains("xtables.lock") {
        "; it locks a file: set XTABLES_LOCKFILE to a path that can be written, or use --backend nft"
    } else if text.contains("table does not exist") || text.contains("can't initialize") {
        "; the kernel lacks this table: load its module on the host (ip_tables or nf_tables, ip6table_nat for IPv6), \
         or choose the other --backend"
    } else {
        ""
    }
}

fn cannot_run(command: &Command, error: &std::io::Error) -> String {
    format!("cannot run {}: {error}", line(command))
}

/// Renders the name of the program and its arguments.
fn line(command: &Command) -> String {
    let name = Path::new(command.get_program()).file_name();
    let name = name.unwrap_or_else(|| command.get_program());
    let words = std::iter::once(name).chain(command.get_args());
    let words: Vec<_> = words.map(|word| word.to_string_lossy()).collect();
    format!("`{}`", words.join(" "))
}

/// Returns the reason why this process may not change rules, if the system reports one.
pub(crate) fn missing_right() -> Option<String> {
    const NET_ADMIN: u64 = 1 << 12;
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("CapEff:"))?;
    let effective = u64::from_str_radix(line.trim(), 16).ok()?;
    (effective & NET_ADMIN == 0).then(|| {
        "changing the rules of the kernel needs CAP_NET_ADMIN: run this as root, or in an init container with \
         `securityContext: {runAsUser: 0, capabilities: {add: [NET_ADMIN, NET_RAW]}}`"
            .to_owned()
    })
}

/// Returns the reason why nothing can be captured over IPv6, if there is one.
pub(crate) fn missing_ipv6() -> Option<&'static str> {
    if !Family::V6.exists() {
        return Some("the kernel has no IPv6 (/proc/net/if_inet6 is missing)");
    }
    let disabled = fs::read_to_string("/proc/sys/net/ipv6/conf/lo/disable_ipv6");
    let disabled = disabled.is_ok_and(|text| text.trim() == "1");
    disabled.then_some("it is switched off (net.ipv6.conf.lo.disable_ipv6=1)")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failure_names_the_tool_the_reason_and_the_remedy() {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "echo Permission denied >&2; exit 4"]);
        let error = run(&mut command).unwrap_err();
        assert!(error.starts_with("`sh -c"), "{error}");
        assert!(error.contains("fails: Permission denied"), "{error}");
        assert!(error.contains("CAP_NET_ADMIN"), "{error}");
        let error = run(&mut Command::new("/nowhere/tool")).unwrap_err();
        assert!(error.starts_with("cannot run `tool`"), "{error}");
    }

    #[test]
    fn missing_tools_are_named_with_their_package() {
        let error = missing(Family::V6, BackendArg::Legacy);
        assert!(error.starts_with("ip6tables-legacy-restore"), "{error}");
        assert!(error.contains("install the package iptables"), "{error}");
    }
}
