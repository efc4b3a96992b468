//! Files of the workload's identity in the directory of `--mesh-certs`: which set of names they have.

use std::path::Path;

use crate::identity::{FileSet, Identity, IdentityKind};
use crate::tls::{Problem, ProblemKind};

/// Returns the names of the files in the directory.
///
/// # Errors
///
/// Two complete sets: neither says which identity is meant.
pub fn find(identity: &Identity) -> Result<FileSet, Problem> {
    let workload = &identity.workload;
    if workload.kind != IdentityKind::Files || workload.names_all_files() {
        return Ok(workload.file_set);
    }
    let directory = &*identity.mesh_certs;
    FileSet::in_directory(Path::new(directory)).map_err(|sets| {
        let [one, other] = sets.map(|set| set.names().join(", "));
        let text = format!("it has two identities: {one}, and {other}");
        let fix = "remove one of them, or name the files by --workload-cert, --workload-key and --mesh-ca";
        Problem::new(ProblemKind::Ambiguous, directory, text).with_fix(Some(fix.to_owned()))
    })
}

/// Returns the identity with the names of its files; with those that it has if there are two sets.
pub fn located(mut identity: Identity) -> Identity {
    if let Ok(set) = find(&identity) {
        identity.workload.file_set = set;
    }
    identity
}
