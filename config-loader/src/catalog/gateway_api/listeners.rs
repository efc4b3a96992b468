//! Listeners of a Gateway and of its ListenerSets.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::distinct::{Conflict, conflicts};
use super::grants::Referrer;
use super::references::{self, ReferenceProblem, certificate};
use crate::catalog::View;
use crate::catalog::pods::CLUSTER_SCOPED;
use crate::catalog::workload_policies::{GATEWAY_NAME, attached_to};
use crate::kind::{Kind, Name, ObjectRef};
use crate::resource::Object;
use crate::resource::core::{Namespace, Secret};
use crate::resource::gateway_api::{
    ClientValidation, GROUP, KubernetesGateway, Listener, ListenerProtocol, ListenerSet,
    ListenerTls, NamespaceSelection, ObjectReference, RouteKind, Termination,
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
    /// Policy with a `targetRef` to the Gateway. Only proxies of this Gateway apply it.
    pub policy: Option<&'a ObjectRef>,
    /// Secret with the certificate that backends get.
    pub client_certificate: Option<Result<&'a Arc<Object<Secret>>, ReferenceProblem>>,
}

impl ServedGateway<'_> {
    /// Whether a proxy of a namespace and with labels applies the policies that are attached to the Gateway, if any are.
    pub fn is_guarded_by(&self, namespace: &str, labels: &BTreeMap<String, String>) -> bool {
        let id = &self.object.id;
        let is_own = labels
            .get(GATEWAY_NAME)
            .is_some_and(|name| **name == *id.name);
        self.policy.is_none() || (is_own && *id.namespace == *namespace)
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
    /// Settings.
    pub validation: &'a ClientValidation,
    /// CA certificates as PEM, in the order of the settings.
    pub authorities: Vec<Result<&'a [u8], ReferenceProblem>>,
}

/// Beginnings of the options of TLS that are settings of the proxy, which it does not follow yet.
const SETTINGS: [&str; 2] = ["gateway.istio.io/", "strait.io/"];

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

impl ServedListener<'_> {
    /// Whether the listener can serve: it is accepted, and has a certificate if it needs one.
    pub fn is_usable(&self) -> bool {
        let needs = self
            .termination()
            .is_some_and(|tls| !tls.certificates.is_empty());
        self.problem.is_none() && (!needs || self.certificates.iter().any(Result::is_ok))
    }

    /// Whether proxies serve the listener: it can serve, and its protocol and settings are followed.
    pub fn is_served(&self) -> bool {
        let is_followed = match &self.listener.protocol {
            ListenerProtocol::Http => true,
            ListenerProtocol::Https(tls) => {
                let is_setting = |key: &String| SETTINGS.iter().any(|own| key.starts_with(own));
                self.clients.is_none() && !tls.options.keys().any(is_setting)
            }
            _ => false,
        };
        is_followed && self.is_usable()
    }

    /// Returns the references to certificates that do not hold.
    pub fn certificate_problems(
        &self,
    ) -> impl Iterator<Item = (&ObjectReference, &ReferenceProblem)> {
        let written = self.termination().map_or(&[][..], |tls| &tls.certificates);
        let all = written.iter().zip(&self.certificates);
        all.filter_map(|(target, one)| Some((target, one.as_ref().err()?)))
    }

    fn termination(&self) -> Option<&Termination> {
        termination(&self.listener.protocol)
    }
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
        is_allowed: is_in(view, allowed, (&object.id.namespace, &set.id.namespace)),
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
    let tokens = || attached_to::<RequestAuthentication>(view, &object.id);
    ServedGateway {
        policy: attached_to::<AuthorizationPolicy>(view, &object.id).or_else(tokens),
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
        let clients = termination.and_then(|_| self.clients(listener.port));
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

    /// Returns the validation of client certificates on a port.
    fn clients(self, port: u16) -> Option<Clients<'a>> {
        let frontend = self.gateway.spec.frontend.as_deref()?;
        let of_port = frontend.per_port.get(&port).unwrap_or(&frontend.default);
        let validation = of_port.as_ref()?;
        let gateway = Referrer {
            kind: "Gateway",
            namespace: &self.gateway.id.namespace,
        };
        let authorities = validation.authorities.iter();
        let authorities = authorities.map(|one| references::authorities(self.view, gateway, one));
        Some(Clients {
            validation,
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

/// Whether a selection, made in the first namespace, includes the second one.
pub(super) fn is_in(
    view: View<'_>,
    selection: &NamespaceSelection,
    (own, namespace): (&str, &str),
) -> bool {
    match selection {
        NamespaceSelection::All => true,
        NamespaceSelection::None => false,
        NamespaceSelection::Same => own == namespace,
        NamespaceSelection::Selector(selector) => {
            let object = view.get::<Namespace>(&Name::new(CLUSTER_SCOPED, namespace));
            let mut labels = object.map_or_else(Default::default, |one| one.spec.labels.to_map());
            let name = labels.entry("kubernetes.io/metadata.name".to_owned());
            name.or_insert_with(|| namespace.to_owned());
            selector.selects(&labels)
        }
    }
}
