//! Tests of documents that may be security policies and cannot be read as such.

use std::sync::Arc;

use super::super::Loader;
use crate::resource::istio::authorization_policy::PolicyMode;
use crate::source::{FileEvent, Look};

const POLICY: &str = "apiVersion: security.istio.io/v1\nkind: AuthorizationPolicy\n\
    metadata: {name: a, namespace: b}\nspec: {action: DENY, rules: [{to: [{operation: {paths: [/a]}}]}]}\n";

fn write(loader: &mut Loader, bytes: impl Into<Vec<u8>>) {
    loader.absorb(Look {
        events: vec![(Arc::from("a.yaml"), FileEvent::Bytes(bytes.into()))],
        ..Look::default()
    });
}

fn modes(loader: &Loader) -> Vec<PolicyMode> {
    let policies = loader.store.set().authorization_policies.values();
    policies.map(|policy| policy.spec.mode).collect()
}

/// Returns the texts that are tested, each with what is broken in it.
fn broken() -> Vec<(&'static str, Vec<u8>)> {
    let with = |from: &str, to: &str| POLICY.replacen(from, to, 1).into_bytes();
    let kind = |kind: &str| with("kind: AuthorizationPolicy", &format!("kind: {kind}"));
    let group = |group: &str| with("security.istio.io/v1", group);
    let item =
        |list: &str, item: String| format!("{list}- {}", item.replace('\n', "\n  ")).into_bytes();
    let list = "apiVersion: v1\nkind: List\nitems:\n";
    let utf_16: Vec<u8> = POLICY.encode_utf16().flat_map(u16::to_le_bytes).collect();
    vec![
        ("kind in lower case", kind("authorizationpolicy")),
        ("kind misspelt", kind("AuthorisationPolicy")),
        ("kind in the plural", kind("AuthorizationPolicies")),
        ("kind with a space", kind("'AuthorizationPolicy '")),
        ("kind that does not exist", kind("Other")),
        ("group of another kind", group("networking.istio.io/v1")),
        ("group of the past", group("rbac.istio.io/v1alpha1")),
        ("group without kinds", group("authorization.istio.io/v1")),
        (
            "group and kind misspelt",
            POLICY
                .replace("security.", "securty.")
                .replace("ionP", "onP")
                .into(),
        ),
        (
            "kind misspelt in another group",
            POLICY
                .replace("security", "networking")
                .replace("iz", "is")
                .into(),
        ),
        ("key of the kind", with("kind:", "Kind:")),
        ("key of the version", with("apiVersion:", "apiversion:")),
        ("no kind", with("kind: AuthorizationPolicy\n", "")),
        ("no version", with("apiVersion: security.istio.io/v1\n", "")),
        ("kind is a list", kind("[AuthorizationPolicy]")),
        (
            "item without kind",
            item(list, POLICY.replace("kind: AuthorizationPolicy\n", "")),
        ),
        (
            "items misspelt",
            item(&list.replace("items", "item"), POLICY.to_owned()),
        ),
        (
            "list misspelt",
            item(&list.replace("List", "list"), POLICY.to_owned()),
        ),
        (
            "items twice",
            item(
                &format!("{list}- {{apiVersion: v1, kind: Pod, metadata: {{name: a}}}}\nitems:\n"),
                POLICY.to_owned(),
            ),
        ),
        ("UTF-16", [&[0xff, 0xfe], &utf_16[..]].concat()),
    ]
}

#[test]
fn document_that_may_be_a_policy_opens_nothing() {
    for (what, bytes) in broken() {
        let mut started = Loader::default();
        write(&mut started, bytes.clone());
        let mut found = started.diagnostics.iter();
        let waits = found.any(|found| found.may_be_policy);
        assert!(
            waits || modes(&started) == [PolicyMode::Denying],
            "{what}: {:?}",
            started.diagnostics
        );

        let mut running = Loader::default();
        write(&mut running, POLICY);
        write(&mut running, bytes);
        assert_eq!(modes(&running), [PolicyMode::Enforced], "{what}");
    }
}

#[test]
fn documents_of_other_projects_are_no_policies() {
    for (kind, api_version) in [
        ("AuthorizationPolicy", "policy.linkerd.io/v1alpha1"),
        ("AuthPolicy", "kuadrant.io/v1"),
        ("AuthenticationPolicy", "example.com/v1"),
        ("NetworkPolicy", "networking.k8s.io/v1"),
    ] {
        let mut loader = Loader::default();
        write(
            &mut loader,
            format!("apiVersion: {api_version}\nkind: {kind}\nmetadata: {{name: a}}\n"),
        );
        assert!(
            loader.diagnostics.iter().all(|found| !found.may_be_policy),
            "{kind}"
        );
        assert!(modes(&loader).is_empty(), "{kind}");
    }
}
