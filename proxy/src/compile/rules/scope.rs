//! What rules are compiled from, and for.

use std::sync::Arc;

use config_loader::resource::istio::{
    GatewayRef, HttpAction, HttpDestination, HttpMatch, HttpRule, VirtualService,
};
use config_loader::resource::{Line, Object};

use crate::identity::Identity;
use traffic::provenance::Provenance;

/// What the rules of a VirtualService are compiled for.
pub(in crate::compile) struct RuleScope<'a> {
    pub identity: &'a Identity,
    /// The gateways whose servers the routes are for.
    pub gateways: &'a [&'a GatewayRef],
    /// Port of the listener.
    pub port: u16,
}

impl RuleScope<'_> {
    /// Whether a block's conditions that need no request hold.
    pub(in crate::compile) fn admits(&self, block: &HttpMatch) -> bool {
        self.objection(block).is_none()
    }

    /// The first field of a block that needs no request and does not hold here. A block that names gateways asks for
    /// nothing else but the port.
    pub(in crate::compile) fn objection(&self, block: &HttpMatch) -> Option<&'static str> {
        if block.port.is_some_and(|port| port != self.port) {
            return Some("port");
        }
        if !block.gateways.is_empty() {
            let mut here = self.gateways.iter();
            let named = here.any(|gateway| block.gateways.contains(gateway));
            return (!named).then_some("gateways");
        }
        let labels = &self.identity.labels;
        let mut wanted = block.source_labels.iter();
        if wanted.any(|(key, value)| labels.get(key) != Some(value)) {
            return Some("sourceLabels");
        }
        let namespace = block.source_namespace.as_ref()?;
        (**namespace != self.identity.namespace).then_some("sourceNamespace")
    }
}

/// A rule with the VirtualService that wrote it: a delegate's rules keep their own.
pub(in crate::compile) struct Sourced<'a> {
    pub rule: std::borrow::Cow<'a, HttpRule>,
    pub object: &'a Object<VirtualService>,
    /// The object's full name.
    pub name: Arc<str>,
}

impl Sourced<'_> {
    /// Where it sends requests, if it does.
    pub(in crate::compile) fn destinations(&self) -> &[HttpDestination] {
        match &self.rule.action {
            HttpAction::Route(destinations) => destinations,
            _ => &[],
        }
    }

    pub(in crate::compile) fn provenance(&self, line: Line) -> Provenance {
        Provenance {
            object: Arc::clone(&self.name),
            file: Arc::clone(&self.object.provenance.file),
            line: self.object.line_of(line),
        }
    }
}
