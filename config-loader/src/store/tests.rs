//! Tests of the store. Secrets stand in for any kind: tests change their labels, and a label can be invalid.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::kind::Kind;

/// Content of one position of a file.
#[derive(Clone, Debug)]
enum Item {
    /// Object number and content.
    Good(u8, u8),
    /// Number of a rejected object.
    Refused(u8),
    /// Text that cannot be parsed.
    Broken,
}

fn text(items: &[Item]) -> String {
    let secret = |name: u8, label: String| {
        format!(
            "---\napiVersion: v1\nkind: Secret\nmetadata:\n  name: s{name}\n  labels: {{v: {label}}}\n"
        )
    };
    let one = |item: &Item| match item {
        Item::Good(name, content) => secret(*name, format!("c{content}")),
        Item::Refused(name) => secret(*name, "\"not valid\"".to_owned()),
        Item::Broken => "---\nkind: [\n".to_owned(),
    };
    items.iter().map(one).collect()
}

fn id(name: u8) -> ObjectRef {
    ObjectRef::new(Kind::Secret, "default", format!("s{name}"))
}

fn write(store: &mut Store, file: &str, items: &[Item]) -> Delta {
    let change = Change::text(store, file, &text(items));
    store.apply(vec![(Arc::from(file), change)])
}

/// Returns the objects in effect: object, content, file and line.
fn in_force(store: &Store) -> BTreeMap<String, String> {
    let set = store.set();
    set.secrets
        .iter()
        .map(|(name, object)| {
            let location = format!(
                "{} {}:{}",
                object.labels["v"], object.provenance.file, object.provenance.line
            );
            (name.name.to_string(), location)
        })
        .collect()
}

fn check(store: &Store, wanted: &[(&str, &str)]) {
    let wanted: BTreeMap<String, String> = wanted
        .iter()
        .map(|(name, location)| ((*name).to_owned(), (*location).to_owned()))
        .collect();
    assert_eq!(in_force(store), wanted);
}

fn unreadable(file: &str) -> Change {
    let code = crate::diagnostic::codes::common::SRC002;
    let message = "cannot read this";
    let failure = Diagnostic::about_file(Severity::Error, code, Arc::from(file), message);
    Change::Unreadable(Box::new(failure))
}

#[test]
fn objects_are_added_changed_moved_and_removed() {
    let mut store = Store::new();
    let delta = write(&mut store, "a", &[Item::Good(1, 1), Item::Good(2, 1)]);
    assert_eq!(
        delta,
        Delta {
            added: vec![id(1), id(2)],
            ..Delta::default()
        }
    );
    check(&store, &[("s1", "c1 a:2"), ("s2", "c1 a:8")]);
    let first = Arc::clone(store.set());

    let delta = write(&mut store, "a", &[Item::Good(1, 1), Item::Good(2, 2)]);
    assert_eq!(
        delta,
        Delta {
            changed: vec![id(2)],
            ..Delta::default()
        }
    );
    let second = Arc::clone(store.set());
    assert_eq!(second.revision, first.revision + 1);
    let one = id(1).to_name();
    assert!(
        Arc::ptr_eq(&first.secrets[&one], &second.secrets[&one]),
        "an unchanged object keeps its Arc"
    );
    assert!(
        first.services.same(&second.services),
        "kinds without changes are shared"
    );

    let delta = write(&mut store, "a", &[Item::Good(2, 2)]);
    assert_eq!(
        delta,
        Delta {
            moved: vec![id(2)],
            removed: vec![id(1)],
            ..Delta::default()
        }
    );
    let two = id(2).to_name();
    assert!(Arc::ptr_eq(
        &second.secrets[&two].spec,
        &store.set().secrets[&two].spec
    ));
    check(&store, &[("s2", "c2 a:2")]);

    let delta = store.apply(vec![(Arc::from("a"), Change::Gone)]);
    assert_eq!(
        delta,
        Delta {
            removed: vec![id(2)],
            ..Delta::default()
        }
    );
    check(&store, &[]);
}

#[test]
fn a_change_without_effect_keeps_the_revision() {
    let mut store = Store::new();
    write(&mut store, "a", &[Item::Good(1, 1)]);
    let before = Arc::clone(store.set());
    assert!(write(&mut store, "a", &[Item::Good(1, 1)]).is_empty());
    assert!(Arc::ptr_eq(&before, store.set()));
}

#[test]
fn a_rejected_object_keeps_its_last_good_version_and_others_change() {
    let mut store = Store::new();
    write(&mut store, "a", &[Item::Good(1, 1), Item::Good(2, 1)]);
    let delta = write(&mut store, "a", &[Item::Refused(1), Item::Good(2, 2)]);
    assert_eq!(delta.changed, [id(2)]);
    check(&store, &[("s1", "c1 a:2"), ("s2", "c2 a:8")]);
    let quarantined = store.quarantined();
    assert_eq!(quarantined.len(), 1);
    assert_eq!(
        (&quarantined[0].object, quarantined[0].in_force),
        (&id(1), true)
    );
    assert_eq!(quarantined[0].diagnostics[0].code.0, "CM015");

    write(&mut store, "a", &[Item::Good(1, 3), Item::Good(2, 2)]);
    check(&store, &[("s1", "c3 a:2"), ("s2", "c2 a:8")]);
    assert!(store.quarantined().is_empty());
}

#[test]
fn an_object_that_was_never_valid_is_not_applied() {
    let mut store = Store::new();
    assert!(write(&mut store, "a", &[Item::Refused(1)]).is_empty());
    let quarantined = store.quarantined();
    assert_eq!(
        (&quarantined[0].object, quarantined[0].in_force),
        (&id(1), false)
    );
    write(&mut store, "a", &[]);
    assert!(store.quarantined().is_empty());
}

#[test]
fn objects_after_a_syntax_error_are_kept() {
    let mut store = Store::new();
    write(&mut store, "a", &[Item::Good(1, 1), Item::Good(2, 1)]);
    write(&mut store, "b", &[Item::Good(3, 1)]);
    let delta = write(&mut store, "a", &[Item::Good(1, 2), Item::Broken]);
    assert_eq!(
        delta,
        Delta {
            changed: vec![id(1)],
            ..Delta::default()
        }
    );
    check(
        &store,
        &[("s1", "c2 a:2"), ("s2", "c1 a:8"), ("s3", "c1 b:2")],
    );
    let quarantined = store.quarantined();
    assert_eq!(
        (&quarantined[0].object, quarantined[0].in_force),
        (&id(2), true)
    );
    assert_eq!(quarantined[0].diagnostics[0].code.0, "YAML001");

    // Other files are not kept by it.
    write(&mut store, "b", &[]);
    check(&store, &[("s1", "c2 a:2"), ("s2", "c1 a:8")]);
    // The file is well again, and the object really gone.
    write(&mut store, "a", &[Item::Good(1, 2)]);
    check(&store, &[("s1", "c2 a:2")]);
    assert!(store.quarantined().is_empty());
}

#[test]
fn a_file_that_cannot_be_read_keeps_its_objects() {
    let mut store = Store::new();
    write(&mut store, "a", &[Item::Good(1, 1)]);
    let delta = store.apply(vec![(Arc::from("a"), unreadable("a"))]);
    assert!(delta.is_empty());
    check(&store, &[("s1", "c1 a:2")]);
    assert_eq!(store.quarantined()[0].diagnostics[0].code.0, "SRC002");
    assert_eq!(store.diagnostics().len(), 1);

    write(&mut store, "a", &[Item::Good(1, 2)]);
    check(&store, &[("s1", "c2 a:2")]);
    assert!(store.quarantined().is_empty() && store.diagnostics().is_empty());
    store.apply(vec![(Arc::from("a"), unreadable("a"))]);
    store.apply(vec![(Arc::from("a"), Change::Gone)]);
    check(&store, &[]);
    assert!(store.quarantined().is_empty());
}

#[test]
fn first_of_two_objects_with_one_name_is_used() {
    let mut store = Store::new();
    let unread = Store::new();
    let file =
        |name: &str, items: &[Item]| (Arc::from(name), Change::text(&unread, name, &text(items)));
    store.apply(vec![
        file("b", &[Item::Good(1, 1)]),
        file("a", &[Item::Good(2, 1), Item::Good(1, 2)]),
    ]);
    check(&store, &[("s1", "c2 a:8"), ("s2", "c1 a:2")]);
    let found = store.diagnostics();
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].code.0, "CM020");
    assert_eq!((&*found[0].location.file, found[0].location.line), ("b", 5));
    assert_eq!(
        found[0].message,
        "Secret/default/s1 is already defined at a:11"
    );

    write(&mut store, "a", &[Item::Good(2, 1)]);
    check(&store, &[("s1", "c1 b:2"), ("s2", "c1 a:2")]);
    assert!(store.diagnostics().is_empty());
}

#[test]
fn a_duplicate_does_not_replace_the_object() {
    let mut store = Store::new();
    write(&mut store, "b", &[Item::Good(1, 1)]);
    let delta = write(&mut store, "a", &[Item::Good(1, 2)]);
    assert!(delta.is_empty());
    check(&store, &[("s1", "c1 b:2")]);
    let [found] = &*store.diagnostics() else {
        panic!("the repetition is told");
    };
    assert_eq!((&*found.location.file, found.code.0), ("a", "CM020"));
    assert_eq!(found.message, "Secret/default/s1 is already defined at b:5");
    // it goes on following its own file, and moves when it is taken out there
    write(&mut store, "b", &[Item::Good(1, 3)]);
    check(&store, &[("s1", "c3 b:2")]);
    write(&mut store, "b", &[Item::Refused(1)]);
    check(&store, &[("s1", "c3 b:2")]);
    write(&mut store, "b", &[]);
    check(&store, &[("s1", "c2 a:2")]);
    assert!(store.diagnostics().is_empty());
}

#[test]
fn stand_in_of_a_policy_gives_way_to_a_valid_version_for_good() {
    let policy = |action: &str, selector: &str| {
        format!(
            "apiVersion: security.istio.io/v1\nkind: AuthorizationPolicy\nmetadata: {{name: a, namespace: ns}}\n\
             spec: {{selector: {{matchLabels: {{app: {selector}}}}}, action: {action}, rules: [{{}}]}}\n"
        )
    };
    let mut store = Store::new();
    for (text, expected) in [
        (policy("deny", "a"), Some(("a", true))),
        (policy("denyy", "b"), Some(("b", true))),
        (policy("DENY", "c"), Some(("c", false))),
        (policy("deny", "d"), Some(("c", false))),
        (String::new(), None),
        (policy("deny", "e"), Some(("e", true))),
        (policy("AUDITT", "e"), Some(("e", true))),
    ] {
        let change = Change::text(&store, "a.yaml", &text);
        store.apply(vec![(Arc::from("a.yaml"), change)]);
        let policy = store.set().authorization_policies.values().next();
        let found = policy.map(|policy| {
            (
                policy.spec.scope.selector["app"].as_str(),
                policy.spec.is_stand_in(),
            )
        });
        assert_eq!(found, expected, "{text}");
    }
}

#[test]
fn destination_without_access_policies_is_restricted_by_a_rejected_version() {
    let destination = |port: u16, status: &str| {
        format!(
            "apiVersion: discovery.mesh.gloo.solo.io/v1\nkind: Destination\nmetadata: {{name: a, namespace: ns}}\n\
             spec: {{kubeService: {{ref: {{name: a, namespace: ns, clusterName: c}}, ports: [{{port: {port}}}]}}}}\n\
             status: {{{status}}}\n"
        )
    };
    let policies = "appliedAccessPolicies: [{ref: {name: p, namespace: ns}, spec: {}}]";
    let mut store = Store::new();
    for (text, expected) in [
        (destination(80, ""), (false, false)),
        (destination(0, ""), (false, false)),
        (destination(0, policies), (true, false)),
        (destination(0, ""), (true, false)),
        (destination(80, ""), (false, false)),
        (destination(80, policies), (true, false)),
        (destination(0, ""), (true, false)),
        (String::new(), (false, false)),
        (destination(0, policies), (true, true)),
    ] {
        let change = Change::text(&store, "a.yaml", &text);
        store.apply(vec![(Arc::from("a.yaml"), change)]);
        let found = store.set().destinations.values().next();
        let found = found.map(|found| {
            let is_denied = found.spec.is_stand_in();
            (found.spec.status.is_restricted || is_denied, is_denied)
        });
        assert_eq!(found.unwrap_or_default(), expected, "{text}");
    }
}

#[test]
fn routing_restriction_that_was_never_valid_is_withheld() {
    let mut store = Store::new();
    let name = ObjectRef::new(Kind::MultiClusterService, "default", "web").to_name();
    let withheld = |store: &Store| store.set().is_withheld(Kind::MultiClusterService, &name);
    let revision = store.set().revision;
    let delta = exposure(&mut store, "a", "Unknown");
    assert_eq!(delta.withheld.len(), 1);
    assert!(store.set().revision > revision);
    assert!(withheld(&store));
    assert!(!store.set().is_withheld(Kind::GlobalTrafficPolicy, &name));
    let delta = exposure(&mut store, "a", "CrossCluster");
    assert_eq!((delta.withheld.len(), delta.added.len()), (1, 1));
    assert!(!withheld(&store));
    // with a good version from before there is nothing to withhold
    exposure(&mut store, "a", "Unknown");
    assert_eq!(exposed(&store).0, Some("CrossCluster"));
    assert!(!withheld(&store));
    exposure(&mut store, "a", "");
    exposure(&mut store, "a", "Unknown");
    assert!(withheld(&store));
    exposure(&mut store, "a", "");
    assert!(!withheld(&store));
    assert!(write(&mut store, "b", &[Item::Refused(1)]).is_empty());
}

#[test]
fn unreadable_document_keeps_last_good_version() {
    let good = "apiVersion: networking.karmada.io/v1alpha1\nkind: MultiClusterService\n\
                metadata: {name: web}\nspec: {types: [CrossCluster]}\n";
    let item = "apiVersion: v1\nkind: List\nitems:\n- apiVersion: networking.karmada.io/v1alpha1\n  kind: MultiClusterService\n  \
                metadata: {name: web}\n  spec: {types: [CrossCluster]}\n";
    let typed = "apiVersion: networking.karmada.io/v1alpha1\nkind: MultiClusterServiceList\nitems:\n\
                 - metadata: {name: web}\n  spec: {types: [CrossCluster]}\n";
    let rows: &[(&str, &str, &str)] = &[
        (
            good,
            "kind: MultiClusterService",
            "kind: MultiClusterservice",
        ),
        (good, "kind: MultiClusterService\n", ""),
        (good, "apiVersion: networking.karmada.io/v1alpha1\n", ""),
        (good, "{name: web}", "{}"),
        (good, "{name: web}", "{name: Web}"),
        (good, "{name: web}", "{name: web, namespace: A b}"),
        (good, good, "what is this\n"),
        (
            item,
            "kind: MultiClusterService",
            "kind: MultiClusterservice",
        ),
        (item, "{name: web}", "{}"),
        (item, "items:\n-", "items:\n "),
        (typed, "MultiClusterServiceList", "MultiClusterServicelist"),
        (typed, "- metadata", "- 1\n- metadata"),
    ];
    for (before, from, to) in rows {
        let mut store = Store::new();
        let apply = |store: &mut Store, text: &str| {
            let change = Change::text(store, "a", text);
            store.apply(vec![(Arc::from("a"), change)]);
        };
        apply(&mut store, before);
        assert_eq!(exposed(&store).0, Some("CrossCluster"), "{before}");
        let after = before.replace(from, to);
        assert_ne!(&after, before);
        apply(&mut store, &after);
        assert_eq!(exposed(&store).0, Some("CrossCluster"), "{after}");
        let other = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\n";
        apply(&mut store, other);
        assert_eq!(
            exposed(&store).0,
            None,
            "what others read is no reason to keep it"
        );
    }
}

#[test]
fn invalid_first_definition_is_not_replaced_by_its_duplicate() {
    let mut store = Store::new();
    write(&mut store, "a", &[Item::Good(1, 1)]);
    write(&mut store, "b", &[Item::Good(1, 2)]);
    write(&mut store, "a", &[Item::Refused(1)]);
    check(&store, &[("s1", "c1 a:2")]);
}

#[test]
fn an_object_can_move_between_files_in_one_change() {
    let mut store = Store::new();
    write(&mut store, "a", &[Item::Good(1, 1)]);
    let changes = vec![
        (Arc::from("a"), Change::Gone),
        (
            Arc::from("b"),
            Change::text(&store, "b", &text(&[Item::Good(1, 1)])),
        ),
    ];
    assert_eq!(
        store.apply(changes),
        Delta {
            moved: vec![id(1)],
            ..Delta::default()
        }
    );
    check(&store, &[("s1", "c1 b:2")]);
}

fn any_item() -> impl Strategy<Value = Item> {
    prop_oneof![
        8 => (0_u8..6, 0_u8..3).prop_map(|(name, content)| Item::Good(name, content)),
        1 => (0_u8..6).prop_map(Item::Refused),
        1 => Just(Item::Broken),
    ]
}

/// Generates a change of a file; `None` removes it.
fn any_step() -> impl Strategy<Value = (u8, Option<Vec<Item>>)> {
    (
        0_u8..4,
        prop_oneof![5 => proptest::collection::vec(any_item(), 0..5).prop_map(Some), 1 => Just(None)],
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    /// Checks that, once all files are valid, the store equals one that loaded the files from scratch.
    #[test]
    fn a_reload_equals_a_fresh_load(steps in proptest::collection::vec(any_step(), 1..20)) {
        let mut store = Store::new();
        let mut files: BTreeMap<u8, Vec<Item>> = BTreeMap::new();
        for (file, items) in steps {
            let name: Arc<str> = Arc::from(file.to_string());
            let before = in_force(&store);
            let read = |items: &Vec<Item>| Change::text(&store, &name, &text(items));
            let change = items.as_ref().map_or(Change::Gone, read);
            store.apply(vec![(name, change)]);
            check_positions(&store);
            match items {
                Some(items) => { files.insert(file, items); }
                None => { files.remove(&file); }
            }
            // A file that cannot be parsed takes nothing away.
            if files.get(&file).is_some_and(|items| items.iter().any(|item| matches!(item, Item::Broken))) {
                prop_assert!(before.keys().all(|object| in_force(&store).contains_key(object)));
            }
        }
        let mut seen = BTreeSet::new();
        for items in files.values_mut() {
            items.retain(|item| matches!(item, Item::Good(name, _) if seen.insert(*name)));
        }
        let read = |store: &Store| -> Vec<(Arc<str>, Change)> {
            let read = |(file, items): (&u8, &Vec<Item>)| {
                let file = file.to_string();
                let change = Change::text(store, &file, &text(items));
                (file.into(), change)
            };
            files.iter().map(read).collect()
        };
        store.apply(read(&store));
        let mut fresh = Store::new();
        fresh.apply(read(&fresh));
        prop_assert_eq!(in_force(&store), in_force(&fresh));
        prop_assert!(store.quarantined().is_empty());
        let found = |store: &Store| store.diagnostics().into_iter().map(|found| found.message).collect::<Vec<_>>();
        prop_assert_eq!(found(&store), found(&fresh));
    }
}

/// Checks that the store has the position of every object in the files, and no unnecessary ones.
fn check_positions(store: &Store) {
    let mut written: BTreeMap<ObjectRef, Positions> = BTreeMap::new();
    for (file, reading) in &store.files {
        for (id, position) in positions(file, reading, None) {
            written.entry(id).or_default().insert(position);
        }
    }
    for (id, wanted) in &written {
        assert_eq!(store.positions(id, &store.set), *wanted, "{id}");
    }
    for (id, listed) in &store.positions {
        assert_eq!(written.get(id).unwrap_or(&Positions::new()), listed, "{id}");
        let object = in_effect(&store.set, id);
        let own = object.as_ref().and_then(|object| store.position_of(object));
        let is_needed = !listed.iter().eq(&own) || (listed.is_empty() && object.is_some());
        assert!(is_needed, "{id} says itself where it stands");
    }
}

/// Writes a file with one MultiClusterService of this type, or an empty file.
fn exposure(store: &mut Store, file: &str, written: &str) -> Delta {
    let text = match written.split_once('@') {
        None if written.is_empty() => String::new(),
        split => {
            let (exposure, created) = split.unwrap_or((written, ""));
            let created = match created {
                "" => String::new(),
                year => format!(", creationTimestamp: '{year}-01-01T00:00:00Z'"),
            };
            format!(
                "apiVersion: networking.karmada.io/v1alpha1\nkind: MultiClusterService\n\
                 metadata: {{name: web{created}}}\nspec:\n  types: [{exposure}]\n"
            )
        }
    };
    let change = Change::text(store, file, &text);
    store.apply(vec![(Arc::from(file), change)])
}

/// Returns the type in effect, and the diagnostics about other types.
fn exposed(store: &Store) -> (Option<&'static str>, Vec<String>) {
    let set = store.set();
    let object = set.multi_cluster_services.values().next();
    let found = store.refusals();
    let lines = found.iter().map(|found| {
        assert!(
            found
                .help
                .as_ref()
                .is_some_and(|help| help.contains("add it again"))
        );
        format!("{} {}: {}", found.location, found.field, found.message)
    });
    let exposure = object.map(|object| object.spec.exposure.as_str());
    (exposure, lines.collect())
}

#[test]
fn scenario_70_types_of_an_existing_object_never_change() {
    let mut store = Store::new();
    exposure(&mut store, "a", "CrossCluster");
    assert_eq!(exposed(&store), (Some("CrossCluster"), vec![]));
    let refused = "a:5:1 spec.types: Invalid value: [\"LoadBalancer\"]: MultiClusterService types are immutable";
    let delta = exposure(&mut store, "a", "LoadBalancer");
    assert!(delta.is_empty());
    assert_eq!(
        exposed(&store),
        (Some("CrossCluster"), vec![refused.to_owned()])
    );
    let [held] = &*store.quarantined() else {
        panic!("it is held");
    };
    assert!(held.in_force);
    assert_eq!(held.diagnostics.len(), 1);
    // another look at the file does not let it in
    exposure(&mut store, "a", "LoadBalancer");
    assert_eq!(exposed(&store).0, Some("CrossCluster"));
    exposure(&mut store, "a", "CrossCluster");
    assert_eq!(exposed(&store), (Some("CrossCluster"), vec![]));
    assert!(store.quarantined().is_empty());
    exposure(&mut store, "a", "");
    assert_eq!(exposed(&store), (None, vec![]));
    exposure(&mut store, "a", "LoadBalancer");
    assert_eq!(exposed(&store), (Some("LoadBalancer"), vec![]));
}

#[test]
fn an_object_with_a_later_creation_time_is_a_new_object() {
    let mut store = Store::new();
    exposure(&mut store, "a", "CrossCluster@2020");
    exposure(&mut store, "a", "LoadBalancer@2020");
    assert_eq!(exposed(&store).0, Some("CrossCluster"));
    exposure(&mut store, "a", "LoadBalancer@2021");
    assert_eq!(exposed(&store), (Some("LoadBalancer"), vec![]));
}

#[test]
fn types_are_kept_when_an_object_moves_to_another_file() {
    let mut store = Store::new();
    exposure(&mut store, "b", "CrossCluster");
    exposure(&mut store, "a", "LoadBalancer");
    assert_eq!(exposed(&store).0, Some("CrossCluster"), "it stays");
    store.apply(vec![(Arc::from("b"), Change::Gone)]);
    assert_eq!(exposed(&store).0, Some("CrossCluster"), "it was never gone");
    store.apply(vec![(Arc::from("a"), Change::Gone)]);
    exposure(&mut store, "a", "LoadBalancer");
    assert_eq!(exposed(&store), (Some("LoadBalancer"), vec![]));
}
