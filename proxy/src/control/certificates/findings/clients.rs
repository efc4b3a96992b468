//! Problems of certificates for connections to endpoints, as diagnostics of DestinationRules and of the remote clusters
//! file (`--clusters`).

use std::sync::Arc;

use config_loader::diagnostic::codes::tls as codes;
use config_loader::{Diagnostic, Severity};

use super::{at, authority_field, consequence, fix, is_of_key, kind, statuses};
use crate::compile::certificates::FieldPlace;
use crate::compile::policies::client_tls::ClientUse;
use crate::tls::{Problem, Store};

const FAILS: &str =
    "connections that need it fail until this is fixed; they never go in plain text";

/// Returns the problems, once for each `tls` section that they affect.
pub(crate) fn of_clients(uses: &[ClientUse], store: &Store) -> Vec<Diagnostic> {
    let (identities, authorities) = statuses(store);
    let mut found = Vec::new();
    for one in uses {
        if let Some(refused) = one.refused {
            let file = Arc::clone(&one.file);
            let told = Diagnostic::about_file(Severity::Error, codes::TLS014, file, refused);
            let field = one.fields.find("credentialName");
            let mut told = at(told, one.object.as_ref(), field);
            told.help("write `workloadSelector`, or name files; until then connections fail");
            found.push(told);
        }
        let source = one.identity.as_ref();
        let mut each = identities.iter();
        if let Some(status) = each.find(|status| Some(&status.source) == source) {
            let consequence = consequence(status, FAILS);
            found.extend(status.problems.iter().map(|problem| {
                let field = one.fields.identity(0, is_of_key(problem, &status.source));
                diagnose(one, field, problem, consequence)
            }));
        }
        let source = one.authorities.as_ref();
        let mut each = authorities.iter();
        if let Some(status) = each.find(|status| Some(&status.source) == source) {
            let consequence = consequence(status, FAILS);
            found.extend(status.problems.iter().map(|problem| {
                let field = authority_field(&one.fields, problem, &status.source);
                diagnose(one, field, problem, consequence)
            }));
        }
    }
    found
}

fn diagnose(
    one: &ClientUse,
    field: FieldPlace,
    problem: &Problem,
    consequence: &str,
) -> Diagnostic {
    let (severity, code) = kind(problem.kind);
    let file = Arc::clone(&one.file);
    let found = Diagnostic::about_file(severity, code, file, problem.to_string());
    let mut found = at(found, one.object.as_ref(), field);
    found.help(fix(problem, consequence));
    found
}
