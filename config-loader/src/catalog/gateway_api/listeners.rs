//! Listeners of a Gateway and of its ListenerSets.

use std::sync::Arc;

use super::distinct::{Conflict, conflicts};
use super::grants::Referrer;
use super::references::{self, ReferenceProblem, certificate};
use crate::catalog::View;
use crate::catalog::pods::CLUSTER_SCOPED;
use crate::catalog::workload_policies::attached_to;
use crate::kind::{Kind, Name, ObjectRef};
use crate::resource::Object;
use crate::resource::core::{Namespace, Secret};
use crate::resource::gateway_api::{
    AddressType, ClientCertificates, GROUP, KubernetesGateway, Listener, ListenerProtocol,
    ListenerSet, ListenerTls, NamespaceSelection, ObjectReference, RouteKind, Termination,
};
use crate::resource::istio::{AuthorizationPolicy, RequestAuthentication};

/// Gateway with its listeners.
#[derive(Debug)]
pub struct ServedGateway<'a> {
    /// Gateway.
    pub object: &'a Arc<Object<KubernetesGateway>>,
    /// ListenerSets that name the Gateway as their parent, oldest first.
    pub sets: Vec<AttachedSet<'a>>,
    /// Listeners: those of the Gateway, then those of its allowed ListenerSets, in order.
    pub listeners: Vec<ServedListener<'a>>,
    /// Secret with the certificate that backends get.
    pub client_certificate: Option<Result<&'a Arc<Object<Secret>>, ReferenceProblem>>,
}

/// Reason that a Gateway is not accepted, whatever its listeners.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GatewayProblem {
    /// It has parameters, which are not supported.
    InvalidParameters,
    /// It has an address of this type, which is not supported.
    UnsupportedAddress(Arc<str>),
}

impl<'a> ServedGateway<'a> {
    /// Returns the reason that the Gateway is not accepted. None of its listeners is opened then.
    pub fn problem(&self) -> Option<GatewayProblem> {
        let spec = &self.object.spec;
        let mut addresses = spec.addresses.iter();
        let unsupported = addresses.find_map(|one| match &one.address {
            AddressType::Other(name) => Some(GatewayProblem::UnsupportedAddress(Arc::clone(name))),
            AddressType::Ip(_) => None,
        });
        match spec.parameters {
            Some(_) => Some(GatewayProblem::InvalidParameters),
            None => unsupported,
        }
    }

    /// Returns the AuthorizationPolicies and RequestAuthentications that are attached to the Gateway, or to its class.
    pub fn policies(&self, view: View<'a>, root_namespace: &str) -> Vec<&'a ObjectRef> {
        let object = &**self.object;
        let policies = attached_to::<AuthorizationPolicy>(view, object, root_namespace);
        let policies = policies.into_iter().map(|policy| &policy.id);
        let tokens = attached_to::<RequestAuthentication>(view, object, root_namespace);
        policies
            .chain(tokens.into_iter().map(|policy| &policy.id))
            .collect()
    }

    /// Returns the Secret with the certificate that backends get, if the reference may be used.
    pub fn client_secret(&self) -> Option<&'a ObjectReference> {
        let found = self.client_certificate.as_ref()?;
        let written = self.object.spec.client_certificate.as_ref();
        written.filter(|_| is_in_use(found))
    }

    /// Returns the identity of a listener: the object that has it, and its name.
    pub fn id_of<'s>(&'s self, served: &ServedListener<'s>) -> (&'s ObjectRef, &'s str) {
        (self.owner(served), &served.listener.name)
    }

    /// Returns the object that has a listener: the Gateway, or one of its ListenerSets.
    pub fn owner(&self, listener: &ServedListener<'_>) -> &ObjectRef {
        match listener.set {
            None => &self.object.id,
            Some(set) => &self.sets[set].object.id,
        }
    }
}

/// ListenerSet of a Gateway.
#[derive(Debug)]
pub struct AttachedSet<'a> {
    /// ListenerSet.
    pub object: &'a Arc<Object<ListenerSet>>,
    /// Whether the Gateway allows ListenerSets of its namespace.
    pub is_allowed: bool,
}

/// Listener of a served Gateway.
#[derive(Debug)]
pub struct ServedListener<'a> {
    /// Position of its ListenerSet among those of the Gateway; `None` for a listener of the Gateway itself.
    pub set: Option<usize>,
    /// Listener as configured.
    pub listener: &'a Listener,
    /// Reason that the listener is not accepted.
    pub problem: Option<ListenerProblem>,
    /// Kinds of the routes that may attach.
    pub kinds: Vec<Kind>,
    /// Whether `allowedRoutes.kinds` has kinds that cannot attach.
    pub has_invalid_kinds: bool,
    /// Secrets with certificates, in the order of the listener.
    pub certificates: Vec<Result<&'a Arc<Object<Secret>>, ReferenceProblem>>,
    /// Validation of client certificates.
    pub clients: Option<Clients<'a>>,
}

/// Validation of the client certificates of a listener.
#[derive(Debug)]
pub struct Clients<'a> {
    /// Clients that are served. Never [`ClientCertificates::None`].
    pub certificates: ClientCertificates,
    /// References to CA certificates.
    pub references: &'a [ObjectReference],
    /// CA certificates as PEM, in the order of the references.
    pub authorities: Vec<Result<&'a [u8], ReferenceProblem>>,
}

impl<'a> Clients<'a> {
    /// Returns the references that hold.
    pub fn trusted(&self) -> Vec<&'a ObjectReference> {
        let all = self.references.iter().zip(&self.authorities);
        let all = all.filter_map(|(target, found)| is_in_use(found).then_some(target));
        all.collect()
    }
}

/// Reason that a listener is not accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListenerProblem {
    /// This other listener has the same host and port.
    HostnameConflict(String),
    /// No reference to CA certificates of clients holds.
    NoValidCaCertificate,
    /// This other listener has the port, with a protocol that cannot share it.
    ProtocolConflict(String),
    /// The protocol is not supported.
    UnsupportedProtocol,
}

impl<'a> ServedListener<'a> {
    /// Whether the listener can serve: it is accepted, and has a certificate if it needs one.
    pub fn is_usable(&self) -> bool {
        let needs = self.termination().is_some();
        self.problem.is_none() && (!needs || self.certificates.iter().any(Result::is_ok))
    }

    /// Returns the host that the listener accepts; `*` for every host.
    pub fn hostname(&self) -> &'a str {
        self.listener.hostname.as_deref().unwrap_or("*")
    }

    /// Whether the protocol is HTTPS.
    pub fn is_https(&self) -> bool {
        matches!(self.listener.protocol, ListenerProtocol::Https(_))
    }

    /// Whether proxies serve the listener: it can serve, and its protocol and settings are followed.
    pub fn is_served(&self) -> bool {
        let protocol = &self.listener.protocol;
        let is_followed = !matches!(protocol, ListenerProtocol::Other(_) | ListenerProtocol::Udp);
        let needs = self.termination().is_some();
        is_followed && self.problem.is_none() && (!needs || self.secrets().next().is_some())
    }

    /// Returns the Secrets whose certificates are used. One that lacks a valid certificate now may have had one.
    pub fn secrets(&self) -> impl Iterator<Item = &'a ObjectReference> {
        let written = self.termination().map_or(&[][..], |tls| &tls.certificates);
        let all = written.iter().zip(&self.certificates);
        all.filter_map(|(target, found)| is_in_use(found).then_some(target))
    }

    /// Whether clients that ask for the host of the listener are refused, because it cannot serve them: no other listener of
    /// its port may, which could demand less of them.
    pub fn keeps_host(&self) -> bool {
        let has_tls = matches!(
            self.listener.protocol,
            ListenerProtocol::Https(_) | ListenerProtocol::Tls(_)
        );
        let is_port_its_own = matches!(
            self.problem,
            None | Some(ListenerProblem::NoValidCaCertificate)
        );
        has_tls && is_port_its_own && !self.is_served()
    }

    /// Returns the references to certificates that do not hold.
    pub fn certificate_problems(
        &self,
    ) -> impl Iterator<Item = (&ObjectReference, &ReferenceProblem)> {
        let written = self.termination().map_or(&[][..], |tls| &tls.certificates);
        let all = written.iter().zip(&self.certificates);
        all.filter_map(|(target, one)| Some((target, one.as_ref().err()?)))
    }

    /// Returns the termination of TLS, if the listener terminates it.
    pub fn termination(&self) -> Option<&'a Termination> {
        termination(&self.listener.protocol)
    }
}

fn is_in_use<T>(found: &Result<T, ReferenceProblem>) -> bool {
    found
        .as_ref()
        .err()
        .is_none_or(ReferenceProblem::is_of_content)
}

fn termination(protocol: &ListenerProtocol) -> Option<&Termination> {
    match protocol {
        ListenerProtocol::Https(tls) | ListenerProtocol::Tls(ListenerTls::Terminate(tls)) => {
            Some(tls)
        }
        _ => None,
    }
}

/// Returns a Gateway with its listeners. `sets` are all ListenerSets, oldest first.
pub(super) fn of_gateway<'a>(
    view: View<'a>,
    object: &'a Arc<Object<KubernetesGateway>>,
    sets: &[&'a Arc<Object<ListenerSet>>],
) -> ServedGateway<'a> {
    let is_parent = |set: &&&Arc<Object<ListenerSet>>| {
        let parent = set.spec.parent.as_ref();
        parent.is_some_and(|parent| {
            parent.is(GROUP, "Gateway")
                && (&parent.namespace, &parent.name) == (&object.id.namespace, &object.id.name)
        })
    };
    let allowed = &object.spec.allowed_listeners;
    let sets = sets.iter().filter(is_parent).map(|set| AttachedSet {
        object: set,
        is_allowed: {
            let member = Member {
                namespace: &set.id.namespace,
                is_from_server: set.is_from_server(),
            };
            is_in(view, allowed, &object.id.namespace, member)
        },
    });
    let sets: Vec<AttachedSet<'_>> = sets.collect();
    let own = Owner {
        view,
        gateway: object,
        set: None,
        referrer: Referrer {
            kind: "Gateway",
            namespace: &object.id.namespace,
        },
    };
    let mut listeners: Vec<ServedListener<'_>> = own.listeners(&object.spec.listeners);
    settle(&mut listeners, 0, object, &sets);
    for (index, set) in sets.iter().enumerate().filter(|(_, set)| set.is_allowed) {
        let owner = Owner {
            set: Some(index),
            referrer: Referrer {
                kind: "ListenerSet",
                namespace: &set.object.id.namespace,
            },
            ..own
        };
        let first = listeners.len();
        listeners.extend(owner.listeners(&set.object.spec.listeners));
        settle(&mut listeners, first, object, &sets);
    }
    let client_certificate = object.spec.client_certificate.as_ref();
    ServedGateway {
        client_certificate: client_certificate
            .map(|target| certificate(view, own.referrer, target)),
        object,
        sets,
        listeners,
    }
}

/// Object with listeners.
#[derive(Clone, Copy)]
struct Owner<'a, 'r> {
    view: View<'a>,
    gateway: &'a Arc<Object<KubernetesGateway>>,
    set: Option<usize>,
    referrer: Referrer<'r>,
}

impl<'a> Owner<'a, '_> {
    fn listeners(self, written: &'a [Listener]) -> Vec<ServedListener<'a>> {
        written.iter().map(|one| self.listener(one)).collect()
    }

    /// Judges a listener alone.
    fn listener(self, listener: &'a Listener) -> ServedListener<'a> {
        let carried = carried(&listener.protocol);
        let written = listener.kinds.as_deref();
        let is_carried = |kind: &&Kind, written: &[_]| {
            let mut written = written.iter();
            written.any(|one: &RouteKind| (&*one.group, &*one.kind) == (GROUP, kind.as_str()))
        };
        let kinds: Vec<Kind> = match written {
            None => carried.to_vec(),
            Some(written) => {
                let kinds = carried.iter().filter(|kind| is_carried(kind, written));
                kinds.copied().collect()
            }
        };
        let has_invalid_kinds = written.is_some_and(|written| {
            written.iter().any(|one| {
                let mut carried = carried.iter();
                *one.group != *GROUP || !carried.any(|kind| *kind.as_str() == *one.kind)
            })
        });
        let termination = termination(&listener.protocol);
        let certificates = termination.map_or(&[][..], |tls| &tls.certificates).iter();
        let certificates = certificates.map(|one| certificate(self.view, self.referrer, one));
        let clients = termination.and_then(|tls| self.clients(listener.port, tls));
        let problem = match carried {
            [] => Some(ListenerProblem::UnsupportedProtocol),
            _ => clients.as_ref().and_then(|clients| {
                let has_any = clients.authorities.iter().any(Result::is_ok);
                (!has_any).then_some(ListenerProblem::NoValidCaCertificate)
            }),
        };
        ServedListener {
            set: self.set,
            listener,
            problem,
            kinds,
            has_invalid_kinds,
            certificates: certificates.collect(),
            clients,
        }
    }

    /// Returns the validation of client certificates: that of the Gateway for the port, else that of the listener.
    fn clients(self, port: u16, tls: &'a Termination) -> Option<Clients<'a>> {
        let gateway = Referrer {
            kind: "Gateway",
            namespace: &self.gateway.id.namespace,
        };
        let frontend = self.gateway.spec.frontend.as_deref();
        let of_port = frontend.map(|own| own.per_port.get(&port).unwrap_or(&own.default).as_ref());
        let (certificates, references, referrer) = match of_port.flatten() {
            Some(validation) => {
                let certificates = match validation.is_insecure {
                    true => ClientCertificates::Unverified,
                    false => ClientCertificates::Required,
                };
                (certificates, &validation.authorities, gateway)
            }
            None if tls.options.clients == ClientCertificates::None => return None,
            None => {
                let own = &tls.options.client_authorities;
                let references = if own.is_empty() {
                    &tls.certificates
                } else {
                    own
                };
                (tls.options.clients, references, self.referrer)
            }
        };
        let authorities = references.iter();
        let authorities = authorities.map(|one| references::authorities(self.view, referrer, one));
        Some(Clients {
            certificates,
            references,
            authorities: authorities.collect(),
        })
    }
}

/// Returns the kinds of routes that a protocol carries; none for one that is not supported.
fn carried(protocol: &ListenerProtocol) -> &'static [Kind] {
    match protocol {
        ListenerProtocol::Http | ListenerProtocol::Https(_) => &[Kind::HTTPRoute, Kind::GRPCRoute],
        ListenerProtocol::Tcp => &[Kind::TCPRoute],
        ListenerProtocol::Tls(_) => &[Kind::TLSRoute],
        ListenerProtocol::Other(_) | ListenerProtocol::Udp => &[],
    }
}

/// Records the conflicts of the listeners from position `first` on, which are those of one object. A listener that no
/// route can attach to takes no port.
fn settle(
    listeners: &mut [ServedListener<'_>],
    first: usize,
    gateway: &Object<KubernetesGateway>,
    sets: &[AttachedSet<'_>],
) {
    let takes_port = |one: &&ServedListener<'_>| {
        !one.kinds.is_empty() && one.problem != Some(ListenerProblem::UnsupportedProtocol)
    };
    let (earlier, own) = listeners.split_at(first);
    let is_settled = |one: &&ServedListener<'_>| {
        let is_lost = matches!(
            one.problem,
            Some(ListenerProblem::HostnameConflict(_) | ListenerProblem::ProtocolConflict(_))
        );
        takes_port(one) && !is_lost
    };
    let earlier: Vec<_> = earlier.iter().filter(is_settled).collect();
    let own_positions = own.iter().enumerate().filter(|(_, one)| takes_port(one));
    let (positions, own): (Vec<usize>, Vec<_>) = own_positions.unzip();
    let found = {
        let earlier: Vec<_> = earlier.iter().map(|one| one.listener).collect();
        let own: Vec<_> = own.iter().map(|one| one.listener).collect();
        conflicts(&earlier, &own)
    };
    let all: Vec<_> = earlier.iter().chain(&own).collect();
    let found = found.into_iter().map(|found| {
        let (conflict, with) = found?;
        let with = all[with];
        let owner = match with.set {
            None => &gateway.id,
            Some(set) => &sets[set].object.id,
        };
        let with = format!("listener `{}` of {owner}", with.listener.name);
        Some(match conflict {
            Conflict::Hostname => ListenerProblem::HostnameConflict(with),
            Conflict::Protocol => ListenerProblem::ProtocolConflict(with),
        })
    });
    let found: Vec<Option<ListenerProblem>> = found.collect();
    for (position, problem) in positions.into_iter().zip(found) {
        if problem.is_some() {
            listeners[first + position].problem = problem;
        }
    }
}

/// Object that is selected by its namespace.
#[derive(Clone, Copy)]
pub(super) struct Member<'a> {
    pub(super) namespace: &'a str,
    /// Whether it comes from a server. One of a file has a namespace of files, whose labels are all known.
    pub(super) is_from_server: bool,
}

/// Whether a selection, made in the namespace `own`, includes an object.
pub(super) fn is_in(
    view: View<'_>,
    selection: &NamespaceSelection,
    own: &str,
    member: Member<'_>,
) -> bool {
    let namespace = member.namespace;
    match selection {
        NamespaceSelection::All => true,
        NamespaceSelection::None => false,
        NamespaceSelection::Same => own == namespace,
        NamespaceSelection::Selector(selector) => {
            let object = view.get::<Namespace>(&Name::new(CLUSTER_SCOPED, namespace));
            let may_have_more = object.is_none() && member.is_from_server;
            let mut labels = object.map_or_else(Default::default, |one| one.spec.labels.to_map());
            let name = labels.entry("kubernetes.io/metadata.name".to_owned());
            name.or_insert_with(|| namespace.to_owned());
            selector.selects(&labels, may_have_more)
        }
    }
}
