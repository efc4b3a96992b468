//! Sets `STRAIT_REVISION` for a release that is built from a checkout, unless the environment of the build has it.

use std::env;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-env-changed=STRAIT_REVISION");
    let is_release = env::var("PROFILE").is_ok_and(|profile| profile == "release");
    // A debug build would be compiled again after every commit.
    if !is_release || env::var_os("STRAIT_REVISION").is_some() {
        println!("cargo::rerun-if-changed=build.rs");
        return;
    }
    let git = |arguments: &[&str]| {
        let output = Command::new("git").args(arguments).output().ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        output.status.success().then(|| text.trim().to_owned())
    };
    if let Some(log) = git(&["rev-parse", "--git-path", "logs/HEAD"]) {
        println!("cargo::rerun-if-changed={log}");
    }
    if let Some(revision) = git(&["rev-parse", "--short=12", "HEAD"]) {
        println!("cargo::rustc-env=STRAIT_REVISION={revision}");
    }
}
