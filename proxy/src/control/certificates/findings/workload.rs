//! Problems of the workload's certificate and the authorities of the mesh, which no resource names.

use config_loader::Diagnostic;

use super::super::mesh_files;
use super::{KEPT, consequence, fix, kind};
use crate::compile::certificates::mesh;
use crate::identity::Identity;
use crate::tls::{Problem, ProblemKind, Store};

const REFUSED: &str = "connections that need it are refused until then";
const AS_BEFORE: &str = "the files that were in use before stay in use";

/// Returns the problems of the workload's identity that no finding in `known` reports. Files that are not configured
/// may be missing.
pub(crate) fn of_workload(
    identity: &Identity,
    store: &Store,
    known: &[Diagnostic],
) -> Vec<Diagnostic> {
    let (own, root) = mesh(identity);
    let mut found = Vec::new();
    let ambiguous = mesh_files::find(identity).err();
    let mut diagnose = |problems: &[Problem], consequence: &str| {
        for problem in problems {
            let message = problem.to_string();
            let is_awaited = problem.kind == ProblemKind::NotYetIssued;
            if is_awaited || known.iter().any(|known| known.message == message) {
                continue;
            }
            let (severity, code) = kind(problem.kind);
            let mut diagnostic =
                Diagnostic::about_file(severity, code, problem.place.clone(), message);
            diagnostic.help(fix(problem, consequence));
            found.push(diagnostic);
        }
    };
    diagnose(ambiguous.as_slice(), AS_BEFORE);
    if let Some(status) = store.identity(&own) {
        // of the newest certificate, or of the one that could not be got after it
        let (own, of_source): (Vec<_>, Vec<_>) = (status.problems.iter().cloned())
            .partition(|problem| Some(problem) != status.source_problem.as_ref());
        diagnose(&own, consequence(&status, REFUSED));
        let is_kept = status.in_force.is_some();
        diagnose(&of_source, if is_kept { KEPT } else { REFUSED });
    }
    let authorities = store.authorities();
    if let Some(status) = authorities.iter().find(|status| status.source == root) {
        diagnose(&status.problems, consequence(status, REFUSED));
    }
    found
}

/// Returns the reason why the proxy cannot have its configured identity: there are two, or the only certificate is that
/// of another workload.
pub(crate) fn of_another_workload(identity: &Identity, store: &Store) -> Option<Problem> {
    if let Err(problem) = mesh_files::find(identity) {
        return Some(problem);
    }
    if !identity.is_told_mesh_certificates() {
        return None;
    }
    let status = store.identity(&mesh(identity).0)?;
    let mut problems = status.problems.into_iter();
    let found = problems.find(|problem| problem.kind == ProblemKind::OtherWorkload)?;
    status.in_force.is_none().then_some(found)
}
