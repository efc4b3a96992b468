//! AuthorizationPolicy, checked.

use std::collections::BTreeMap;
use std::sync::Arc;

use traffic::authz::Condition;

use super::PolicyScope;
use crate::span::Line;

/// Checked AuthorizationPolicy.
#[derive(Clone, Debug, Default)]
pub struct AuthorizationPolicy {
    /// Workloads that the policy applies to.
    pub scope: PolicyScope,
    /// Action for requests that match a rule.
    pub action: Action,
    /// Rules, in the order in which they are written.
    pub rules: Vec<Rule>,
    /// Effect of the policy.
    pub mode: PolicyMode,
}

/// Action of an AuthorizationPolicy for requests that match a rule.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Action {
    /// Admits the request.
    #[default]
    Allow,
    /// Denies the request.
    Deny,
    /// Marks the request for the access log.
    Audit,
    /// Asks the external authorization provider of this name.
    Custom(Arc<str>),
}

/// Effect of a policy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PolicyMode {
    /// The policy is enforced.
    #[default]
    Enforced,
    /// Matches are counted and logged, and decide nothing (annotation `istio.io/dry-run`).
    DryRun,
    /// The policy was rejected and has no last good version: it denies whatever it selects.
    Denying,
}

/// Rule of an AuthorizationPolicy: any source, any operation, and all conditions.
#[derive(Clone, Debug, Default)]
pub struct Rule {
    /// Sources; empty for any source.
    pub from: Vec<Alternative>,
    /// Operations; empty for any operation.
    pub to: Vec<Alternative>,
    /// Conditions.
    pub when: Vec<Condition>,
    /// Source line of the rule.
    pub line: Line,
}

/// Source or operation: conditions that hold together. Never empty.
pub type Alternative = Vec<Condition>;

impl AuthorizationPolicy {
    /// Reads the annotation `istio.io/dry-run`. A value that is no boolean counts as false.
    pub(crate) fn marked(
        mut self,
        _labels: &BTreeMap<String, String>,
        annotations: &BTreeMap<String, String>,
    ) -> Self {
        if annotations.get(DRY_RUN).and_then(|value| boolean(value)) == Some(true) {
            self.mode = PolicyMode::DryRun;
        }
        self
    }

    /// Whether the policy stands in for a rejected one.
    pub(crate) fn is_stand_in(&self) -> bool {
        self.mode == PolicyMode::Denying
    }

    /// Returns the policy that applies while the object has never been valid: it denies what the object selects. `None`
    /// if the object would deny nothing.
    pub(crate) fn stand_in(&self) -> Option<Self> {
        if self.action == Action::Audit || self.mode == PolicyMode::DryRun {
            return None;
        }
        Some(Self {
            scope: self.scope.clone(),
            action: Action::Deny,
            rules: vec![Rule::default()],
            mode: PolicyMode::Denying,
        })
    }
}

/// Annotation for a policy whose matches are only counted and logged.
pub const DRY_RUN: &str = "istio.io/dry-run";

/// Parses the value of [`DRY_RUN`] as Go's `strconv.ParseBool` does.
pub(crate) fn boolean(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}
