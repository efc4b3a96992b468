//! Writes to API servers of clusters.

use config_loader::resource::flomesh::ClusterKey;
use http::Request;
use serde_json::{Value, json};

use super::findings::Finding;
use super::plan::{Change, Write};
use super::settings::MANAGER;
use crate::remote::Remote;

/// Sends a write. Returns the finding if it failed; a conflicting write arrives as a change instead.
pub(super) async fn write(remote: &Remote, key: &ClusterKey, write: &Write) -> Option<Finding> {
    let client = match remote.client().await {
        Ok(client) => client,
        Err(error) => return Some(unreachable(key, &error)),
    };
    let Ok(request) = request(write) else {
        return None; // names come from an API server
    };
    tracing::debug!(cluster = %key, method = %request.method(), path = write.target.path, "write");
    match client.request::<Value>(request).await {
        Ok(_) => {
            log(key, write);
            None
        }
        Err(kube::Error::Api(status)) => {
            if status.code == 401 {
                remote.forget_client().await;
            }
            refused(key, write, status.code, &status.message)
        }
        Err(error) => Some(unreachable(key, &error.to_string())),
    }
}

fn request(write: &Write) -> Result<Request<Vec<u8>>, http::Error> {
    let path = &write.target.path;
    let manager = format!("fieldManager={MANAGER}");
    let (request, media, body) = match &write.change {
        // Without `force`, an object that another client created meanwhile is a conflict, and keeps its values.
        Change::Create(object) => (
            Request::patch(format!("{path}?{manager}")),
            "application/apply-patch+yaml",
            object.clone(),
        ),
        Change::Update(object) => (
            Request::patch(format!("{path}?{manager}&force=true")),
            "application/apply-patch+yaml",
            object.clone(),
        ),
        Change::Delete { uid, revision } => (
            Request::delete(path),
            "application/json",
            json!({
                "apiVersion": "v1", "kind": "DeleteOptions",
                "preconditions": {"uid": uid, "resourceVersion": revision},
            }),
        ),
        Change::Conditions {
            revision,
            conditions,
        } => (
            Request::patch(format!("{path}?{manager}")),
            "application/merge-patch+json",
            json!({
                "metadata": {"resourceVersion": revision},
                "status": {"conditions": conditions},
            }),
        ),
    };
    let request = request.header("content-type", media);
    request.body(body.to_string().into_bytes())
}

fn log(key: &ClusterKey, write: &Write) {
    let Write { target, change } = write;
    let what = match change {
        Change::Create(_) => "a ServiceImport is created",
        Change::Update(_) => "a ServiceImport is changed",
        Change::Delete { .. } => "a ServiceImport is deleted",
        Change::Conditions { .. } => return,
    };
    tracing::info!(cluster = %key, path = target.path, "{what}");
}

/// Returns the finding for an error response of an API server; `None` for a conflict or a deleted object.
fn refused(key: &ClusterKey, write: &Write, code: u16, message: &str) -> Option<Finding> {
    let is_import = matches!(write.change, Change::Create(_) | Change::Update(_));
    let path = &write.target.path;
    // Groups, namespaces and names have no slash: /apis/GROUP/VERSION/namespaces/NAMESPACE/PLURAL/...
    let mut parts = path.split('/').skip(2);
    let (group, namespace) = (parts.next(), parts.nth(2));
    let plural = parts.next().unwrap_or_default();
    let resource = format!("{plural}.{}", group.unwrap_or_default());
    let namespace = namespace.unwrap_or_default();
    match code {
        409 => None,
        404 if !is_import => None,
        404 if message.contains("namespaces \"") => Some(Finding::new(
            format!(
                "cluster `{key}` has no namespace `{namespace}`: services of other clusters are not imported into it"
            ),
            "create the namespace, or leave the cluster out of `targetClusters` of the ServiceExports",
        )),
        404 => Some(Finding::new(
            format!("cluster `{key}` does not serve {resource} (404)"),
            "install its CustomResourceDefinition",
        )),
        401 => Some(Finding::new(
            format!("cluster `{key}` does not accept the credentials (401)"),
            "renew the token or the client certificate in the kubeconfig, which is read again at each attempt",
        )),
        403 => Some(Finding::new(
            format!("cluster `{key}` does not allow {resource} to be written (403)"),
            "grant get, list, watch, create, patch and delete on serviceimports, and patch on serviceexports/status, as \
             deploy/kubernetes/imports does",
        )
        .with(message)),
        _ => Some(Finding::new(
            format!("cluster `{key}` rejects {path} ({code})"),
            "the write is attempted again, at least every 90 s",
        )
        .with(message)),
    }
}

fn unreachable(key: &ClusterKey, reason: &str) -> Finding {
    Finding::new(
        format!("cluster `{key}` cannot be written to"),
        "check --kubeconfig, the context and the network; writes are attempted again, at least every 90 s",
    )
    .with(reason)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::imports::plan::Target;

    fn written(change: Change) -> Write {
        let plural = match change {
            Change::Conditions { .. } => "serviceexports/web/status",
            _ => "serviceimports/web",
        };
        Write {
            target: Target {
                cluster: 0,
                path: format!("/apis/flomesh.io/v1alpha1/namespaces/ns1/{plural}"),
            },
            change,
        }
    }

    #[test]
    fn refusals_name_the_cluster_and_the_fix() {
        let create = || written(Change::Create(json!({})));
        let conditions = || {
            written(Change::Conditions {
                revision: "1".to_owned(),
                conditions: Vec::new(),
            })
        };
        let missing = r#"namespaces "ns1" not found"#;
        for (write, code, message, expected) in [
            (create(), 409, "changed", None),
            (conditions(), 409, "changed", None),
            (conditions(), 404, "not found", None),
            (create(), 404, missing, Some("has no namespace `ns1`")),
            (
                create(),
                404,
                "not found",
                Some("does not serve serviceimports.flomesh.io (404)"),
            ),
            (
                create(),
                403,
                "no",
                Some("does not allow serviceimports.flomesh.io to be written (403)"),
            ),
            (
                conditions(),
                403,
                "no",
                Some("does not allow serviceexports.flomesh.io to be written"),
            ),
            (create(), 401, "", Some("credentials (401)")),
            (
                create(),
                422,
                "bad",
                Some("rejects /apis/flomesh.io/v1alpha1/namespaces/ns1/serviceimports/web (422)"),
            ),
        ] {
            let key = ClusterKey::parse("eu/a/prod/c1").unwrap();
            let found = refused(&key, &write, code, message).map(|found| format!("{found:?}"));
            match (&found, expected) {
                (None, None) => {}
                (Some(found), Some(expected)) => {
                    assert!(
                        found.contains("`eu/a/prod/c1`") && found.contains(expected),
                        "{found}"
                    );
                }
                _ => panic!("{code} {message}: {found:?}"),
            }
        }
    }

    #[test]
    fn import_of_somebody_else_is_not_forced() {
        let method = |change| request(&written(change)).map(|request| request.uri().to_string());
        let create = method(Change::Create(json!({}))).unwrap();
        assert!(!create.contains("force"), "{create}");
        let update = method(Change::Update(json!({}))).unwrap();
        assert!(
            update.ends_with("?fieldManager=strait-imports&force=true"),
            "{update}"
        );
    }
}
