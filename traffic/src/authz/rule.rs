//! Rules of policies, and the comparison of one rule with a subject.

use std::net::IpAddr;
use std::sync::Arc;

use ipnet::IpNet;

use super::pattern::{Pattern, RequestPrincipal};
use super::subject::Subject;
use crate::provenance::Provenance;
use crate::route::HeaderKey;
use crate::telemetry::PolicyTally;

/// Policy that a rule belongs to.
#[derive(Debug)]
pub struct Policy {
    /// Namespace.
    pub namespace: Arc<str>,
    /// Name.
    pub name: Arc<str>,
    /// Resource, with file and line.
    pub provenance: Provenance,
    /// Matches that decided something, or would have in dry run.
    pub matches: Arc<PolicyTally>,
}

/// Rule: any source, any operation, and all conditions.
#[derive(Clone, Debug)]
pub struct Rule {
    /// Policy of the rule.
    pub policy: Arc<Policy>,
    /// Name for logs: `ns[NAMESPACE]-policy[NAME]-rule[INDEX]`, or `...-invalid` for a rejected policy.
    pub name: Arc<str>,
    /// Line of the rule in the file of its policy; 0 if unknown.
    pub line: u32,
    /// Sources; empty for any source.
    pub from: Box<[Box<[Condition]>]>,
    /// Operations; empty for any operation.
    pub to: Box<[Box<[Condition]>]>,
    /// Conditions, all of which must hold.
    pub when: Box<[Condition]>,
}

/// Condition on one attribute.
#[derive(Clone, Debug)]
pub struct Condition {
    /// Attribute that is compared.
    pub attribute: Attribute,
    /// Values, one of which must match; `None` for any value.
    pub values: Option<Values>,
    /// Values, none of which may match.
    pub not_values: Option<Values>,
}

/// Attribute of a request or a connection.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Attribute {
    /// Identity of the client's certificate, without `spiffe://`.
    Principal,
    /// Namespace of that identity.
    Namespace,
    /// `ns/NAMESPACE/sa/SERVICE-ACCOUNT` of that identity.
    ServiceAccount,
    /// Trust domain of that identity.
    TrustDomain,
    /// Issuer and subject of the token.
    RequestPrincipal,
    /// Address of the connection's peer.
    SourceIp,
    /// Address of the original client.
    RemoteIp,
    /// Authority, in any case. With `is_bare`, a value without a colon is also compared with the authority without port
    /// and final dot.
    Host {
        /// Whether values also match without port and dot.
        is_bare: bool,
    },
    /// HTTP method.
    Method,
    /// Normalized path without query; none for CONNECT.
    Path,
    /// Port that the client dialed.
    DestinationPort,
    /// Address that the client dialed.
    DestinationIp,
    /// SNI in lower case; empty without TLS.
    Sni,
    /// Each line of a header.
    Header(HeaderKey),
    /// Claim of the token, by its path.
    Claim(Box<[Box<str>]>),
    /// Attribute that no request has.
    Absent,
}

/// Values of a condition.
#[derive(Clone, Debug)]
pub enum Values {
    /// Texts.
    Texts(Box<[Pattern]>),
    /// Request principals.
    Principals(Box<[RequestPrincipal]>),
    /// Addresses and CIDR blocks.
    Networks(Box<[IpNet]>),
    /// Ports.
    Ports(Box<[u16]>),
}

/// Reason that a rule does not match.
#[derive(Clone, Copy, Debug)]
pub struct Failure<'a> {
    /// Condition that does not hold.
    pub condition: &'a Condition,
    /// Whether a value matched that must not match.
    pub is_negated: bool,
    /// Whether the condition is in `when`.
    pub is_when: bool,
}

impl Rule {
    /// Whether a condition reads a header that the proxy adds to requests.
    pub fn reads_added(&self) -> bool {
        let groups = self.from.iter().chain(&self.to);
        let mut conditions = groups.flatten().chain(&self.when);
        conditions.any(|condition| match &condition.attribute {
            Attribute::Header(key) => key.is_added(),
            _ => false,
        })
    }

    /// Whether the subject matches.
    pub fn matches(&self, subject: &Subject<'_>) -> bool {
        let holds = |conditions: &[Condition]| conditions.iter().all(|one| one.holds(subject));
        let any = |group: &[Box<[Condition]>]| {
            group.is_empty() || group.iter().any(|conditions| holds(conditions))
        };
        any(&self.from) && any(&self.to) && holds(&self.when)
    }

    /// Returns the first condition that does not hold: of the first source, of the first operation, or of `when`. `None`
    /// if the rule matches.
    pub fn failure(&self, subject: &Subject<'_>) -> Option<Failure<'_>> {
        let first = |conditions: &'_ [Condition]| {
            let failed = conditions.iter().position(|one| !one.holds(subject))?;
            Some(failed)
        };
        for group in [&self.from, &self.to] {
            let failed = group.iter().map(|one| first(one)).collect::<Vec<_>>();
            if failed.iter().all(Option::is_some)
                && let Some(condition) = failed.first().copied().flatten().map(|at| &group[0][at])
            {
                return Some(condition.failure(subject, false));
            }
        }
        let condition = &self.when[first(&self.when)?];
        Some(condition.failure(subject, true))
    }
}

impl Condition {
    /// Whether the condition holds.
    pub fn holds(&self, subject: &Subject<'_>) -> bool {
        let any = |values: &Values| values.any(&self.attribute, subject);
        self.values.as_ref().is_none_or(any)
            && !self.not_values.as_ref().is_some_and(any_not(self, subject))
    }

    fn failure(&self, subject: &Subject<'_>, is_when: bool) -> Failure<'_> {
        let any = |values: &Values| values.any(&self.attribute, subject);
        Failure {
            condition: self,
            is_negated: self.values.as_ref().is_none_or(any),
            is_when,
        }
    }
}

/// Returns the test of a negated value. A host is compared as it was sent: a looser comparison would match less.
fn any_not<'a>(
    condition: &'a Condition,
    subject: &'a Subject<'_>,
) -> impl Fn(&Values) -> bool + use<'a> {
    const AS_SENT: &Attribute = &Attribute::Host { is_bare: false };
    let attribute = match condition.attribute {
        Attribute::Host { .. } => AS_SENT,
        _ => &condition.attribute,
    };
    move |values| values.any(attribute, subject)
}

impl Values {
    /// Whether a value matches the attribute. An absent attribute matches nothing.
    fn any(&self, attribute: &Attribute, subject: &Subject<'_>) -> bool {
        match self {
            Self::Networks(networks) => attribute
                .address(subject)
                .is_some_and(|address| networks.iter().any(|network| network.contains(&address))),
            Self::Ports(ports) => ports.contains(&subject.destination.port()),
            Self::Principals(principals) => subject
                .claims
                .is_some_and(|claims| principals.iter().any(|one| one.matches(claims))),
            Self::Texts(patterns) => {
                let folds = attribute.folds();
                if attribute.any_text(subject, &mut |text| {
                    patterns.iter().any(|pattern| pattern.matches(text, folds))
                }) {
                    return true;
                }
                let bare = attribute.bare_host(subject);
                bare.is_some_and(|host| {
                    let mut patterns = patterns.iter().filter(|pattern| !pattern.has_colon());
                    patterns.any(|pattern| pattern.matches(host.as_bytes(), folds))
                })
            }
        }
    }
}

impl Pattern {
    fn has_colon(&self) -> bool {
        match self {
            Self::Exact(text) | Self::Prefix(text) | Self::Suffix(text) => text.contains(':'),
            _ => false,
        }
    }
}

impl Attribute {
    /// Whether only requests have the attribute.
    pub fn is_of_requests(&self) -> bool {
        matches!(
            self,
            Self::RequestPrincipal
                | Self::Host { .. }
                | Self::Method
                | Self::Path
                | Self::Header(_)
                | Self::Claim(_)
        )
    }

    /// Whether letters of the attribute are compared in any case.
    pub(super) fn folds(&self) -> bool {
        matches!(self, Self::Host { .. })
    }

    pub(super) fn address(&self, subject: &Subject<'_>) -> Option<IpAddr> {
        match self {
            Self::SourceIp => Some(subject.source_ip),
            Self::RemoteIp => Some(subject.remote_ip),
            Self::DestinationIp => Some(subject.destination.ip()),
            _ => None,
        }
    }

    /// Host of a request without port and final dot, if values are compared with that too.
    pub(super) fn bare_host<'a>(&self, subject: &Subject<'a>) -> Option<&'a str> {
        match self {
            Self::Host { is_bare: true } => Some(subject.request?.host),
            _ => None,
        }
    }

    /// Calls `test` with the texts of the attribute until it returns true, and returns whether it did.
    pub fn any_text(&self, subject: &Subject<'_>, test: &mut dyn FnMut(&[u8]) -> bool) -> bool {
        let text = match self {
            Self::Header(key) => {
                return subject
                    .request
                    .is_some_and(|head| key.any_line(&head, |line| test(line)));
            }
            Self::Claim(path) => {
                return subject
                    .claims
                    .is_some_and(|claims| claims.texts(path).any(|text| test(text.as_bytes())));
            }
            Self::Principal => subject.peer.map(|peer| peer.principal),
            Self::Namespace => subject.peer.map(|peer| peer.namespace),
            Self::ServiceAccount => subject.peer.map(|peer| peer.account),
            Self::TrustDomain => subject.peer.map(|peer| peer.trust_domain),
            Self::Host { .. } => subject.request.map(|head| head.authority),
            Self::Method => subject.request.as_ref().map(|head| head.method.as_str()),
            // neither CONNECT nor `OPTIONS *` has one
            Self::Path => subject
                .request
                .map(|head| head.path)
                .filter(|path| path.starts_with('/')),
            Self::Sni => Some(subject.sni),
            Self::RequestPrincipal
            | Self::SourceIp
            | Self::RemoteIp
            | Self::DestinationIp
            | Self::DestinationPort
            | Self::Absent => None,
        };
        text.is_some_and(|text| test(text.as_bytes()))
    }
}
