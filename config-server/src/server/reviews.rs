//! Access reviews, answered by the same authorization as requests.

use std::collections::BTreeMap;

use k8s_openapi::api::authorization::v1::{
    NonResourceAttributes, ResourceAttributes, SelfSubjectAccessReviewSpec,
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::access::{Attributes, User};
use crate::api::discovery::{STATUS_VERBS, VERBS};
use crate::api::reviews::{self, Review};
use crate::resources;
use crate::status::Failure;

/// Answers an access review of the current user.
///
/// # Errors
/// 400 if the body is not of that kind.
pub(super) fn answer(review: Review, user: &User, body: &Value) -> Result<Value, Failure> {
    // Typed clients omit both fields.
    for (field, expected) in [
        ("kind", review.kind().to_owned()),
        ("apiVersion", review.api_version()),
    ] {
        let found = &body[field];
        if !found.is_null() && *found != expected {
            return Err(Failure::bad_request(format!(
                "{field} of the body is {found}, and {expected:?} is expected"
            )));
        }
    }
    let status = match review {
        Review::Access => access(user, &read_spec(body)?)?,
        Review::Rules => rules(user, body["spec"]["namespace"].as_str().unwrap_or(""))?,
        Review::User => {
            json!({"userInfo": {"username": user.name, "groups": user.groups()}})
        }
    };
    let mut answer = json!({
        "kind": review.kind(), "apiVersion": review.api_version(),
        "metadata": {"creationTimestamp": null}, "spec": body["spec"], "status": status,
    });
    if review == Review::User {
        crate::object::remove(&mut answer, "spec");
    }
    Ok(answer)
}

fn read_spec<T: DeserializeOwned>(body: &Value) -> Result<T, Failure> {
    serde_json::from_value(body["spec"].clone())
        .map_err(|error| Failure::bad_request(format!("spec cannot be read: {error}")))
}

fn access(user: &User, spec: &SelfSubjectAccessReviewSpec) -> Result<Value, Failure> {
    let is_allowed = match (&spec.resource_attributes, &spec.non_resource_attributes) {
        (Some(attributes), None) => allows(user, attributes),
        (None, Some(attributes)) => allows_path(user, attributes),
        _ => {
            return Err(Failure::bad_request(
                "spec needs exactly one of resourceAttributes and nonResourceAttributes",
            ));
        }
    };
    let role = &user.role;
    let reason = match is_allowed {
        true => format!("role {role} allows it"),
        false => format!("role {role} does not allow it"),
    };
    Ok(json!({"allowed": is_allowed, "reason": reason}))
}

fn allows(user: &User, asked: &ResourceAttributes) -> bool {
    let text = |value: &'_ Option<String>| value.clone().unwrap_or_default();
    let (verb, group) = (text(&asked.verb), text(&asked.group));
    let (resource, namespace) = (text(&asked.resource), text(&asked.namespace));
    if verb == "create" && reviews::find(&group, reviews::VERSION, &resource).is_some() {
        return true;
    }
    user.role.allows(&Attributes {
        verb: &verb,
        group: &group,
        resource: &resource,
        namespace: Some(&*namespace).filter(|namespace| !namespace.is_empty()),
        ..Attributes::default()
    })
}

fn allows_path(user: &User, asked: &NonResourceAttributes) -> bool {
    user.role.allows_path(
        asked.verb.as_deref().unwrap_or_default(),
        asked.path.as_deref().unwrap_or_default(),
    )
}

/// Returns the permissions of the user in a namespace.
fn rules(user: &User, namespace: &str) -> Result<Value, Failure> {
    if namespace.is_empty() {
        return Err(Failure::bad_request("spec.namespace is required"));
    }
    let mut by_verbs: BTreeMap<(&str, Vec<&str>), Vec<String>> = BTreeMap::new();
    for resource in resources::all() {
        let status = resource.api.has_status.then_some("status");
        for subresource in [Some(""), status].into_iter().flatten() {
            let is_whole = subresource.is_empty();
            let known = if is_whole { &VERBS[..] } else { &STATUS_VERBS };
            let allows = |verb: &&str| {
                user.role.allows(&Attributes {
                    verb,
                    group: resource.group,
                    resource: resource.api.plural,
                    subresource,
                    namespace: Some(namespace),
                })
            };
            let verbs: Vec<&str> = known.iter().copied().filter(|verb| allows(verb)).collect();
            let slash = if is_whole { "" } else { "/" };
            let name = format!("{}{slash}{subresource}", resource.api.plural);
            if !verbs.is_empty() {
                let rule = by_verbs.entry((resource.group, verbs)).or_default();
                rule.push(name);
            }
        }
    }
    for review in reviews::ALL {
        let rule = by_verbs.entry((review.group(), reviews::VERBS.to_vec()));
        rule.or_default().push(review.plural().to_owned());
    }
    let rules = by_verbs.into_iter().map(
        |((group, verbs), names)| json!({"verbs": verbs, "apiGroups": [group], "resources": names}),
    );
    let visits = ["get", "*"]
        .into_iter()
        .filter(|verb| user.role.allows_path(verb, "*"));
    let visits = json!({"verbs": visits.collect::<Vec<_>>(), "nonResourceURLs": ["*"]});
    Ok(json!({
        "resourceRules": rules.collect::<Vec<_>>(), "nonResourceRules": [visits], "incomplete": false,
    }))
}
