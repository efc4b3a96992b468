//! Route sources: resources that route requests and connections, in the form that `compile` uses.
//!
//! VirtualService is the only kind. Routing needs of a source its hosts, the gateways that it is attached to, its
//! visibility and its rules. References to other sources are resolved in the catalog. Rules are read through a view;
//! `VisibleRoutes` reports a change of the rest.
//!
//! Rules are in the order of their source, a match block at a time (`rules::blocks`), because each block becomes a route
//! of its own. A VirtualService keeps the order in which it is written. A source that sorts blocks, as the Gateway API
//! does by specificity, gives a rule per block; its order over all sources of a host is a sort key in
//! `HostCompiler::routes`.

use std::borrow::Cow;
use std::sync::Arc;

use config_loader::catalog::gateway_api::ApplyingRoutes;
use config_loader::catalog::{self, UnusableDelegate, View, hostname};
use config_loader::resource::istio::{
    GatewayRef, HttpAction, HttpRule, TcpRule, TlsRule, VirtualService,
};
use config_loader::resource::{Age, ExportTo, Line, Object};
use config_loader::{Kind, Name, ObjectRef, ResourceSet};

use crate::compile::provenance::provenance_of;
use traffic::provenance::Provenance;

/// Resource that routes requests and connections. A clone shares the resource; two are equal if they share one.
#[derive(Clone, Debug)]
pub(in crate::compile) enum RouteSource {
    VirtualService(Arc<Object<VirtualService>>),
}

impl RouteSource {
    /// Kind of the sources, for messages.
    pub(in crate::compile) const KIND: Kind = Kind::VirtualService;

    /// Returns all sources, visible or not, in no order.
    pub(in crate::compile) fn all(resources: &ResourceSet) -> impl Iterator<Item = Self> {
        let objects = resources.virtual_services.values();
        objects.cloned().map(Self::VirtualService)
    }

    /// Returns the sources that differ between two sets: each before and after the change.
    pub(in crate::compile) fn differences<'a>(
        before: &'a ResourceSet,
        now: &'a ResourceSet,
    ) -> impl Iterator<Item = (Option<Self>, Option<Self>)> {
        let of = |object: Option<&Arc<_>>| object.cloned().map(Self::VirtualService);
        catalog::differences(&before.virtual_services, &now.virtual_services)
            .map(move |(gone, came)| (of(gone), of(came)))
    }

    fn object(&self) -> &Arc<Object<VirtualService>> {
        let Self::VirtualService(object) = self;
        object
    }

    fn read(&self, view: View<'_>) -> &VirtualService {
        view.found(self.object());
        &self.object().spec
    }

    /// Returns kind, namespace and name.
    pub(in crate::compile) fn id(&self) -> &ObjectRef {
        &self.object().id
    }

    /// Returns the sort key among the sources of a host: the highest precedence first, then the oldest.
    pub(in crate::compile) fn precedence(&self) -> (u8, Age<'_>) {
        self.object().precedence()
    }

    /// Whether routes of a Service are used instead of the source for the same host.
    pub(in crate::compile) fn is_preceded_by(&self, routes: &ApplyingRoutes<'_>) -> bool {
        routes.precede(self.object())
    }

    /// Returns the namespaces whose proxies may use the source.
    pub(in crate::compile) fn export_to(&self) -> &ExportTo {
        &self.object().spec.export_to
    }

    /// Whether the source only provides rules for the delegation of others.
    pub(in crate::compile) fn is_delegate(&self) -> bool {
        self.object().spec.is_delegate()
    }

    /// Returns the hosts as they are written.
    pub(in crate::compile) fn written_hosts(&self) -> impl Iterator<Item = &Arc<str>> {
        self.object().spec.hosts.iter().map(|host| &host.value)
    }

    /// Returns the full hosts in a mesh with this domain.
    pub(in crate::compile) fn hosts(&self, domain: &str) -> impl Iterator<Item = Cow<'_, str>> {
        let namespace = &self.id().namespace;
        let hosts = self.written_hosts();
        hosts.map(move |host| hostname::complete(host, namespace, domain))
    }

    /// Returns the gateways that the source is attached to; sidecars are `mesh`.
    pub(in crate::compile) fn gateways(&self) -> impl Iterator<Item = &GatewayRef> {
        self.object().spec.gateways.iter().map(|one| &one.value)
    }

    /// Whether the source is attached to a gateway.
    pub(in crate::compile) fn is_attached_to(&self, gateway: &GatewayRef) -> bool {
        self.gateways().any(|one| one == gateway)
    }

    /// Whether two versions of a source have the same virtual hosts, in the same order among others.
    pub(in crate::compile) fn is_attached_as(&self, other: &Self) -> bool {
        self.precedence() == other.precedence()
            && self.export_to() == other.export_to()
            && self.written_hosts().eq(other.written_hosts())
            && self.gateways().eq(other.gateways())
    }

    /// Returns the rules for requests, in order.
    pub(in crate::compile) fn http(&self, view: View<'_>) -> &[Arc<HttpRule>] {
        &self.read(view).http
    }

    /// Returns the rules for TLS connections that are not terminated here, in order.
    pub(in crate::compile) fn tls(&self, view: View<'_>) -> &[TlsRule] {
        &self.read(view).tls
    }

    /// Returns the rules for other connections, in order.
    pub(in crate::compile) fn tcp(&self, view: View<'_>) -> &[TcpRule] {
        &self.read(view).tcp
    }

    /// Returns the delegates that rules name, each with the line of its rule.
    pub(in crate::compile) fn delegates(
        &self,
        view: View<'_>,
    ) -> impl Iterator<Item = (Line, &Name)> {
        self.http(view)
            .iter()
            .filter_map(|rule| match &rule.action {
                HttpAction::Delegate(delegate) => Some((rule.line, &delegate.name)),
                _ => None,
            })
    }

    /// Returns a delegate of the source.
    ///
    /// # Errors
    ///
    /// Returns the reason that the delegate provides no rules.
    pub(in crate::compile) fn delegate(
        &self,
        name: &Name,
        view: View<'_>,
    ) -> Result<Self, UnusableDelegate> {
        let object = catalog::delegate(view, name, &self.id().namespace)?;
        Ok(Self::VirtualService(Arc::clone(object)))
    }

    /// Returns the location of a line of the source's document; `Line(0)` is the source as a whole.
    pub(in crate::compile) fn provenance(&self, line: Line) -> Provenance {
        provenance_of(self.object().as_ref(), line.0)
    }

    /// Returns the line of the file for a line of the source's document.
    pub(in crate::compile) fn line_of(&self, line: Line) -> u32 {
        self.object().line_of(line)
    }
}

impl PartialEq for RouteSource {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.id(), other.id())
    }
}
