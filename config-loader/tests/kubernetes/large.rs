//! Lists of a namespace with many objects.

use std::time::Instant;

use futures_util::StreamExt;
use kube::api::PostParams;
use serde_json::json;

use crate::cluster::Cluster;
use crate::followed::Followed;

/// Number of objects in the namespace: more than two pages of a list. `STRAIT_TEST_OBJECTS` overrides it.
const OBJECTS: usize = 1_200;

#[tokio::test]
async fn namespace_with_many_objects_is_listed_in_pages() {
    let Some(cluster) = Cluster::shared().await else {
        return;
    };
    let wanted = std::env::var("STRAIT_TEST_OBJECTS").ok();
    let count = wanted.map_or(OBJECTS, |count| count.parse().unwrap());
    let object = |number: usize| {
        cluster.placed(&json!({
            "apiVersion": "networking.istio.io/v1", "kind": "VirtualService", "metadata": {"name": format!("web-{number}")},
            "spec": {"hosts": [format!("web-{number}.example")], "http": [{"route": [{"destination": {"host": "web"}}]}]},
        }))
    };
    let api = cluster.api(&object(0));
    let start = Instant::now();
    let created = futures_util::stream::iter(0..count).map(|number| {
        let (api, object) = (&api, object(number));
        async move {
            let object = serde_json::from_value(object).unwrap();
            api.create(&PostParams::default(), &object).await.unwrap();
        }
    });
    created.buffer_unordered(16).collect::<()>().await;
    eprintln!("{count} objects created in {:?}", start.elapsed());

    let (start, before) = (Instant::now(), resident_kib());
    let followed = Followed::ready(cluster.settings()).await;
    assert_eq!(followed.set().virtual_services.len(), count);
    eprintln!(
        "{count} objects listed in {:?}, with {} KiB",
        start.elapsed(),
        resident_kib().saturating_sub(before)
    );
    let changed = object(count / 2);
    let start = Instant::now();
    let mut other = changed.clone();
    other["spec"]["hosts"] = json!(["another.example"]);
    cluster.change(&other).await;
    followed.until_says("another.example").await;
    eprintln!(
        "a change among {count} objects was seen after {:?}",
        start.elapsed()
    );
}

/// Returns the resident memory of this process, in KiB.
fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.unwrap()
        .split_whitespace()
        .next()
        .unwrap()
        .parse()
        .unwrap()
}
