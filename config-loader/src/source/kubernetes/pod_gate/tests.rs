//! Endpoints and pods in every order of events.

use std::collections::BTreeMap;

use kube::api::ApiResource;
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::kind::Kind;

const WAIT: Duration = Duration::from_secs(2);

fn slices() -> Resource {
    Resource {
        kind: Kind::EndpointSlice,
        api: ApiResource {
            group: "discovery.k8s.io".to_owned(),
            version: "v1".to_owned(),
            api_version: "discovery.k8s.io/v1".to_owned(),
            kind: "EndpointSlice".to_owned(),
            plural: "endpointslices".to_owned(),
        },
        is_namespaced: true,
    }
}

fn object(name: &str, data: Value) -> DynamicObject {
    let metadata = json!({"name": name, "namespace": "prod"});
    let mut all = json!({"metadata": metadata});
    all.as_object_mut()
        .unwrap()
        .extend(data.as_object().unwrap().clone());
    serde_json::from_value(all).unwrap()
}

fn gate() -> PodGate {
    PodGate::new("kubernetes://east".to_owned(), WAIT)
}

fn document(pod: u8) -> Document {
    format!("kubernetes://east/prod/pods/p{pod}").into()
}

fn slice(pods: &[u8]) -> DynamicObject {
    let endpoints: Vec<Value> = pods
        .iter()
        .map(|pod| json!({"addresses": ["10.0.0.1"], "targetRef": {"kind": "Pod", "name": format!("p{pod}")}}))
        .collect();
    object("s", json!({"endpoints": endpoints}))
}

/// Returns the pods whose endpoints are in the slice.
fn pods_in(slice: &DynamicObject) -> Vec<u8> {
    let gate = gate();
    let named = endpoints(&slice.data).filter_map(|endpoint| gate.pod_of(endpoint, "prod"));
    named
        .map(|pod| pod.rsplit_once("/p").unwrap().1.parse().unwrap())
        .collect()
}

fn released(released: &Released) -> Vec<Vec<u8>> {
    released
        .slices
        .iter()
        .map(|(_, slice, _)| pods_in(slice))
        .collect()
}

#[test]
fn endpoint_waits_for_its_pod_and_its_neighbors_do_not() {
    let (mut gate, now) = (gate(), Instant::now());
    gate.listed(None);
    gate.pod(&document(1));
    let first = gate.slice(&"s".into(), slice(&[1, 2]), &slices(), now);
    assert_eq!(released(&first), [[1]]);
    assert_eq!(gate.deadline(), Some(now + WAIT));
    assert_eq!(released(&gate.pod(&document(2))), [[1, 2]]);
    assert_eq!(gate.deadline(), None);
}

#[test]
fn endpoint_is_used_without_its_pod_after_the_wait() {
    let (mut gate, now) = (gate(), Instant::now());
    gate.listed(None);
    gate.slice(&"s".into(), slice(&[1]), &slices(), now);
    assert!(gate.expire(now + WAIT / 2).slices.is_empty());
    // the wait does not start again with another version
    let later = gate.slice(&"s".into(), slice(&[1, 2]), &slices(), now + WAIT / 2);
    assert_eq!(released(&later), vec![Vec::<u8>::new()]);
    let expired = gate.expire(now + WAIT);
    assert_eq!(released(&expired), [[1]]);
    assert_eq!(*expired.missing, [document(1)]);
    assert_eq!(released(&gate.pod(&document(1))), [[1]]);
    assert_eq!(released(&gate.expire(now + WAIT * 2)), [[1, 2]]);
}

#[test]
fn nothing_waits_where_pods_are_not_read() {
    let mut gate = gate();
    let passed = gate.slice(&"s".into(), slice(&[1]), &slices(), Instant::now());
    assert_eq!(released(&passed), [[1]]);
    assert_eq!(gate.deadline(), None);
}

#[test]
fn endpoint_waits_only_where_pods_of_its_namespace_are_listed() {
    let (mut gate, now) = (gate(), Instant::now());
    gate.listed(Some("other"));
    let passed = gate.slice(&"s".into(), slice(&[1]), &slices(), now);
    assert_eq!(released(&passed), [[1]]);
    gate.listed(Some("prod"));
    let waits = gate.slice(&"s".into(), slice(&[2]), &slices(), now);
    assert_eq!(released(&waits), vec![Vec::<u8>::new()]);
    gate.unreadable(Some("prod"));
    let passed = gate.slice(&"t".into(), slice(&[3]), &slices(), now);
    assert_eq!(released(&passed), [[3]]);
}

#[test]
fn new_endpoint_waits_for_the_successor_of_a_pod_that_is_gone() {
    let (mut gate, now) = (gate(), Instant::now());
    gate.listed(None);
    gate.pod(&document(1));
    gate.slice(&"s".into(), slice(&[1]), &slices(), now);
    assert!(!gate.pod_gone(&document(1)));
    let other = gate.slice(&"t".into(), slice(&[1]), &slices(), now);
    assert_eq!(released(&other), vec![Vec::<u8>::new()]);
    assert_eq!(released(&gate.pod(&document(1))), [[1]]);
}

#[test]
fn pod_that_is_gone_stays_until_its_slice_drops_it() {
    let (mut gate, now) = (gate(), Instant::now());
    gate.listed(None);
    gate.pod(&document(1));
    gate.slice(&"s".into(), slice(&[1]), &slices(), now);
    assert!(!gate.pod_gone(&document(1)));
    let same = gate.slice(&"s".into(), slice(&[1]), &slices(), now);
    assert_eq!((released(&same), same.gone), (vec![vec![1]], vec![]));
    let dropped = gate.slice(&"s".into(), slice(&[]), &slices(), now);
    assert_eq!(dropped.gone, [document(1)]);
    assert!(gate.pod_gone(&document(1)), "nothing names it");
}

#[test]
fn pod_that_comes_back_does_not_go() {
    let (mut gate, now) = (gate(), Instant::now());
    gate.listed(None);
    gate.pod(&document(1));
    gate.slice(&"s".into(), slice(&[1]), &slices(), now);
    assert!(!gate.pod_gone(&document(1)));
    gate.pod(&document(1));
    assert!(gate.slice_gone(&"s".into()).gone.is_empty());
}

#[derive(Clone, Debug)]
enum Step {
    Pod(u8),
    PodGone(u8),
    Slice(u8, Vec<u8>),
    SliceGone(u8),
    Wait(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let pods = prop::collection::btree_set(0..5_u8, 0..4);
    let step = prop_oneof![
        (0..5_u8).prop_map(Step::Pod),
        (0..5_u8).prop_map(Step::PodGone),
        (0..3_u8, pods).prop_map(|(slice, pods)| Step::Slice(slice, pods.into_iter().collect())),
        (0..3_u8).prop_map(Step::SliceGone),
        (0..1_500_u64).prop_map(Step::Wait),
    ];
    prop::collection::vec(step, 0..40)
}

proptest! {
    /// In every order of events, an endpoint takes effect with its pod or after the timeout, and a pod that a slice
    /// names is never removed. At the end, everything is in effect.
    #[test]
    fn every_order_ends_in_the_same(steps in steps()) {
        let (mut gate, mut now) = (gate(), Instant::now());
        gate.listed(None);
        let mut wanted: BTreeMap<u8, Vec<u8>> = BTreeMap::new();
        let mut pods: HashSet<u8> = HashSet::new();
        let mut shown: BTreeMap<Document, Vec<u8>> = BTreeMap::new();
        let mut in_effect: HashSet<u8> = HashSet::new();
        let mut missing: HashMap<u8, Instant> = HashMap::new();
        let ends = [Step::Wait(3_000)];
        for step in steps.iter().chain(&ends) {
            let released = match step {
                Step::Pod(number) => {
                    pods.insert(*number);
                    in_effect.insert(*number);
                    gate.pod(&document(*number))
                }
                Step::PodGone(number) => {
                    if pods.remove(number) && gate.pod_gone(&document(*number)) {
                        in_effect.remove(number);
                    }
                    Released::default()
                }
                Step::Slice(number, named) => {
                    wanted.insert(*number, named.clone());
                    gate.slice(&format!("s{number}").into(), slice(named), &slices(), now)
                }
                Step::SliceGone(number) => {
                    wanted.remove(number);
                    let document: Document = format!("s{number}").into();
                    shown.remove(&document);
                    gate.slice_gone(&document)
                }
                Step::Wait(millis) => {
                    now += Duration::from_millis(*millis);
                    gate.expire(now)
                }
            };
            for (document, slice, _) in &released.slices {
                shown.insert(Arc::clone(document), pods_in(slice));
            }
            for document in &released.gone {
                in_effect.remove(&document.rsplit_once('p').unwrap().1.parse::<u8>().unwrap());
            }
            let named: HashSet<u8> = wanted.values().flatten().copied().collect();
            missing.retain(|pod, _| named.contains(pod) && !in_effect.contains(pod));
            for pod in named.difference(&in_effect) {
                missing.entry(*pod).or_insert(now);
            }
            for pod in shown.values().flatten() {
                let waited = missing.get(pod).map(|since| now - *since);
                prop_assert!(waited.is_none_or(|waited| waited >= WAIT), "{pod} is used too early, after {waited:?}");
            }
            prop_assert!(pods.is_subset(&in_effect));
        }
        let expected: BTreeMap<Document, Vec<u8>> =
            wanted.iter().map(|(number, named)| (format!("s{number}").into(), named.clone())).collect();
        prop_assert_eq!(shown, expected);
        let named: HashSet<u8> = wanted.into_values().flatten().collect();
        let kept: Vec<u8> = in_effect.difference(&pods).filter(|pod| !named.contains(pod)).copied().collect();
        prop_assert!(kept.is_empty(), "{:?} stay for nothing", kept);
    }
}
