//! Tests of the injector by its public functions.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod annotations;
mod capture;
mod golden;
mod probes;
mod properties;
mod selection;
mod streams;

use inject::{Context, Injected, Namespace, Outcome, Refusal, Settings, inject};
use serde_json::{Value, json};

/// Pod with one container, whose metadata has further fields.
fn pod(metadata: Value) -> Value {
    json!({"metadata": metadata, "spec": {"containers": [{"name": "web", "image": "web:1"}]}})
}

/// Pod with one annotation.
fn annotated(name: &str, value: &str) -> Value {
    pod(json!({"name": "web-0", "annotations": {name: value}}))
}

/// Context of a command.
fn context(settings: &Settings) -> Context<'_> {
    Context::new(settings, Namespace::named("shop"))
}

/// Injects by a command; panics if the pod is skipped.
fn injected(pod: &Value, settings: &Settings) -> Injected {
    match inject(pod, &context(settings)) {
        Ok(Outcome::Injected(done)) => *done,
        other => panic!("{other:?}: {pod}"),
    }
}

/// Injects by a command; panics if the pod is not refused.
fn refused(pod: &Value, settings: &Settings) -> Refusal {
    match inject(pod, &context(settings)) {
        Err(refusal) => refusal,
        other => panic!("{other:?}: {pod}"),
    }
}

/// Returns a container of a pod, from either list.
fn container<'a>(pod: &'a Value, name: &str) -> &'a Value {
    let lists = ["initContainers", "containers"].into_iter();
    let mut all = lists.flat_map(|list| pod["spec"][list].as_array().into_iter().flatten());
    all.find(|one| one["name"] == name).unwrap_or(&Value::Null)
}

/// Returns a variable of the proxy.
fn variable(pod: &Value, name: &str) -> Option<String> {
    let env = container(pod, "strait-proxy")["env"].as_array()?;
    let found = env.iter().find(|one| one["name"] == name)?;
    Some(found["value"].as_str()?.to_owned())
}

/// Returns the arguments of the container that sets the capture up.
fn capture_args(pod: &Value) -> String {
    let args = container(pod, "strait-init")["args"].as_array();
    let args = args.into_iter().flatten().filter_map(Value::as_str);
    args.collect::<Vec<_>>().join(" ")
}

/// Returns the names of the items of a list of the pod's spec.
fn names<'a>(pod: &'a Value, list: &str) -> Vec<&'a str> {
    let items = pod["spec"][list].as_array().into_iter().flatten();
    items.filter_map(|item| item["name"].as_str()).collect()
}
