//! Status of the objects of the Gateway API, merged with what others write there.

use config_loader::catalog::gateway_api::status::{
    Condition, ListenerStatus, ObjectStatus, ParentStatus, StatusAddress,
};
use config_loader::resource::gateway_api::{GROUP, ParentRef};
use serde_json::{Map, Value, json};

use super::merge::with;

/// Conditions that are removed once they do not hold.
const TRANSIENT: [&str; 4] = [
    "InsecureFrontendValidationMode",
    "OverlappingTLSConfig",
    "PartiallyInvalid",
    "SupportedVersion",
];
/// Maximum number of entries of `parents` and `ancestors`.
const ENTRIES_MAX: usize = 32;

/// Merge of a status.
#[derive(Clone, Copy, Debug)]
pub(super) struct Merge<'a> {
    /// Name of the controller.
    pub controller: &'a str,
    /// Generation of the object that the status is about.
    pub generation: i64,
    /// Time, for changed conditions.
    pub now: &'a str,
    /// Names of the supported features, sorted.
    pub features: &'a [&'static str],
}

impl Merge<'_> {
    /// Returns the fields of a status with the desired values; `None` if nothing changes. `None` as desired is for an object
    /// that is not of the controller: a route loses the entries that the controller wrote.
    pub(super) fn status(&self, existing: &Value, desired: Option<&ObjectStatus>) -> Option<Value> {
        let mut fields = Map::new();
        let mut set = |name: &str, value: Value| {
            if existing[name] != value {
                fields.insert(name.to_owned(), value);
            }
        };
        match desired {
            None => {
                for name in ["parents", "ancestors"] {
                    if existing[name].is_array() {
                        set(name, self.entries(&existing[name], &[], ""));
                    }
                }
            }
            Some(ObjectStatus::Class(conditions)) => {
                set("conditions", self.conditions(existing, conditions));
                let features = self.features.iter().map(|name| json!({"name": name}));
                set("supportedFeatures", features.collect());
            }
            Some(ObjectStatus::Gateway {
                conditions,
                listeners,
                addresses,
                sets,
            }) => {
                set("conditions", self.conditions(existing, conditions));
                set("listeners", self.listeners(existing, listeners));
                set("addresses", addresses.iter().map(address).collect());
                set("attachedListenerSets", json!(sets));
            }
            Some(ObjectStatus::ListenerSet {
                conditions,
                listeners,
            }) => {
                set("conditions", self.conditions(existing, conditions));
                set("listeners", self.listeners(existing, listeners));
            }
            Some(ObjectStatus::Policy(ancestors)) => {
                let entries = self.entries(&existing["ancestors"], ancestors, "ancestorRef");
                set("ancestors", entries);
            }
            Some(ObjectStatus::Route(parents)) => {
                let entries = self.entries(&existing["parents"], parents, "parentRef");
                set("parents", entries);
            }
        }
        (!fields.is_empty()).then_some(Value::Object(fields))
    }

    /// Returns the conditions of `holder` with the desired ones.
    fn conditions(&self, holder: &Value, desired: &[Condition]) -> Value {
        let existing = holder["conditions"].as_array();
        let is_wanted = |name: &Value| desired.iter().any(|one| *name == one.name);
        let stays = |condition: &&Value| {
            let name = &condition["type"];
            is_wanted(name) || !TRANSIENT.iter().any(|known| *name == *known)
        };
        let existing = existing.into_iter().flatten().filter(stays).cloned();
        let existing: Vec<Value> = existing.collect();
        with(&existing, desired, self.generation, self.now).into()
    }

    fn listeners(&self, existing: &Value, desired: &[ListenerStatus]) -> Value {
        let before = |name: &str| {
            let mut all = existing["listeners"].as_array().into_iter().flatten();
            all.find(|one| one["name"] == name)
        };
        let listeners = desired.iter().map(|one| {
            let kinds = one.kinds.iter();
            let kinds = kinds.map(|kind| json!({"group": GROUP, "kind": kind.as_str()}));
            json!({
                "name": *one.name,
                "attachedRoutes": one.attached,
                "supportedKinds": kinds.collect::<Vec<_>>(),
                "conditions": self.conditions(before(&one.name).unwrap_or(&Value::Null), &one.conditions),
            })
        });
        listeners.collect()
    }

    /// Returns the entries of all controllers, those of others unchanged and in their places. `field` has the reference.
    fn entries(&self, existing: &Value, desired: &[ParentStatus], field: &str) -> Value {
        let mut entries = Vec::new();
        let mut left: Vec<(Value, &ParentStatus)> = desired
            .iter()
            .map(|one| (reference(&one.parent), one))
            .collect();
        let merged = |before: &Value, target: &Value, one: &ParentStatus| {
            json!({
                field: target,
                "controllerName": self.controller,
                "conditions": self.conditions(before, &one.conditions),
            })
        };
        for entry in existing.as_array().into_iter().flatten() {
            if entry["controllerName"] != self.controller {
                entries.push(entry.clone());
                continue;
            }
            let is_same = |(target, _): &(Value, _)| entry[field] == *target;
            if let Some(position) = left.iter().position(is_same) {
                let (target, one) = left.remove(position);
                entries.push(merged(entry, &target, one));
            }
        }
        for (target, one) in left {
            entries.push(merged(&Value::Null, &target, one));
        }
        entries.truncate(ENTRIES_MAX);
        entries.into()
    }
}

/// Returns a reference to a parent as its route has it, with the defaults of an API server.
fn reference(parent: &ParentRef) -> Value {
    let object = &parent.object;
    let mut reference = json!({"group": *object.group, "kind": *object.kind, "name": *object.name});
    if parent.has_namespace {
        reference["namespace"] = json!(*object.namespace);
    }
    if let Some(section) = &parent.section {
        reference["sectionName"] = json!(**section);
    }
    if let Some(port) = parent.port {
        reference["port"] = json!(port);
    }
    reference
}

fn address(address: &StatusAddress) -> Value {
    match address {
        StatusAddress::Host(host) => json!({"type": "Hostname", "value": host}),
        StatusAddress::Ip(ip) => json!({"type": "IPAddress", "value": ip.to_string()}),
    }
}
