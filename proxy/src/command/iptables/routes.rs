//! What capture needs besides rules: a source address for IPv6, and routes for marked packets.

use std::process::{Command, Stdio};

use super::capture::{CaptureArgs, InterceptionMode};
use super::rules::Family;
use super::tools::{has_ipv6, program, run};
use crate::runtime::interception::{INBOUND_SOURCE_V6, TRANSPARENT_MARK};

/// Routing table of marked packets. Istio's.
const TABLE: u32 = 133;

/// One setting of `ip`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Setting {
    /// The source address of connections from the proxy to the workload, which IPv4 has without being told.
    Source,
    /// Marked packets have a routing table of their own.
    Rule(Family),
    /// That table delivers everything here.
    Route(Family),
}

impl Setting {
    /// Each setting there is.
    pub const ALL: [Self; 5] = [
        Self::Source,
        Self::Route(Family::V4),
        Self::Rule(Family::V4),
        Self::Route(Family::V6),
        Self::Rule(Family::V6),
    ];

    /// The IP version that needs it.
    pub fn family(self) -> Family {
        match self {
            Self::Source => Family::V6,
            Self::Rule(family) | Self::Route(family) => family,
        }
    }

    /// Whether these flags need it.
    pub fn is_needed(self, capture: &CaptureArgs) -> bool {
        match self {
            Self::Source => true,
            Self::Rule(_) | Self::Route(_) => {
                capture.interception_mode == InterceptionMode::Transparent
                    && !capture.include_inbound_ports.is_empty()
            }
        }
    }

    /// Arguments of `ip` that add it.
    pub fn add(self) -> Vec<String> {
        let mut arguments = self.arguments("add");
        if self == Self::Source {
            // else it cannot be bound until the kernel has looked for another machine that has it
            arguments.push("nodad".to_owned());
        }
        arguments
    }

    /// Arguments of `ip` that delete it.
    pub fn delete(self) -> Vec<String> {
        self.arguments("del")
    }

    fn arguments(self, verb: &str) -> Vec<String> {
        let text = match self {
            Self::Source => format!("addr {verb} {INBOUND_SOURCE_V6}/128 dev lo"),
            Self::Rule(_) => format!("rule {verb} fwmark {TRANSPARENT_MARK} lookup {TABLE}"),
            Self::Route(_) => format!("route {verb} local default dev lo table {TABLE}"),
        };
        self.with_family(&text)
    }

    fn with_family(self, text: &str) -> Vec<String> {
        let family = match self.family() {
            Family::V4 => "-4",
            Family::V6 => "-6",
        };
        let words = std::iter::once(family).chain(text.split(' '));
        words.map(str::to_owned).collect()
    }

    /// Whether it is there; without `ip`, nothing of ours is.
    ///
    /// # Errors
    ///
    /// When `ip` fails.
    pub fn is_present(self) -> Result<bool, String> {
        let Some(ip) = program("ip") else {
            return Ok(false);
        };
        if self.family() == Family::V6 && !has_ipv6() {
            return Ok(false);
        }
        let list = match self {
            Self::Source => "addr show dev lo".to_owned(),
            Self::Rule(_) => "rule list".to_owned(),
            Self::Route(_) => format!("route list table {TABLE}"),
        };
        let mut command = Command::new(ip);
        command.args(self.with_family(&list)).stdin(Stdio::null());
        match run(&mut command) {
            Ok(output) => Ok(self.is_in(&String::from_utf8_lossy(&output.stdout))),
            // what it answers for a table without routes
            Err(error) if error.contains("table does not exist") => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn is_in(self, listed: &str) -> bool {
        let wanted = match self {
            Self::Source => format!("inet6 {INBOUND_SOURCE_V6}/128 "),
            Self::Rule(_) => format!("fwmark {TRANSPARENT_MARK:#x} lookup {TABLE} "),
            Self::Route(_) => "local default dev lo ".to_owned(),
        };
        listed
            .lines()
            .any(|line| format!("{line} ").contains(&wanted))
    }
}

/// Runs `ip`.
///
/// # Errors
///
/// When it is missing, or fails.
pub fn ip(arguments: &[String]) -> Result<(), String> {
    let ip = program("ip").ok_or(
        "`ip` is not in PATH: install the package iproute2, or run this in an image that has it",
    )?;
    run(Command::new(ip).args(arguments).stdin(Stdio::null())).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_found_in_what_ip_lists() {
        let rules = "0:\tfrom all lookup local\n32765:\tfrom all fwmark 0x539 lookup 133\n";
        assert!(Setting::Rule(Family::V4).is_in(rules));
        assert!(!Setting::Rule(Family::V4).is_in("32765:\tfrom all fwmark 0x539 lookup 1337\n"));
        let routes = "local default dev lo metric 1024 pref medium\n";
        assert!(Setting::Route(Family::V6).is_in(routes));
        let addresses = "    inet6 ::6/128 scope global \n    inet6 ::1/128 scope host \n";
        assert!(Setting::Source.is_in(addresses));
        assert!(!Setting::Source.is_in("    inet6 fd00::6/128 scope global\n"));
    }

    #[test]
    fn what_is_added_is_deleted() {
        for setting in Setting::ALL {
            let add = setting.add().join(" ");
            assert!(add.contains(" add "), "{add}");
            let delete = add.replace(" add ", " del ").replace(" nodad", "");
            assert_eq!(setting.delete().join(" "), delete);
        }
        let rule = Setting::Rule(Family::V6).add().join(" ");
        assert_eq!(rule, "-6 rule add fwmark 1337 lookup 133");
    }
}
