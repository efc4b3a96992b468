//! Tests of the engine: writes that follow from changes.

use std::collections::BTreeMap;

use super::*;
use crate::conditions::write::outcome;
use crate::proxies::{Proxies, Report};

fn route() -> Value {
    json!({
        "apiVersion": "networking.istio.io/v1", "kind": "VirtualService",
        "metadata": {"name": "shop", "namespace": "a", "generation": 3, "resourceVersion": "7"},
        "spec": {"hosts": ["shop.example"], "http": [{"route": [{"destination": {"host": "shop"}}]}]},
    })
}

fn service() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "shop", "namespace": "a"},
        "spec": {"ports": [{"port": 80}]},
    })
}

/// Returns the writes after a change, once no object has to wait.
fn change(engine: &mut Engine, key: &str, object: Option<Value>, now: &mut Instant) -> Vec<Write> {
    engine.take_in(vec![(Arc::from(key), object)]);
    *now += Duration::from_secs(60);
    engine.refresh_findings(*now);
    engine.due(*now, 10, "t1")
}

#[test]
fn conditions_follow_other_objects_and_end() {
    let (mut engine, mut now) = (Engine::new(GatewayController::default()), Instant::now());
    let writes = change(&mut engine, "vs", Some(route()), &mut now);
    let [write] = &*writes else {
        panic!("{writes:?}")
    };
    assert_eq!((&*write.name, &*write.revision), ("shop", "7"));
    assert_eq!(write.status["conditions"][0]["reason"], "X275");
    assert_eq!(write.status["conditions"][0]["observedGeneration"], 3);
    assert_eq!(engine.deadline(now), None);

    let mut written = route();
    written["metadata"]["resourceVersion"] = json!("8");
    written["status"] = write.status.clone();
    let again = change(&mut engine, "vs", Some(written), &mut now);
    assert!(again.is_empty(), "{again:?}");

    let writes = change(&mut engine, "svc", Some(service()), &mut now);
    let [write] = &*writes else {
        panic!("{writes:?}")
    };
    assert_eq!(write.status["conditions"][0]["reason"], "Accepted");
    assert_eq!(&*write.revision, "8");
    assert!(change(&mut engine, "vs", None, &mut now).is_empty());
    assert_eq!(engine.deadline(now), None);
}

/// Returns the reports of proxies that have these revisions in effect.
fn followers(revisions: &[&str]) -> Followers {
    let table = Proxies::default();
    for (number, revision) in revisions.iter().enumerate() {
        let mut report = Report {
            name: format!("p{number}"),
            ..Report::default()
        };
        report.status.revision = Some((*revision).to_owned());
        table.report(report, Instant::now()).unwrap();
    }
    Followers::new(table.list(None))
}

#[test]
fn what_proxies_report_is_written_once() {
    let (mut engine, mut now) = (Engine::new(GatewayController::default()), Instant::now());
    engine.set_followers(followers(&["6"]));
    let writes = change(&mut engine, "vs", Some(route()), &mut now);
    assert_eq!(writes[0].status["conditions"][1]["type"], "Programmed");
    assert_eq!(writes[0].status["conditions"][1]["status"], "False");
    let mut written = route();
    written["metadata"]["resourceVersion"] = json!("8");
    written["status"] = writes[0].status.clone();
    assert!(change(&mut engine, "vs", Some(written.clone()), &mut now).is_empty());

    // The status write raises the revision of the object, which the proxy has not read yet.
    engine.set_followers(followers(&["7"]));
    now += Duration::from_secs(60);
    let writes = engine.due(now, 10, "t2");
    assert_eq!(writes[0].status["conditions"][1]["status"], "True");
    assert_eq!(
        writes[0].status["conditions"][1]["message"],
        "1 of 1 proxies"
    );
    written["metadata"]["resourceVersion"] = json!("9");
    written["status"] = writes[0].status.clone();
    assert!(change(&mut engine, "vs", Some(written.clone()), &mut now).is_empty());
    for more in [&["8"][..], &["9", "9"], &["9", "7", "7"]] {
        engine.set_followers(followers(more));
        assert_eq!(engine.deadline(now), None, "{more:?} changes nothing");
    }

    engine.set_followers(followers(&[]));
    assert_eq!(
        engine.due(now, 10, "t3")[0].status["conditions"][1]["status"],
        "Unknown"
    );
    written["spec"]["hosts"] = json!(["other.example"]);
    written["metadata"]["resourceVersion"] = json!("12");
    written["metadata"]["generation"] = json!(4);
    engine.set_followers(followers(&["11"]));
    let writes = change(&mut engine, "vs", Some(written), &mut now);
    assert_eq!(writes[0].status["conditions"][1]["reason"], "Pending");
    assert_eq!(writes[0].status["conditions"][1]["observedGeneration"], 4);
}

#[test]
fn object_rests_between_writes() {
    let (mut engine, mut now) = (Engine::new(GatewayController::default()), Instant::now());
    assert_eq!(change(&mut engine, "vs", Some(route()), &mut now).len(), 1);
    let mut wiped = route();
    wiped["metadata"]["resourceVersion"] = json!("9");
    engine.take_in(vec![("vs".into(), Some(wiped))]);
    assert!(engine.due(now, 10, "t2").is_empty());
    assert_eq!(engine.deadline(now), Some(now + WRITE_PAUSE));
    let writes = engine.due(now + WRITE_PAUSE, 10, "t2");
    assert_eq!(writes.len(), 1);
    engine.record_outcome("vs".into(), &Outcome::Failed, now);
    assert_eq!(engine.deadline(now), Some(now + RETRY_PAUSE));
}

fn gateway_object(kind: &str, name: &str, spec: Value) -> Value {
    json!({
        "apiVersion": "gateway.networking.k8s.io/v1", "kind": kind,
        "metadata": {"name": name, "namespace": "a", "generation": 2, "resourceVersion": "7"},
        "spec": spec,
    })
}

/// Returns an object after a write: with its fields of the status.
fn after(mut object: Value, write: &Write, revision: &str) -> Value {
    object["metadata"]["resourceVersion"] = json!(revision);
    for (name, value) in write.status.as_object().unwrap() {
        object["status"][name] = value.clone();
    }
    object
}

fn gateway_engine() -> Engine {
    let controller = GatewayController {
        pool: vec!["192.0.2.0/24".parse().unwrap()],
        ..GatewayController::default()
    };
    Engine::new(controller)
}

#[test]
fn entries_and_conditions_of_other_controllers_stay() {
    let (mut engine, mut now) = (gateway_engine(), Instant::now());
    let gateway = gateway_object(
        "Gateway",
        "main",
        json!({"gatewayClassName": "strait", "listeners": [{"name": "http", "port": 80, "protocol": "HTTP"}]}),
    );
    let writes = change(&mut engine, "gw", Some(gateway.clone()), &mut now);
    let status = &writes[0].status;
    assert_eq!(
        status["addresses"],
        json!([{"type": "IPAddress", "value": "192.0.2.1"}])
    );
    assert_eq!(status["attachedListenerSets"], 0);
    assert_eq!(status["listeners"][0]["attachedRoutes"], 0);
    assert_eq!(
        status["listeners"][0]["supportedKinds"],
        json!([{"group": "gateway.networking.k8s.io", "kind": "HTTPRoute"},
               {"group": "gateway.networking.k8s.io", "kind": "GRPCRoute"}])
    );
    let gateway = after(gateway, &writes[0], "8");
    assert!(change(&mut engine, "gw", Some(gateway.clone()), &mut now).is_empty());

    let theirs = json!({
        "parentRef": {"name": "main"}, "controllerName": "other.test/c",
        "conditions": [{"type": "Accepted", "status": "False", "observedGeneration": 1}],
    });
    let mut route = gateway_object(
        "HTTPRoute",
        "r",
        json!({"parentRefs": [{"name": "main"}, {"name": "theirs", "namespace": "b"}], "rules": [{}]}),
    );
    route["status"] = json!({"parents": [theirs]});
    let writes = change(&mut engine, "r", Some(route.clone()), &mut now);
    let [of_gateway, of_route] = &*writes else {
        panic!("{writes:?}")
    };
    assert_eq!(of_gateway.status["listeners"][0]["attachedRoutes"], 1);
    assert_eq!(
        of_gateway.status.as_object().unwrap().len(),
        1,
        "only what changes"
    );
    let parents = of_route.status["parents"].as_array().unwrap();
    assert_eq!(parents.len(), 2);
    assert_eq!(parents[0], theirs);
    assert_eq!(
        parents[1]["parentRef"],
        json!({"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "main"})
    );
    for condition in parents[1]["conditions"].as_array().unwrap() {
        assert_eq!(condition["observedGeneration"], 2);
    }
    let route = after(route, of_route, "9");
    let _ = change(
        &mut engine,
        "gw",
        Some(after(gateway, of_gateway, "9")),
        &mut now,
    );
    assert!(change(&mut engine, "r", Some(route.clone()), &mut now).is_empty());

    // without its Gateway the route keeps the entry of the other controller only
    let writes = change(&mut engine, "gw", None, &mut now);
    assert_eq!(writes[0].status, json!({"parents": [theirs]}));
}

#[test]
fn route_with_an_error_is_told_and_its_last_version_stays() {
    let (mut engine, mut now) = (gateway_engine(), Instant::now());
    let gateway = gateway_object(
        "Gateway",
        "main",
        json!({"gatewayClassName": "strait", "listeners": [{"name": "http", "port": 80, "protocol": "HTTP"}]}),
    );
    let _ = change(&mut engine, "gw", Some(gateway), &mut now);
    let route = |path: &str| {
        let path = json!({"type": "RegularExpression", "value": path});
        gateway_object(
            "HTTPRoute",
            "r",
            json!({"parentRefs": [{"name": "main"}], "rules": [{"matches": [{"path": path}]}]}),
        )
    };
    let writes = change(&mut engine, "r", Some(route("/a.*")), &mut now);
    let of_route = writes.iter().find(|write| write.name == "r").unwrap();
    assert_eq!(
        of_route.status["parents"][0]["conditions"][0]["status"],
        "True"
    );
    let mut wrong = after(route("/(a"), of_route, "9");
    wrong["metadata"]["generation"] = json!(3);
    let writes = change(&mut engine, "r", Some(wrong), &mut now);
    let of_route = writes.iter().find(|write| write.name == "r").unwrap();
    let accepted = &of_route.status["parents"][0]["conditions"][0];
    assert_eq!(
        (
            &accepted["status"],
            &accepted["reason"],
            &accepted["observedGeneration"]
        ),
        (&json!("False"), &json!("UnsupportedValue"), &json!(3))
    );
    assert!(
        accepted["message"].as_str().unwrap().contains("error[GA"),
        "{accepted}"
    );
}

#[test]
fn write_after_a_conflict_has_the_new_revision() {
    let (mut engine, mut now) = (gateway_engine(), Instant::now());
    let listeners = json!([{"name": "http", "port": 80, "protocol": "HTTP"}]);
    let spec = json!({"gatewayClassName": "strait", "listeners": listeners});
    let mut gateway = gateway_object("Gateway", "main", spec);
    let writes = change(&mut engine, "gw", Some(gateway.clone()), &mut now);
    let conflict = outcome(&writes[0], http::StatusCode::CONFLICT, "modified");
    engine.record_outcome("gw".into(), &conflict, now);
    assert_eq!(
        engine.deadline(now),
        None,
        "the other write arrives as a change"
    );
    gateway["metadata"]["resourceVersion"] = json!("8");
    gateway["status"] = json!({"conditions": [{"type": "Theirs", "status": "True"}]});
    let writes = change(&mut engine, "gw", Some(gateway), &mut now);
    assert_eq!((writes.len(), &*writes[0].revision), (1, "8"));
    let conditions = writes[0].status["conditions"].as_array().unwrap();
    assert_eq!(conditions[0]["type"], "Theirs");
    assert_eq!(conditions[1]["observedGeneration"], 2);
}

/// Draws an object by key, changed or removed.
fn drawn(draw: &mut impl FnMut(usize) -> usize) -> (String, Option<Value>) {
    let number = draw(3);
    let place = ["a", "b"][draw(2)];
    let of = |kind: &str, name: &str, spec: Value| gateway_object(kind, name, spec);
    let core = |kind: &str, name: &str, more: (&str, Value)| {
        json!({
            "apiVersion": "v1", "kind": kind, (more.0): more.1,
            "metadata": {"name": name, "namespace": place, "resourceVersion": "7"},
        })
    };
    let (key, object) = match draw(7) {
        0 => {
            let host = [json!("a.test"), json!("*.test")][draw(2)].clone();
            let tls = json!({"certificateRefs": [{"name": "c", "namespace": place}]});
            let from = json!({"from": "Selector", "selector": {"matchLabels": {"team": "x"}}});
            let namespaces = [json!({"from": "Same"}), from][draw(2)].clone();
            let http = json!({"name": "http", "port": 80, "protocol": "HTTP", "hostname": host});
            let https = json!({"name": "https", "port": 443, "protocol": "HTTPS", "tls": tls,
                               "allowedRoutes": {"namespaces": namespaces}});
            let spec = json!({"gatewayClassName": "strait", "listeners": [http, https]});
            (
                format!("g{number}"),
                of("Gateway", &format!("g{number}"), spec),
            )
        }
        1 => {
            let hosts = [json!([]), json!(["a.test"]), json!(["b.test"])][draw(3)].clone();
            let parent = json!({"name": format!("g{}", draw(3))});
            let to = json!({"name": "s", "namespace": place, "port": 80});
            let spec = json!({"parentRefs": [parent], "hostnames": hosts, "rules": [{"backendRefs": [to]}]});
            (
                format!("r{number}"),
                of("HTTPRoute", &format!("r{number}"), spec),
            )
        }
        2 => {
            let spec = json!({"ports": [{"port": 80 + draw(2)}]});
            (format!("s {place}"), core("Service", "s", ("spec", spec)))
        }
        3 => {
            let kinds = ["Gateway", "HTTPRoute"][draw(2)];
            let from =
                json!({"group": "gateway.networking.k8s.io", "kind": kinds, "namespace": "a"});
            let to = json!([{"group": "", "kind": "Service"}, {"group": "", "kind": "Secret"}]);
            let mut grant = of("ReferenceGrant", "g", json!({"from": [from], "to": to}));
            grant["metadata"]["namespace"] = json!("b");
            ("grant".to_owned(), grant)
        }
        4 => {
            let pem = json!("LS0tLS1CRUdJTiBh");
            let data = [
                json!({"tls.crt": pem, "tls.key": pem}),
                json!({"tls.crt": pem}),
            ][draw(2)]
            .clone();
            (format!("c {place}"), core("Secret", "c", ("data", data)))
        }
        5 => {
            let team = ["x", "y"][draw(2)];
            let labels = json!({"team": team});
            let namespace = json!({"apiVersion": "v1", "kind": "Namespace",
                                   "metadata": {"name": "a", "labels": labels, "resourceVersion": "7"}});
            ("namespace".to_owned(), namespace)
        }
        _ => {
            let controllers = ["strait.io/gateway-controller", "other.test/c"];
            let class = of(
                "GatewayClass",
                "strait",
                json!({"controllerName": controllers[draw(2)]}),
            );
            ("class".to_owned(), class)
        }
    };
    (key, (draw(4) != 0).then_some(object))
}

#[test]
fn random_changes_end_in_the_status_of_a_fresh_start() {
    let mut seed = 7_u64;
    let mut draw = move |below: usize| {
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(seed >> 33).unwrap() % below
    };
    let mut world = World {
        engine: gateway_engine(),
        now: Instant::now(),
        objects: BTreeMap::new(),
        revision: 10,
    };
    let mut judged = 0;
    for step in 0..400 {
        let (key, object) = drawn(&mut draw);
        if key == "class" {
            // its controller is immutable: another one is another object
            world.put(&key, None);
        }
        world.put(&key, object);
        if step % 10 == 9 {
            let mut fresh = gateway_engine();
            let all = world.objects.iter();
            let all = all.map(|(key, object)| (Arc::from(key.as_str()), Some(object.clone())));
            fresh.take_in(all.collect());
            let later = world.now + Duration::from_secs(60);
            fresh.refresh_findings(later);
            let writes = fresh.due(later, 100, "t");
            assert!(writes.is_empty(), "step {step}: {writes:#?}");
            let objects = world.objects.values();
            judged += objects.filter(|one| one["status"].is_object()).count();
        }
    }
    assert!(judged > 100, "{judged}");
}

/// Objects of a server, with the statuses that an engine writes.
struct World {
    engine: Engine,
    now: Instant,
    objects: BTreeMap<String, Value>,
    revision: u32,
}

impl World {
    /// Changes an object, and takes in the writes that follow until there are none.
    fn put(&mut self, key: &str, object: Option<Value>) {
        let before = self.objects.remove(key);
        if let Some(mut object) = object {
            if let Some(before) = before {
                object["status"] = before["status"].clone();
            }
            self.objects.insert(key.to_owned(), object);
        }
        let mut changed = vec![key.to_owned()];
        while !changed.is_empty() {
            let batch = changed.iter();
            let batch = batch.map(|key| (Arc::from(key.as_str()), self.objects.get(key).cloned()));
            self.engine.take_in(batch.collect());
            self.now += Duration::from_secs(60);
            self.engine.refresh_findings(self.now);
            let writes = self.engine.due(self.now, 100, "t");
            for write in &writes {
                self.revision += 1;
                let object = self.objects.get_mut(&*write.key).unwrap();
                *object = after(object.take(), write, &self.revision.to_string());
            }
            changed = writes.iter().map(|write| write.key.to_string()).collect();
        }
    }
}
