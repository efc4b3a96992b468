//! Equivalent configurations of all proxies, from one plan.
//!
//! Only text: the configuration files, and the command that starts the proxy with them. All proxies have one worker, no
//! access log, their usual metrics, keep-alive on both sides, and timeouts that no scenario reaches.

use std::ffi::OsString;
use std::path::Path;

use crate::compare::process::CommandLine;
use crate::compare::tool::Found;

mod envoy;
pub mod feature;
mod haproxy;
mod nginx;
mod plan;
pub mod strait;
mod token;

pub use feature::Feature;
pub use plan::{ConfigFile, Others, Plan, Proxy, Work, address, prefix, request_headers};

/// Returns the files of a proxy that will run in `directory`.
pub fn files(proxy: Proxy, program: &Found, plan: &Plan, directory: &Path) -> Vec<ConfigFile> {
    match proxy {
        Proxy::Strait | Proxy::Before => strait::files(plan),
        Proxy::Nginx => vec![nginx::file(plan, &program.version)],
        Proxy::Haproxy => haproxy::files(plan, directory),
        Proxy::Envoy => vec![envoy::file(plan)],
    }
}

/// Returns the command that starts a proxy in the foreground with its files in `directory`.
pub fn command(proxy: Proxy, program: &Found, plan: &Plan, directory: &Path) -> CommandLine {
    let arguments: Vec<OsString> = match proxy {
        Proxy::Strait | Proxy::Before => strait::arguments(plan, directory),
        Proxy::Nginx => nginx::arguments(directory),
        Proxy::Haproxy => haproxy::arguments(directory),
        Proxy::Envoy => envoy::arguments(directory),
    };
    CommandLine::new(&program.path, arguments)
}

#[cfg(test)]
mod tests;
