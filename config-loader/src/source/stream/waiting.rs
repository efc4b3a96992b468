//! Description of the resources that the first configuration waits for, shown by `/healthz/ready`.

use std::collections::BTreeSet;
use std::time::Duration;

use super::report::{Key, Origin};

/// Describes the awaited resources of a server. Forbidden ones come first, because they need a change of permissions.
pub(super) fn of_resources(
    awaited: &BTreeSet<Key>,
    forbidden: &BTreeSet<Key>,
    origin: &Origin,
) -> Option<String> {
    if let Some(named) = first_of(forbidden) {
        return Some(format!(
            "the right to list and watch {named} of the {origin}, or --control-optional with their kinds"
        ));
    }
    let named = first_of(awaited)?;
    Some(format!("{named} of the {origin}"))
}

/// Describes an awaited resource of a remote cluster.
pub(super) fn of_another_cluster(awaited: &str, wait: Duration) -> String {
    let seconds = wait.as_secs_f64();
    format!("{awaited}, of another cluster, for at most {seconds} s (--control-wait)")
}

fn first_of(keys: &BTreeSet<Key>) -> Option<String> {
    let first = keys.first()?;
    Some(match keys.len() {
        1 => first.to_string(),
        more => format!("{first} and {} more resources", more - 1),
    })
}
