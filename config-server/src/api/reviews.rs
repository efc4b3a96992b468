//! Access reviews of the current user: kinds that are answered and never stored.

use serde_json::{Map, Value, json};

/// Kind of access review.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Review {
    /// `SelfSubjectAccessReview`, whether the user may do one action: `kubectl auth can-i get gateways`.
    Access,
    /// `SelfSubjectRulesReview`, all permissions of the user in a namespace: `kubectl auth can-i --list`.
    Rules,
    /// `SelfSubjectReview`, name and groups of the user: `kubectl auth whoami`.
    User,
}

/// Every kind of review.
pub const ALL: [Review; 3] = [Review::Access, Review::Rules, Review::User];
/// API version of all reviews.
pub const VERSION: &str = "v1";
/// Verbs of all reviews.
pub const VERBS: [&str; 1] = ["create"];

impl Review {
    /// Returns the API group.
    pub fn group(self) -> &'static str {
        match self {
            Review::Access | Review::Rules => "authorization.k8s.io",
            Review::User => "authentication.k8s.io",
        }
    }

    /// Returns the kind.
    pub fn kind(self) -> &'static str {
        match self {
            Review::Access => "SelfSubjectAccessReview",
            Review::Rules => "SelfSubjectRulesReview",
            Review::User => "SelfSubjectReview",
        }
    }

    /// Returns the plural.
    pub fn plural(self) -> &'static str {
        match self {
            Review::Access => "selfsubjectaccessreviews",
            Review::Rules => "selfsubjectrulesreviews",
            Review::User => "selfsubjectreviews",
        }
    }

    /// Returns the `apiVersion`.
    pub fn api_version(self) -> String {
        format!("{}/{VERSION}", self.group())
    }

    /// Returns the name of the OpenAPI schema, which is that of Kubernetes.
    pub fn schema_name(self) -> String {
        let group = self.group().split('.').next().unwrap_or("");
        format!("io.k8s.api.{group}.{VERSION}.{}", self.kind())
    }

    /// Returns the OpenAPI schema.
    pub fn schema(self) -> Value {
        let gvk = json!({"group": self.group(), "version": VERSION, "kind": self.kind()});
        let (description, spec, status) = match self {
            Review::Access => (
                "SelfSubjectAccessReview checks whether the current user can perform an action.",
                access_spec(),
                fields(&[
                    "allowed:boolean",
                    "denied:boolean",
                    "evaluationError",
                    "reason",
                ]),
            ),
            Review::Rules => (
                "SelfSubjectRulesReview lists the actions that the current user can perform in a namespace.",
                fields(&["namespace"]),
                rules_status(),
            ),
            Review::User => (
                "SelfSubjectReview tells who the current user is.",
                json!({"type": "object"}),
                user_status(),
            ),
        };
        let mut properties = json!({
            "apiVersion": text(), "kind": text(), "metadata": {"type": "object"}, "spec": spec, "status": status,
        });
        if self == Review::User {
            crate::object::remove(&mut properties, "spec");
        }
        json!({
            "type": "object", "description": description, "properties": properties,
            "x-kubernetes-group-version-kind": [gvk],
        })
    }
}

/// Returns the review at a path; `None` if there is no such review.
pub fn find(group: &str, version: &str, plural: &str) -> Option<Review> {
    let is_it =
        |review: &Review| (review.group(), VERSION, review.plural()) == (group, version, plural);
    ALL.into_iter().find(is_it)
}

/// Returns the reviews of a group version.
pub fn in_version<'a>(group: &'a str, version: &'a str) -> impl Iterator<Item = Review> + 'a {
    let is_in = move |review: &Review| review.group() == group && version == VERSION;
    ALL.into_iter().filter(is_in)
}

fn text() -> Value {
    json!({"type": "string"})
}

fn texts() -> Value {
    json!({"type": "array", "items": {"type": "string"}})
}

/// Returns the schema of an object with these fields: `name` for a string, `name:TYPE` for another type.
fn fields(names: &[&str]) -> Value {
    let fields = names.iter().map(|name| {
        let (name, kind) = name.split_once(':').unwrap_or((name, "string"));
        (name.to_owned(), json!({"type": kind}))
    });
    json!({"type": "object", "properties": fields.collect::<Map<_, _>>()})
}

fn access_spec() -> Value {
    let mut resource = fields(&[
        "group",
        "name",
        "namespace",
        "resource",
        "subresource",
        "verb",
        "version",
    ]);
    resource["properties"]["fieldSelector"] = json!({"type": "object"});
    resource["properties"]["labelSelector"] = json!({"type": "object"});
    json!({"type": "object", "properties": {
        "resourceAttributes": resource, "nonResourceAttributes": fields(&["path", "verb"]),
    }})
}

fn rules_status() -> Value {
    let rule = |names: &[&str]| {
        let lists = names.iter().map(|name| ((*name).to_owned(), texts()));
        let rule = json!({"type": "object", "properties": lists.collect::<Map<_, _>>()});
        json!({"type": "array", "items": rule})
    };
    json!({"type": "object", "properties": {
        "evaluationError": text(), "incomplete": {"type": "boolean"},
        "nonResourceRules": rule(&["nonResourceURLs", "verbs"]),
        "resourceRules": rule(&["apiGroups", "resourceNames", "resources", "verbs"]),
    }})
}

fn user_status() -> Value {
    let extra = json!({"type": "object", "additionalProperties": texts()});
    json!({"type": "object", "properties": {"userInfo": {"type": "object", "properties": {
        "extra": extra, "groups": texts(), "uid": text(), "username": text(),
    }}}})
}
