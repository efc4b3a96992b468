//! Problems of certificates, as diagnostics of the Gateways and DestinationRules that use them.

mod clients;
mod workload;

use std::sync::Arc;

use config_loader::diagnostic::codes::identity::{ID001, ID002, ID004, ID005};
use config_loader::diagnostic::codes::tls as codes;
use config_loader::resource::istio::ServerTlsMode;
use config_loader::{Code, Diagnostic, ObjectRef, Severity};

pub(crate) use clients::of_clients;
pub(crate) use workload::{of_another_workload, of_workload};

use crate::compile::certificates::{FieldPlace, Fields, Use};
use crate::tls::store::Status;
use crate::tls::{
    Authorities, AuthoritySource, Identity, IdentitySource, Problem, ProblemKind, Store,
};

/// Returns the problems, once for each server that they affect.
pub(crate) fn findings(uses: &[Use], store: &Store) -> Vec<Diagnostic> {
    let (identities, authorities) = statuses(store);
    let mut found = Vec::new();
    for one in uses {
        for (index, source) in one.settings.identities.iter().enumerate() {
            let Some(status) = identities.iter().find(|status| status.source == *source) else {
                continue;
            };
            let consequence = consequence(status, CLOSED);
            let problems = status.problems.iter();
            found.extend(problems.map(|problem| {
                let field = one.fields.identity(index, is_of_key(problem, source));
                diagnose(one, field, problem, consequence)
            }));
            let field = one.fields.identity(index, false);
            found.extend(hosts(one, field, source, status.in_force.as_deref()));
        }
        if one.settings.identities.is_empty() {
            let problem = Problem::new(
                ProblemKind::Missing,
                one.mode,
                "the server has no certificate",
            );
            found.push(diagnose(one, one.fields.find("mode"), &problem, CLOSED));
        }
        found.extend(curves(one));
        let Some(clients) = &one.settings.clients else {
            continue;
        };
        let source = clients.authorities.as_ref();
        match authorities
            .iter()
            .find(|status| Some(&status.source) == source)
        {
            Some(status) => {
                let consequence = consequence(status, CLOSED);
                let problems = status.problems.iter();
                found.extend(problems.map(|problem| {
                    let field = authority_field(&one.fields, problem, &status.source);
                    diagnose(one, field, problem, consequence)
                }));
            }
            None if clients.skip_verify => {}
            None => {
                let text = "there is no CA to verify clients with";
                let problem = Problem::new(ProblemKind::Authorities, one.mode, text);
                found.push(diagnose(one, one.fields.find("mode"), &problem, CLOSED));
            }
        }
    }
    found
}

type Statuses = (
    Vec<Status<IdentitySource, Identity>>,
    Vec<Status<AuthoritySource, Authorities>>,
);

/// Returns the status of all material. Problems of a server that issues the identity of the workload are found once, and
/// not at each resource that uses it.
fn statuses(store: &Store) -> Statuses {
    let (mut identities, mut authorities) = (store.identities(), store.authorities());
    for status in &mut identities {
        if matches!(status.source, IdentitySource::Workload(_)) {
            status.problems.clear();
        }
    }
    for status in &mut authorities {
        if matches!(status.source, AuthoritySource::Workload(_)) {
            status.problems.clear();
        }
    }
    (identities, authorities)
}

/// Returns whether a problem is about the key of a certificate, not its chain.
fn is_of_key(problem: &Problem, source: &IdentitySource) -> bool {
    let names_key = matches!(source, IdentitySource::Files { key, .. } if *key == problem.place);
    names_key || matches!(problem.kind, ProblemKind::Key | ProblemKind::Mismatch)
}

/// Returns the field that a problem of the client authorities belongs to.
fn authority_field(fields: &Fields, problem: &Problem, source: &AuthoritySource) -> FieldPlace {
    let of_revoked = match source {
        AuthoritySource::Files { revoked, .. } | AuthoritySource::System { revoked } => {
            let names_it = revoked.as_ref() == Some(&problem.place);
            names_it
                || matches!(
                    problem.kind,
                    ProblemKind::Revoked | ProblemKind::RevokedStale
                )
        }
        AuthoritySource::Referred { .. }
        | AuthoritySource::Secret { .. }
        | AuthoritySource::Workload(_) => false,
    };
    match of_revoked {
        true => fields.find("caCrl"),
        false => fields.find(&fields.authorities),
    }
}

/// Findings about curves that the proxy does not support.
fn curves(one: &Use) -> impl Iterator<Item = Diagnostic> {
    one.settings.protocol.unknown_groups().map(|name| {
        let mut groups = one.settings.protocol.groups.iter();
        let index = groups.position(|group| group == name);
        let field = one
            .fields
            .find(&format!("ecdhCurves[{}]", index.unwrap_or_default()));
        let text = format!("curve `{name}` is ignored: it is not offered");
        let mut found = diagnostic(one, field, Severity::Warning, codes::TLS012, text);
        found.help("remove it; without `ecdhCurves` all that are safe are offered");
        found
    })
}

const CLOSED: &str = "clients of this server are turned away until this is fixed";
const KEPT: &str = "the last good one stays in effect";
const USED: &str = "it is used all the same, since there is nothing better";

/// Describes the effect of a problem: `without` if no version is in effect.
fn consequence<S, T>(status: &Status<S, T>, without: &'static str) -> &'static str {
    match (&status.in_force, status.is_kept) {
        (None, _) => without,
        (Some(_), true) => KEPT,
        (Some(_), false) => USED,
    }
}

fn diagnose(one: &Use, field: FieldPlace, problem: &Problem, consequence: &str) -> Diagnostic {
    let (severity, code) = kind(problem.kind);
    let mut found = diagnostic(one, field, severity, code, problem.to_string());
    found.help(fix(problem, consequence));
    found
}

/// Renders the fix of a problem, and its effect until then.
fn fix(problem: &Problem, consequence: &str) -> String {
    match &problem.fix {
        Some(fix) => format!("{fix}; {consequence}"),
        None => consequence.to_owned(),
    }
}

/// Makes a finding at a field.
fn diagnostic(
    one: &Use,
    field: FieldPlace,
    severity: Severity,
    code: Code,
    message: String,
) -> Diagnostic {
    let found = Diagnostic::about_file(severity, code, Arc::clone(&one.file), message);
    at(found, Some(&one.object), field)
}

/// Places a finding about a file at a field: of an object, or of the file itself.
fn at(mut found: Diagnostic, object: Option<&ObjectRef>, field: FieldPlace) -> Diagnostic {
    found.location.line = field.line;
    found.location.column = 1;
    found.object = object.cloned();
    found.field = field.path;
    found
}

fn kind(kind: ProblemKind) -> (Severity, Code) {
    match kind {
        ProblemKind::Ambiguous => (Severity::Error, codes::TLS016),
        ProblemKind::Authorities => (Severity::Error, codes::TLS007),
        ProblemKind::Awaited | ProblemKind::NotYetIssued => (Severity::Warning, ID001),
        ProblemKind::Denied | ProblemKind::Withdrawn => (Severity::Error, ID002),
        ProblemKind::Incomplete => (Severity::Warning, ID004),
        ProblemKind::NoneFits => (Severity::Error, ID005),
        ProblemKind::Certificate => (Severity::Error, codes::TLS002),
        ProblemKind::Expired => (Severity::Error, codes::TLS005),
        ProblemKind::Foreign => (Severity::Error, codes::TLS013),
        ProblemKind::Key => (Severity::Error, codes::TLS003),
        ProblemKind::Mismatch => (Severity::Error, codes::TLS004),
        ProblemKind::Missing | ProblemKind::Unreadable => (Severity::Warning, codes::TLS001),
        ProblemKind::NotYetValid => (Severity::Error, codes::TLS006),
        ProblemKind::OtherWorkload => (Severity::Error, codes::TLS015),
        ProblemKind::UnknownIssuer => (Severity::Error, codes::TLS017),
        ProblemKind::Revoked => (Severity::Error, codes::TLS008),
        ProblemKind::RevokedStale => (Severity::Warning, codes::TLS009),
        ProblemKind::Weak => (Severity::Warning, codes::TLS010),
    }
}

/// Finding about hosts of a server that its certificate does not cover.
fn hosts(
    one: &Use,
    field: FieldPlace,
    source: &IdentitySource,
    in_force: Option<&Identity>,
) -> Option<Diagnostic> {
    let facts = &in_force?.facts;
    // Clients of the mesh check an identity such as `spiffe://cluster.local/ns/a/sa/b`, not the host.
    let of_mesh = one.mode == ServerTlsMode::IstioMutual.as_str();
    if of_mesh || facts.names.is_empty() {
        return None;
    }
    let all = |host: &&Arc<str>| ***host == *"*" || facts.covers(host);
    let strangers: Vec<&str> = one
        .hosts
        .iter()
        .filter(|host| !all(host))
        .map(|host| &**host)
        .collect();
    if strangers.is_empty() {
        return None;
    }
    let names: Vec<String> = facts.names.iter().map(ToString::to_string).collect();
    let text = format!(
        "{source}: the certificate is for {}, not for {}",
        names.join(", "),
        strangers.join(", ")
    );
    let mut found = diagnostic(one, field, Severity::Warning, codes::TLS011, text);
    found.help("clients that verify names turn away: serve with a certificate for all of `hosts`");
    Some(found)
}

#[cfg(test)]
mod tests;
