//! Further definitions of a security policy, beside the one in effect.
//!
//! At the start it is unknown which of them is right: the first one applies, and each other one denies what it selects, as
//! a policy that was never valid. One that comes later counts for nothing.

use std::sync::Arc;

use super::{Delta, Store, in_effect, put};
use crate::kind::ObjectRef;
use crate::resource::{AnyObject, ResourceSet};

impl Store {
    /// Puts the stand-ins of a policy's further definitions into effect, until it has a single definition. `versions` are
    /// the version in effect before and after the change.
    pub(super) fn deny_repetitions(
        &mut self,
        id: &ObjectRef,
        [before, after]: [Option<&Arc<dyn AnyObject>>; 2],
        set: &mut ResourceSet,
        delta: &mut Delta,
    ) {
        let had = self.denying.remove(id);
        let is_first = self.is_starting || before.is_none_or(|before| before.is_stand_in());
        let stand_ins = match id.kind.is_security() && (had.is_some() || is_first) {
            true => self.stand_ins(id, before, after),
            false => Vec::new(),
        };
        for number in 0..stand_ins.len().max(had.unwrap_or_default()) {
            let id = numbered(id, number);
            let (before, after) = (in_effect(set, &id), stand_ins.get(number));
            delta.note(&id, before.as_ref(), after);
            put(&id, after, set);
        }
        if !stand_ins.is_empty() {
            self.denying.insert(id.clone(), stand_ins.len());
        }
    }

    /// Returns the stand-ins of all definitions of a policy other than the one that is in effect or keeps it in effect.
    fn stand_ins(
        &self,
        id: &ObjectRef,
        before: Option<&Arc<dyn AnyObject>>,
        after: Option<&Arc<dyn AnyObject>>,
    ) -> Vec<Arc<dyn AnyObject>> {
        let Some(positions) = self.positions.get(id) else {
            return Vec::new();
        };
        let mut slots = self.slots(positions, before);
        let is_used = |(_, slot): &(_, &super::DocumentObject)| {
            let pair = slot.good().zip(after);
            pair.is_some_and(|(good, after)| Arc::ptr_eq(good, after))
        };
        let used = slots.iter().position(is_used).unwrap_or_default();
        if !slots.is_empty() {
            slots.remove(used);
        }
        let others = slots
            .into_iter()
            .filter_map(|(_, slot)| match &slot.object {
                Ok(object) => Some(object),
                Err(rejected) => rejected.stand_in.as_ref(),
            });
        let mut stand_ins = Vec::new();
        for other in others {
            stand_ins.extend(other.stand_in(numbered(id, stand_ins.len())));
        }
        stand_ins
    }
}

/// Returns the reference of a stand-in for a further definition, which no object can have: `NAME(2)` for the first one.
fn numbered(id: &ObjectRef, number: usize) -> ObjectRef {
    ObjectRef {
        name: format!("{}({})", id.name, number + 2).into(),
        ..id.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::super::Change;
    use super::*;

    fn policy(action: &str, app: &str) -> String {
        format!(
            "apiVersion: security.istio.io/v1\nkind: AuthorizationPolicy\nmetadata: {{name: own, namespace: ns}}\n\
             spec: {{selector: {{matchLabels: {{app: {app}}}}}, action: {action}, rules: [{{}}]}}\n"
        )
    }

    fn write(store: &mut Store, files: &[(&str, &str)]) {
        let changes = files.iter().map(|(file, text)| {
            let change = match text.is_empty() {
                true => Change::Gone,
                false => Change::text(store, file, text),
            };
            (Arc::from(*file), change)
        });
        let changes = changes.collect();
        store.apply(changes);
    }

    /// Returns the policies in effect: name and label, and `!` for one that denies because it was never valid.
    fn policies(store: &Store) -> Vec<String> {
        let policies = store.set().authorization_policies.values();
        let text = policies.map(|policy| {
            let denies = if policy.spec.is_stand_in() { "!" } else { "" };
            format!(
                "{denies}{} {}",
                policy.id.name, policy.spec.scope.selector["app"]
            )
        });
        text.collect()
    }

    #[test]
    fn further_definitions_of_a_policy_deny_what_they_select_from_the_start() {
        let [a, b, c] = ["a", "b", "c"].map(|app| policy("ALLOW", app));
        let mut store = Store::new();
        write(&mut store, &[("b", &b), ("a", &a), ("c", &c)]);
        let all = ["own a", "!own(2) b", "!own(3) c"];
        assert_eq!(policies(&store), all);
        let found = store.diagnostics();
        assert_eq!(found.len(), 2);
        assert_eq!(found[0].code.0, "CM020");
        let help = found[0].help.as_deref().unwrap();
        assert!(help.contains("denies what it selects"), "{help}");

        write(&mut store, &[("a", &policy("ALLOW", "d"))]);
        assert_eq!(policies(&store), ["own d", "!own(2) b", "!own(3) c"]);
        write(&mut store, &[("b", "")]);
        assert_eq!(policies(&store), ["own d", "!own(2) c"]);
        write(&mut store, &[("a", "")]);
        assert_eq!(policies(&store), ["own c"]);
    }

    #[test]
    fn definition_that_comes_later_counts_for_nothing() {
        let [a, b] = ["a", "b"].map(|app| policy("ALLOW", app));
        let mut store = Store::new();
        write(&mut store, &[("b", &b)]);
        write(&mut store, &[("a", &a)]);
        assert_eq!(policies(&store), ["own b"]);
        assert_eq!(store.diagnostics().len(), 1);

        let mut store = Store::new();
        store.is_starting = true;
        write(&mut store, &[("b", &b)]);
        write(&mut store, &[("a", &a)]);
        assert_eq!(policies(&store), ["own b", "!own(2) a"]);
    }

    #[test]
    fn rejected_definition_denies_beside_a_valid_one() {
        let (bad, good) = (policy("ALOW", "a"), policy("DENY", "b"));
        let audit = policy("AUDIT", "c");
        let mut store = Store::new();
        write(&mut store, &[("a", &bad), ("b", &good), ("c", &audit)]);
        assert_eq!(policies(&store), ["own b", "!own(2) a"]);
        let mut store = Store::new();
        write(&mut store, &[("a", &bad)]);
        write(&mut store, &[("b", &good)]);
        assert_eq!(policies(&store), ["own b", "!own(2) a"]);
        write(&mut store, &[("a", &policy("ALLOW", "d"))]);
        assert_eq!(policies(&store), ["own b", "!own(2) d"]);
        write(&mut store, &[("b", "")]);
        assert_eq!(policies(&store), ["own d"]);
    }

    #[test]
    fn policy_that_loses_its_name_or_namespace_keeps_its_last_version() {
        let good = policy("DENY", "a");
        let metadata = "{name: own, namespace: ns}";
        for edited in [
            "{name: own, namespace: Not good}",
            "{name: own, namespace: [ns]}",
            "{name: own, namespace: 7}",
            "{name: Own, namespace: ns}",
            "{namespace: ns}",
            "[]",
        ] {
            let edited = good.replace(metadata, edited);
            let mut store = Store::new();
            write(&mut store, &[("a", &good)]);
            for text in [edited.clone(), edited.replace("app: a", "app: b")] {
                write(&mut store, &[("a", &text)]);
                assert_eq!(policies(&store), ["own a"], "{text}");
                let [quarantined] = &*store.quarantined() else {
                    panic!("{text}");
                };
                assert!(quarantined.in_force, "{text}");
            }
            write(&mut store, &[("a", &policy("DENY", "c"))]);
            assert_eq!(policies(&store), ["own c"], "{edited}");

            let mut store = Store::new();
            write(&mut store, &[("a", &edited)]);
            let set = store.set();
            let policy = set.authorization_policies.values().next().unwrap();
            assert!(policy.spec.is_stand_in(), "{edited}");
        }
    }
}
