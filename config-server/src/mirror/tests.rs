//! The mirror answers as the embedded store does after the same changes.

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

use super::*;
use crate::store::embedded::EmbeddedStore;

fn mirror(start: Revision, limits: HistoryLimits) -> MirrorStore {
    MirrorStore {
        objects: Arc::new(Objects::new(limits, start)),
        secrets: None,
        is_complete: watch::Sender::new(true),
    }
}

/// Changes the key in both stores; the embedded one has revision 1 at first.
async fn change(mirror: &MirrorStore, embedded: &EmbeddedStore, key: &str, value: Option<Bytes>) {
    let (before, _) = embedded.get(key).await.unwrap();
    if before.as_ref().map(|entry| &entry.value) != value.as_ref() {
        let expected = before.map_or(Expected::Absent, |entry| Expected::At(entry.revision));
        let written = embedded.write(key.to_owned(), expected, value.clone());
        assert!(matches!(written.await, Ok(Written::Done(_))));
    }
    mirror.objects.apply([(key.into(), value)]);
}

#[tokio::test]
async fn reads_are_those_of_the_embedded_store_after_the_same_changes() {
    let limits = HistoryLimits {
        events: 40,
        bytes: 1 << 20,
    };
    for seed in 0..8 {
        let mut rng = SmallRng::seed_from_u64(seed);
        let directory = tempfile::tempdir().unwrap();
        let embedded = EmbeddedStore::open(&directory.path().join("store.redb"), limits).unwrap();
        let mirror = mirror(1, limits);
        for _ in 0..80 {
            let key = format!(
                "/core/services/{}/{}",
                rng.random_range(0..3),
                rng.random_range(0..4)
            );
            let text = rng.random_range(0..4).to_string();
            let value = rng.random_bool(0.7).then(|| Bytes::from(text));
            change(&mirror, &embedded, &key, value).await;
        }
        let latest = embedded.latest().await.unwrap();
        assert_eq!(mirror.latest().await, Ok(latest));
        assert_eq!(mirror.history().floor(), embedded.history().floor());
        for at in 0..=latest + 1 {
            let since = |store: &dyn Store| store.history().since(at, 1_000);
            assert_eq!(since(&mirror), since(&embedded), "seed {seed}, after {at}");
            for (prefix, after, limit) in [
                ("/", None, None),
                ("/core/services/1/", None, Some(2)),
                ("/core/services/", Some("/core/services/1/2"), Some(3)),
                ("/core/secrets/", None, None),
            ] {
                for at in [Some(at), None] {
                    let scan = Scan {
                        prefix: prefix.to_owned(),
                        after: after.map(str::to_owned),
                        limit,
                        at,
                    };
                    let pages = (mirror.scan(scan.clone()).await, embedded.scan(scan).await);
                    let parts = |page: Result<Page, StoreError>| {
                        page.map(|page| (page.revision, page.entries, page.remaining))
                    };
                    assert_eq!(parts(pages.0), parts(pages.1), "seed {seed}, at {at:?}");
                }
            }
        }
        for key in ["/core/services/0/0", "/core/services/2/3", "/x"] {
            assert_eq!(mirror.get(key).await, embedded.get(key).await);
        }
    }
}

#[tokio::test]
async fn nothing_is_read_before_the_end_of_the_list_and_nothing_is_written() {
    let mirror = mirror(7, HistoryLimits::default());
    mirror.is_complete.send_replace(false);
    mirror
        .objects
        .apply([("/core/services/a/b".into(), Some(Bytes::from("{}")))]);
    let refused = Err(StoreError::Failed(NOT_LISTED.to_owned()));
    assert_eq!(mirror.latest().await, refused);
    assert!(mirror.get("/core/services/a/b").await.is_err());
    assert!(mirror.scan(Scan::default()).await.is_err());
    mirror.complete();
    assert_eq!(mirror.latest().await, Ok(8));
    let write = mirror.write("/x".to_owned(), Expected::Absent, None).await;
    assert!(write.is_err() && mirror.is_read_only());
}

#[test]
fn list_of_a_namespace_replaces_its_objects_alone() {
    let objects = Objects::new(HistoryLimits::default(), 1);
    let value = |text: &'static str| Bytes::from_static(text.as_bytes());
    for key in ["/s/a/1", "/s/a/2", "/s/b/1"] {
        objects.apply([(key.into(), Some(value("old")))]);
    }
    let list = [
        ("/s/a/2".into(), value("old")),
        ("/s/a/3".into(), value("new")),
    ];
    objects.replace("/s/a/", list.into());
    let page = objects.scan(&Scan::default()).unwrap();
    let keys: Vec<&str> = page.entries.iter().map(|entry| &*entry.key).collect();
    assert_eq!(keys, ["/s/a/2", "/s/a/3", "/s/b/1"]);
    assert_eq!(page.revision, 6, "what is equal is no change");
}

#[test]
fn documents_have_the_keys_of_their_objects() {
    let key = |document| key_of("kubernetes://a/b", document).map(|key| key.to_string());
    for (document, expected) in [
        (
            "kubernetes://a/b/prod/services/web",
            Some("/core/services/prod/web"),
        ),
        (
            "kubernetes://a/b/prod/gateways.gateway.networking.k8s.io/edge",
            Some("/gateway.networking.k8s.io/gateways/prod/edge"),
        ),
        (
            "kubernetes://a/b/gatewayclasses.gateway.networking.k8s.io/strait",
            Some("/gateway.networking.k8s.io/gatewayclasses/strait"),
        ),
        (
            "kubernetes://a/b/prod/pods/web-1",
            Some("/core/pods/prod/web-1"),
        ),
        ("kubernetes://a/b/nodes/n1", Some("/core/nodes/n1")),
        ("kubernetes://other/prod/services/web", None),
        ("kubernetes://a/b/prod/unknown/web", None),
    ] {
        assert_eq!(key(document).as_deref(), expected, "{document}");
    }
}

#[test]
fn pod_is_kept_while_an_endpoint_can_have_it() {
    let has = |status: Value| {
        let pod = serde_json::json!({"metadata": {"name": "web-1"}, "status": status});
        value_of(pod.to_string().as_bytes(), true).is_some()
    };
    assert!(!has(serde_json::json!({"phase": "Pending"})));
    assert!(has(
        serde_json::json!({"phase": "Running", "podIP": "10.0.0.1"})
    ));
    assert!(!has(
        serde_json::json!({"phase": "Succeeded", "podIP": "10.0.0.1"})
    ));
}

#[test]
fn revisions_of_two_starts_differ() {
    let (earlier, later) = (
        start_of(1_800_000_000, u64::MAX),
        start_of(1_800_000_001, 0),
    );
    assert!(earlier + (1 << 20) <= later);
    assert_ne!(start_of(1_800_000_000, 1), start_of(1_800_000_000, 2));
    assert!(i64::try_from(start_of(u64::from(u32::MAX), 0x7ff)).is_ok());
}
