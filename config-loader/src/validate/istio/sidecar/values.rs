//! Values that ingress and egress listeners share.

use crate::diagnostic::codes::istio::{SC225, SC226, SC227};
use crate::raw::{self, Field};
use crate::resource::istio::{CaptureMode, Protocol};
use crate::validate::istio::gateway::{known_protocol, no_target_port};
use crate::validate::istio::shared;
use crate::validate::{Check, scalar};

/// Returns the protocol of a listener's port, and checks the port's other fields.
pub(super) fn protocol(port: &raw::istio::Port, check: &mut Check<'_>) -> Protocol {
    if let Some(name) = shared::text(&port.name).filter(|name| !scalar::is_dns_label(name)) {
        check
            .error(
                SC226,
                port.name.span(),
                format!("`{name}` is not a port name"),
            )
            .help("use letters, digits and inner `-`");
    }
    no_target_port(port, SC227, check);
    known_protocol(&port.protocol, SC225, check).unwrap_or_default()
}

pub(super) fn capture_mode(field: &Field<String>, check: &mut Check<'_>) -> CaptureMode {
    let modes = [
        ("DEFAULT", CaptureMode::Default),
        ("IPTABLES", CaptureMode::Iptables),
        ("NONE", CaptureMode::None),
    ];
    scalar::enum_of(field, &modes, check).unwrap_or_default()
}
