//! Events of an attempt: the steps until the first byte of its response.

use std::time::Duration;

use super::kept::Attempt;
use crate::pool::Phase;
use crate::telemetry::{Attributes, protobuf};

/// Writes the events of an attempt that began at this time, in nanoseconds since the epoch. Without `all`, only what is
/// rare.
pub(super) fn write(attempt: &Attempt, begun: u64, all: bool, out: &mut Vec<u8>) {
    let phases = attempt.phases;
    let mut event = |after: Duration, name: &str, attribute: Option<(&str, bool)>| {
        protobuf::message(out, 11, |out| {
            protobuf::fixed64(out, 1, begun.saturating_add(after.as_nanos() as u64));
            protobuf::bytes(out, 2, name.as_bytes());
            if let Some((key, value)) = attribute {
                Attributes::new(out, 3, 1, 0).boolean(key, value);
            }
        });
    };
    if phases.is_stale {
        event(Duration::ZERO, "strait.stale_connection", None);
    }
    if !all || phases.phase != Phase::Connected {
        return;
    }
    let (wait, sent) = (phases.wait(), phases.until_sent());
    let reused = Some(("reused", !phases.is_opened));
    event(wait, "strait.connection", reused);
    if phases.is_opened {
        event(wait + phases.connect(), "strait.connected", None);
        if let Some(resumed) = phases.resumed {
            event(sent, "strait.tls_done", Some(("resumed", resumed)));
        }
    }
    event(sent, "strait.request_sent", None);
    if let Some(first_byte) = attempt.first_byte() {
        event(sent + first_byte, "strait.first_byte", None);
    }
}
