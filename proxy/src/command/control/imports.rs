//! `strait control --imports-between`: parses and checks the list of clusters.

use config_loader::ApiServer;
use config_server::lease::Times;
use config_server::{ImportingCluster, ImportsBetween};

use super::args::ServerArgs;

/// Returns the settings of the writer of imports, for an instance of this name; `None` without the flag.
///
/// # Errors
/// Fails unless there are at least two different clusters.
pub(super) fn imports_between(
    args: &ServerArgs,
    identity: String,
) -> Result<Option<ImportsBetween>, String> {
    if args.imports_between.is_empty() {
        return Ok(None);
    }
    check(&args.imports_between)?;
    let clusters = args.imports_between.iter().filter_map(|server| {
        Some(ImportingCluster {
            key: server.cluster.clone()?,
            server: server.clone(),
            kubeconfig: args.kubeconfig.clone(),
        })
    });
    let told = args.clusters.clone();
    Ok(Some(ImportsBetween {
        clusters: clusters.collect(),
        told: told.map(|file| (file.path, file.clusters)),
        lease_namespace: args.lease_namespace.clone(),
        identity,
        times: Times::default(),
    }))
}

/// Checks that no cluster is listed twice: under two keys it would import its own services.
fn check(servers: &[ApiServer]) -> Result<(), String> {
    for (index, server) in servers.iter().enumerate() {
        let before = &servers[..index];
        if let Some(cluster) = &server.cluster
            && before.iter().any(|one| one.cluster == server.cluster)
        {
            return Err(format!(
                "--imports-between names cluster `{cluster}` twice: give each cluster a key of its own"
            ));
        }
        if before.iter().any(|one| one.context == server.context) {
            let context = &server.context;
            return Err(format!(
                "--imports-between names context `{context}` twice: give each cluster a context of its own"
            ));
        }
    }
    match servers {
        [_] => Err("--imports-between names one cluster only: imports need two or more".to_owned()),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clusters_are_several_different_ones() {
        let checked = |names: &[(&str, &str)]| {
            let servers = names.iter().map(|(context, key)| {
                let text = format!("kubernetes://{context}=eu/a/prod/{key}");
                text.parse::<ApiServer>().unwrap()
            });
            check(&servers.collect::<Vec<_>>())
        };
        assert_eq!(checked(&[("east", "c1"), ("west", "c2")]), Ok(()));
        for (names, expected) in [
            (&[("east", "c1")][..], "one cluster only"),
            (
                &[("east", "c1"), ("west", "c1")],
                "cluster `eu/a/prod/c1` twice",
            ),
            (&[("east", "c1"), ("east", "c2")], "context `east` twice"),
        ] {
            let error = checked(names).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }
}
