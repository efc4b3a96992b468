//! Backends of routes: their places, and the fate of the traffic of a backend that cannot be used.

use crate::catalog::gateway_api::ReferenceProblem;
use crate::diagnostic::codes::gateway_api::{GA063, GA070, GA071, GA072, GA073};
use crate::diagnostic::{Code, Diagnostic};
use crate::kind::Kind;
use crate::resource::Object;
use crate::resource::gateway_api::{BackendRef, Filter, RouteRule};
use crate::validate::references::finding::note;

/// Place of a backend in a route.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    rule: usize,
    /// Index of the backend; `None` for a mirror of the rule.
    backend: Option<usize>,
    is_mirror: bool,
}

impl Place {
    /// Place of the only backends of a route for connections.
    pub(super) const fn of_connections(backend: usize) -> Self {
        Self {
            rule: 0,
            backend: Some(backend),
            is_mirror: false,
        }
    }

    /// Returns the path of the field.
    pub(super) fn field(self) -> String {
        let Self { rule, .. } = self;
        let backend = self.backend.map(|index| format!(".backendRefs[{index}]"));
        let filters = self.is_mirror.then_some(".filters");
        format!(
            "spec.rules[{rule}]{}{}",
            backend.unwrap_or_default(),
            filters.unwrap_or_default()
        )
    }

    /// Returns what happens to the traffic of a backend that routes of a kind cannot use.
    pub(super) fn fate(self, kind: Kind) -> &'static str {
        match kind {
            _ if self.is_mirror => "requests are served, and no copies are sent",
            Kind::GRPCRoute => "its share of the calls gets the status 14",
            Kind::TCPRoute | Kind::TLSRoute => "its share of the connections is closed",
            _ => "its share of the requests gets a response with status 500",
        }
    }
}

/// Returns the backends of rules, with those of mirrors, in order.
pub(super) fn placed<M>(rules: &[RouteRule<M>]) -> impl Iterator<Item = (Place, &BackendRef)> {
    fn mirrors(
        rule: usize,
        backend: Option<usize>,
        filters: &[Filter],
    ) -> impl Iterator<Item = (Place, &BackendRef)> {
        let is_mirror = true;
        filters.iter().filter_map(move |filter| match filter {
            Filter::Mirror(mirror) => Some((
                Place {
                    rule,
                    backend,
                    is_mirror,
                },
                &mirror.target,
            )),
            _ => None,
        })
    }
    rules.iter().enumerate().flat_map(|(rule, written)| {
        let backends = written.backends.iter().enumerate();
        let of_backends = backends.flat_map(move |(index, backend)| {
            let backend_index = Some(index);
            let place = Place {
                rule,
                backend: backend_index,
                is_mirror: false,
            };
            let mirrors = mirrors(rule, backend_index, &backend.filters);
            std::iter::once((place, &backend.target)).chain(mirrors)
        });
        mirrors(rule, None, &written.filters).chain(of_backends)
    })
}

/// Reports rules without a backend that gets requests, which answer all of them with an error.
pub(super) fn check_weights<T, M>(
    object: &Object<T>,
    rules: &[RouteRule<M>],
    found: &mut Vec<Diagnostic>,
) {
    for (index, rule) in rules.iter().enumerate() {
        let redirects = |filter: &Filter| matches!(filter, Filter::Redirect(_));
        if rule.filters.iter().any(redirects) || rule.backends.iter().any(|one| one.weight > 0) {
            continue;
        }
        let why = match rule.backends.is_empty() {
            true => "the rule has no backends",
            false => "all backends have the weight 0",
        };
        let answer = match object.id.kind {
            Kind::GRPCRoute => "calls get the status 14",
            _ => "requests get a response with status 500",
        };
        let field = format!("spec.rules[{index}]");
        let message = format!("{why}: {answer}");
        let mut diagnostic = note(object, GA072, rule.line, &field, message);
        diagnostic.help("write a backend with a weight of at least 1, or a filter RequestRedirect");
        found.push(diagnostic);
    }
}

/// Returns the code of a problem of a backend.
pub(super) fn code_of(problem: &ReferenceProblem) -> Code {
    match problem {
        ReferenceProblem::InvalidKind | ReferenceProblem::NotPermitted => GA070,
        ReferenceProblem::Malformed(_) | ReferenceProblem::NotFound(_) => GA071,
        ReferenceProblem::UnsupportedProtocol(_) => GA073,
        ReferenceProblem::UnverifiableTls(_) => GA063,
    }
}

/// Returns the advice about a problem of a backend.
pub(super) fn advice(problem: &ReferenceProblem) -> &'static str {
    match problem {
        ReferenceProblem::UnsupportedProtocol(_) => {
            "add a BackendTLSPolicy or a DestinationRule with `tls`, or change the `appProtocol` of the port"
        }
        ReferenceProblem::UnverifiableTls(_) => {
            "give the policy a ConfigMap or Secret with `ca.crt`, or `wellKnownCACertificates: System`"
        }
        _ => "write a Service or ServiceImport that exists, and one of its ports",
    }
}
