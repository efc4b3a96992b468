//! `strait control injected`: the pods with a sidecar that the injector has added.

use std::fmt::Write;
use std::path::PathBuf;

use clap::Args;
use config_loader::ApiServer;
use config_loader::source::{connect, in_words};
use serde_json::{Value, json};

use super::super::exit::show;
use super::status::{clean, table};
use crate::command::args::OutputArg;

/// Number of pods in one response of the API server.
const PAGE: usize = 500;

/// Arguments of `strait control injected`.
#[derive(Debug, Args)]
#[command(after_help = "\
Exit code: 0 if no pod has a sidecar, as it should be before the webhook is uninstalled; 1 otherwise.

Examples:
  strait control injected
  strait control injected --namespace shop -o json")]
pub struct InjectedArgs {
    /// Kubeconfig of the API server [default: KUBECONFIG, ~/.kube/config, or the service account of the pod]
    #[arg(long, value_name = "FILE", env = "STRAIT_CONTROL_KUBECONFIG")]
    pub kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig [default: its current one]
    #[arg(
        long,
        value_name = "NAME",
        default_value = "",
        hide_default_value = true,
        env = "STRAIT_CONTROL_INJECTED_CONTEXT"
    )]
    pub context: String,
    /// Namespace of the pods [default: all]
    #[arg(long, value_name = "NAME", env = "STRAIT_CONTROL_INJECTED_NAMESPACE")]
    pub namespace: Option<String>,
    /// Form of the output
    #[arg(
        long,
        short,
        value_name = "FORM",
        default_value = "text",
        env = "STRAIT_OUTPUT"
    )]
    pub output: OutputArg,
}

/// Prints the pods. Returns whether there are none.
///
/// # Errors
/// Fails if the API server does not answer; the text is for users.
pub(super) async fn run(args: &InjectedArgs) -> Result<bool, String> {
    let pods = pods(args)
        .await
        .map_err(|error| format!("cannot list pods: {error}"))?;
    match args.output {
        OutputArg::Json => show(&format!("{:#}", json!({"pods": pods}))),
        OutputArg::Text if pods.is_empty() => show("no pod has a sidecar"),
        OutputArg::Text => {
            let heads = ["namespace", "name", "image", "revision"];
            let mut rows = vec![heads.map(str::to_uppercase)];
            let cell = |pod: &Value, name| clean(pod[name].as_str().unwrap_or("-"));
            rows.extend(pods.iter().map(|pod| heads.map(|name| cell(pod, name))));
            let mut text = table(&rows);
            // writing to a string cannot fail
            let _ = write!(text, "pods with a sidecar: {}", pods.len());
            show(&text);
        }
    }
    Ok(pods.is_empty())
}

/// Returns the pods with the annotation of the injector, with what it says.
async fn pods(args: &InjectedArgs) -> Result<Vec<Value>, String> {
    let server = ApiServer {
        context: args.context.clone(),
        cluster: None,
    };
    let client = connect(&server, args.kubeconfig.as_deref()).await;
    let client = client.map_err(|error| error.to_string())?;
    let path = match &args.namespace {
        Some(namespace) => format!("/api/v1/namespaces/{namespace}/pods"),
        None => "/api/v1/pods".to_owned(),
    };
    let (mut found, mut next) = (Vec::new(), String::new());
    loop {
        let request = http::Request::get(format!("{path}?limit={PAGE}&continue={next}"))
            .header(
                "accept",
                "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json",
            )
            .body(Vec::new());
        let request = request.map_err(|error| error.to_string())?;
        let list: Value = client
            .request(request)
            .await
            .map_err(|error| in_words(&error))?;
        let items = list["items"].as_array().into_iter().flatten();
        found.extend(items.filter_map(injected));
        match list["metadata"]["continue"].as_str() {
            Some(token) if !token.is_empty() => token.clone_into(&mut next),
            _ => return Ok(found),
        }
    }
}

/// Returns what the record of a pod says; `None` without one.
fn injected(pod: &Value) -> Option<Value> {
    let metadata = &pod["metadata"];
    let record = metadata["annotations"][inject::INJECTED].as_str()?;
    let record: Value = serde_json::from_str(record).unwrap_or_default();
    Some(json!({
        "namespace": metadata["namespace"],
        "name": metadata["name"],
        "image": record["image"],
        "revision": record["revision"],
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pod_is_injected_by_its_annotation() {
        let pod = |annotations: Value| json!({"metadata": {"name": "a", "namespace": "b", "annotations": annotations}});
        assert_eq!(injected(&pod(json!({}))), None);
        let record = r#"{"version":1,"image":"strait:1","revision":"strait"}"#;
        let expected =
            json!({"namespace": "b", "name": "a", "image": "strait:1", "revision": "strait"});
        let found = injected(&pod(json!({"strait.io/injected": record})));
        assert_eq!(found, Some(expected));
        // one that cannot be read is one nevertheless
        assert!(injected(&pod(json!({"strait.io/injected": "x"}))).is_some());
    }
}
