//! What is wrong with certificates, as diagnostics of the Gateways that use them.

use std::sync::Arc;

use config_loader::diagnostic::codes::tls as codes;
use config_loader::{Code, Diagnostic, Place, Severity};

use crate::compile::certificates::Use;
use crate::tls::store::Status;
use crate::tls::{Identity, IdentitySource, Problem, ProblemKind, Store};

/// What is wrong, once for each server that it matters to.
pub fn findings(uses: &[Use], store: &Store) -> Vec<Diagnostic> {
    let (identities, authorities) = (store.identities(), store.authorities());
    let mut found = Vec::new();
    for one in uses {
        for source in &one.settings.identities {
            let Some(status) = identities.iter().find(|status| status.source == *source) else {
                continue;
            };
            let consequence = consequence(status);
            let problems = status.problems.iter();
            found.extend(problems.map(|problem| tell(one, problem, consequence)));
            found.extend(hosts(one, source, status.in_force.as_deref()));
        }
        if one.settings.identities.is_empty() {
            let problem = Problem::new(
                ProblemKind::Missing,
                one.mode,
                "the server has no certificate",
            );
            found.push(tell(one, &problem, CLOSED));
        }
        for name in one.settings.unknown_groups() {
            let text = format!("curve `{name}` is ignored: it is not offered");
            found.push(diagnostic(one, Severity::Warning, codes::TLS012, text));
        }
        let Some(clients) = &one.settings.clients else {
            continue;
        };
        let source = clients.authorities.as_ref();
        match authorities
            .iter()
            .find(|status| Some(&status.source) == source)
        {
            Some(status) => {
                let consequence = consequence(status);
                let problems = status.problems.iter();
                found.extend(problems.map(|problem| tell(one, problem, consequence)));
            }
            None if clients.skip_verify => {}
            None => {
                let text = "there is no CA to verify clients with";
                let problem = Problem::new(ProblemKind::Authorities, one.mode, text);
                found.push(tell(one, &problem, CLOSED));
            }
        }
    }
    found
}

const CLOSED: &str = "clients of this server are turned away until this is mended";
const KEPT: &str = "the last good one stays in force";
const USED: &str = "it is used all the same, since there is nothing better";

/// What follows from something being wrong.
fn consequence<S, T>(status: &Status<S, T>) -> &'static str {
    match (&status.in_force, status.is_kept) {
        (None, _) => CLOSED,
        (Some(_), true) => KEPT,
        (Some(_), false) => USED,
    }
}

fn tell(one: &Use, problem: &Problem, consequence: &str) -> Diagnostic {
    let (severity, code) = kind(problem.kind);
    let mut found = diagnostic(one, severity, code, problem.to_string());
    found.help(consequence);
    found
}

fn diagnostic(one: &Use, severity: Severity, code: Code, message: String) -> Diagnostic {
    let mut found = Diagnostic::about_file(severity, code, Arc::clone(&one.file), message);
    found.place = Place {
        line: one.line,
        column: 1,
        ..Place::whole_file(Arc::clone(&one.file))
    };
    found.object = Some(one.object.clone());
    found.field.clone_from(&one.field);
    found
}

fn kind(kind: ProblemKind) -> (Severity, Code) {
    match kind {
        ProblemKind::Authorities => (Severity::Error, codes::TLS007),
        ProblemKind::Certificate => (Severity::Error, codes::TLS002),
        ProblemKind::Expired => (Severity::Error, codes::TLS005),
        ProblemKind::Foreign => (Severity::Error, codes::TLS013),
        ProblemKind::Key => (Severity::Error, codes::TLS003),
        ProblemKind::Mismatch => (Severity::Error, codes::TLS004),
        ProblemKind::Missing | ProblemKind::Unreadable => (Severity::Warning, codes::TLS001),
        ProblemKind::NotYetValid => (Severity::Error, codes::TLS006),
        ProblemKind::Revoked => (Severity::Error, codes::TLS008),
        ProblemKind::RevokedStale => (Severity::Warning, codes::TLS009),
        ProblemKind::Weak => (Severity::Warning, codes::TLS010),
    }
}

/// Hosts of a server that none of its certificates is for.
fn hosts(one: &Use, source: &IdentitySource, in_force: Option<&Identity>) -> Option<Diagnostic> {
    let facts = &in_force?.facts;
    if facts.names.is_empty() {
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
    Some(diagnostic(one, Severity::Warning, codes::TLS011, text))
}
