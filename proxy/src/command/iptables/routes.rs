//! Routes that the capture needs in addition to rules: a source address for IPv6, and the routing of marked packets.

use std::io;

use super::capture::CaptureArgs;
use super::netlink::{CREATE, EXCLUSIVE, Message, Subsystem, send};
use super::rules::Family;
use crate::runtime::interception::{INBOUND_SOURCE_V6, TRANSPARENT_MARK};

/// Routing table of marked packets, the same as Istio's.
const TABLE: u8 = 133;

/// Priority of the routing rule. Without one, the kernel adds the same rule again at each request.
const PRIORITY: u32 = 1337;

/// Number of the loopback interface, in every network namespace.
const LOOPBACK: u32 = 1;

/// Network setting in addition to the rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Setting {
    /// Source address of connections from the proxy to the workload; IPv4 needs no such setting.
    Source,
    /// Rule that marked packets use a routing table of their own.
    Rule(Family),
    /// Route in the table of marked packets: every packet is delivered locally.
    Route(Family),
}

impl Setting {
    /// All settings.
    pub(crate) const ALL: [Self; 5] = [
        Self::Source,
        Self::Route(Family::V4),
        Self::Rule(Family::V4),
        Self::Route(Family::V6),
        Self::Rule(Family::V6),
    ];

    /// IP version of the setting.
    pub(crate) fn family(self) -> Family {
        match self {
            Self::Source => Family::V6,
            Self::Rule(family) | Self::Route(family) => family,
        }
    }

    /// Returns whether these flags need the setting.
    pub(crate) fn is_needed(self, capture: &CaptureArgs) -> bool {
        match self {
            Self::Source => true,
            Self::Rule(_) | Self::Route(_) => capture.intercepts(),
        }
    }

    /// Returns the `ip` command that adds the setting.
    pub(crate) fn command(self) -> String {
        let family = match self.family() {
            Family::V4 => "-4",
            Family::V6 => "-6",
        };
        match self {
            Self::Source => format!("ip -6 addr add {INBOUND_SOURCE_V6}/128 dev lo nodad"),
            Self::Rule(_) => {
                format!(
                    "ip {family} rule add priority {PRIORITY} fwmark {TRANSPARENT_MARK} lookup {TABLE}"
                )
            }
            Self::Route(_) => format!("ip {family} route add local default dev lo table {TABLE}"),
        }
    }

    /// Adds the setting. Returns whether it was missing before.
    ///
    /// # Errors
    ///
    /// Returns the error of the kernel.
    pub(crate) fn add(self) -> Result<bool, String> {
        self.change(true, &[io::ErrorKind::AlreadyExists], &[])
    }

    /// Deletes the setting. Returns whether it existed.
    ///
    /// # Errors
    ///
    /// Returns the error of the kernel.
    pub(crate) fn delete(self) -> Result<bool, String> {
        if !self.family().exists() {
            return Ok(false);
        }
        let absent = [io::ErrorKind::NotFound, io::ErrorKind::AddrNotAvailable];
        self.change(false, &absent, &[libc::ESRCH])
    }

    /// Sends the change. Returns false on errors of these kinds and codes: they mean that there was nothing to change.
    fn change(self, add: bool, kinds: &[io::ErrorKind], codes: &[i32]) -> Result<bool, String> {
        match send(Subsystem::Route, vec![self.message(add)], 0) {
            Ok(()) => Ok(true),
            Err((_, error)) if kinds.contains(&error.kind()) => Ok(false),
            Err((_, error))
                if error
                    .raw_os_error()
                    .is_some_and(|code| codes.contains(&code)) =>
            {
                Ok(false)
            }
            Err((_, error)) => {
                let command = self.command();
                let command = if add {
                    command
                } else {
                    command.replace(" add ", " del ")
                };
                Err(format!("the kernel refuses what `{command}` does: {error}"))
            }
        }
    }

    /// Makes the request (rtnetlink(7)).
    fn message(self, add: bool) -> Message {
        let kind = |new: u16| if add { new } else { new + 1 };
        let flags = if add { CREATE | EXCLUSIVE } else { 0 };
        let family = match self.family() {
            Family::V4 => libc::AF_INET,
            Family::V6 => libc::AF_INET6,
        };
        let family = u8::try_from(family).unwrap_or_default();
        match self {
            Self::Source => {
                let [a, b, c, d] = LOOPBACK.to_ne_bytes();
                // family, length of the prefix, flags (no duplicate address detection), scope, interface
                let header = [family, 128, 0x02, 0, a, b, c, d];
                let mut message = Message::new(kind(libc::RTM_NEWADDR), flags, &header);
                let address = INBOUND_SOURCE_V6.octets();
                message.bytes(libc::IFA_LOCAL, &address);
                message.bytes(libc::IFA_ADDRESS, &address);
                message
            }
            Self::Rule(_) => {
                const TO_TABLE: u8 = 1;
                const PRIORITY_ATTRIBUTE: u16 = 6;
                const MARK: u16 = 10;
                let header = [family, 0, 0, 0, TABLE, 0, 0, TO_TABLE, 0, 0, 0, 0];
                let mut message = Message::new(kind(libc::RTM_NEWRULE), flags, &header);
                message.bytes(PRIORITY_ATTRIBUTE, &PRIORITY.to_ne_bytes());
                message.bytes(MARK, &TRANSPARENT_MARK.to_ne_bytes());
                message
            }
            Self::Route(version) => {
                const BOOT: u8 = 3;
                const LOCAL: u8 = 2;
                let scope = match version {
                    Family::V4 => libc::RT_SCOPE_HOST,
                    Family::V6 => libc::RT_SCOPE_UNIVERSE,
                };
                let header = [family, 0, 0, 0, TABLE, BOOT, scope, LOCAL, 0, 0, 0, 0];
                let mut message = Message::new(kind(libc::RTM_NEWROUTE), flags, &header);
                message.bytes(libc::RTA_OIF, &LOOPBACK.to_ne_bytes());
                message
            }
        }
    }
}
