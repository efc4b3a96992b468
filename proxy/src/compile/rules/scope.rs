//! Input of compiling rules: rules with their sources, and the listener and proxy that they are compiled for.

use std::sync::Arc;

use config_loader::catalog::View;
use config_loader::resource::Line;
use config_loader::resource::istio::{GatewayRef, HttpMatch, HttpRule};

use crate::compile::route_source::RouteSource;
use crate::identity::Identity;
use traffic::provenance::Provenance;

/// Listener and proxy that rules are compiled for.
pub(in crate::compile) struct RuleScope<'a> {
    pub identity: &'a Identity,
    /// Gateways whose servers the routes are for.
    pub gateways: &'a [&'a GatewayRef],
    /// Port of the listener.
    pub port: u16,
}

impl RuleScope<'_> {
    /// Whether the conditions of a block that do not depend on a request hold.
    pub(in crate::compile) fn admits(&self, block: &HttpMatch) -> bool {
        self.objection(block).is_none()
    }

    /// Returns the first field of a block that does not depend on a request and does not hold here. If a block names
    /// gateways, only the port is checked in addition.
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

/// Rule with its source, which is the delegate for a delegate's rule.
pub(in crate::compile) struct Sourced<'a> {
    pub rule: std::borrow::Cow<'a, HttpRule>,
    pub source: RouteSource,
    /// Source whose rule delegates to this one, and that rule.
    pub root: Option<(&'a RouteSource, &'a HttpRule)>,
    /// Location of the source as a whole.
    pub at: Provenance,
}

impl Sourced<'_> {
    /// Returns the name of the rule as it is written, without that of a rule that delegates to it.
    pub(in crate::compile) fn written_name<'v>(&'v self, view: View<'_>) -> &'v str {
        if self.root.is_none() {
            return &self.rule.name;
        }
        let mut rules = self.source.http(view).iter();
        let written = rules.find(|rule| rule.line == self.rule.line);
        written.map_or(&self.rule.name, |rule| &rule.name)
    }

    /// Returns the rule as metrics name it: its resource, with its name or position there. `position` is that among the rules
    /// that are compiled.
    pub(in crate::compile) fn label(&self, view: View<'_>, position: usize) -> Arc<str> {
        let object = &self.at.object;
        let name = self.written_name(view);
        if !name.is_empty() {
            return format!("{object}[{name}]").into();
        }
        let rules = self.source.http(view);
        let is_same = |rule: &Arc<HttpRule>| rule.line == self.rule.line;
        // rules of delegates come in between
        let position = match rules.get(position).is_some_and(is_same) {
            true => position,
            false => rules.iter().position(is_same).unwrap_or(position),
        };
        format!("{object}[{position}]").into()
    }

    /// Returns the location of a line of the source's document.
    pub(in crate::compile) fn provenance(&self, line: Line) -> Provenance {
        Provenance {
            line: self.source.line_of(line),
            ..self.at.clone()
        }
    }
}
