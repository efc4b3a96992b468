use super::*;

const LIFETIME: Duration = Duration::from_secs(10);

fn visit(client: u64, millis: u64) -> Visit {
    Visit {
        client,
        at: Moment(millis),
    }
}

fn endpoint(id: u64) -> EndpointNumber {
    EndpointNumber::of(id).unwrap()
}

/// A client of the first set, with this tag.
fn client(tag: u64) -> u64 {
    tag << (u64::BITS - TAG_BITS)
}

fn held(affinity_table: &AffinityTable, client: u64, millis: u64) -> Option<EndpointNumber> {
    affinity_table
        .find(visit(client, millis), LIFETIME)
        .map(AffinityEntry::endpoint)
}

fn put(affinity_table: &AffinityTable, client: u64, millis: u64, id: u64) {
    let visit = visit(client, millis);
    affinity_table.put(
        visit,
        LIFETIME,
        endpoint(id),
        affinity_table.find(visit, LIFETIME),
    );
}

#[test]
fn entry_lasts_its_lifetime_and_at_most_one_second_longer() {
    // the second of its last use starts again in the midst of the last row
    for start in [1, 999, 5_500, (SECONDS - 3) * 1000 + 1] {
        let affinity_table = AffinityTable::default();
        assert_eq!(held(&affinity_table, 7, start), None);
        put(&affinity_table, 7, start, 3);
        for (after, holds) in [(0, true), (10_000, true), (11_000, false), (60_000, false)] {
            let found = held(&affinity_table, 7, start + after).is_some();
            assert_eq!(found, holds, "{after} ms after {start}");
        }
        assert_eq!(held(&affinity_table, 8, start), None, "of another client");
    }
}

#[test]
fn every_request_renews_the_lifetime() {
    let affinity_table = AffinityTable::default();
    put(&affinity_table, 7, 1_000, 3);
    for at in (1..20).map(|number| number * 9_000) {
        let entry = affinity_table
            .find(visit(7, at), LIFETIME)
            .expect("it is in effect");
        assert_eq!(entry.endpoint(), endpoint(3));
        affinity_table.renew(visit(7, at), entry);
        assert_eq!(
            affinity_table.left(visit(7, at + 4_000), LIFETIME, entry),
            Duration::ZERO
        );
        let now = affinity_table.find(visit(7, at + 4_000), LIFETIME).unwrap();
        let left = affinity_table.left(visit(7, at + 4_000), LIFETIME, now);
        assert_eq!(left, Duration::from_secs(6));
    }
    assert_eq!(held(&affinity_table, 7, 19 * 9_000 + 11_000), None);
}

#[test]
fn changed_lifetime_applies_to_existing_entries() {
    let affinity_table = AffinityTable::default();
    put(&affinity_table, 7, 1_000, 3);
    let at = visit(7, 61_000);
    assert!(affinity_table.find(at, Duration::from_secs(60)).is_some());
    assert!(affinity_table.find(at, Duration::from_secs(59)).is_none());
}

#[test]
fn older_request_does_not_shorten_a_newer_entry() {
    let affinity_table = AffinityTable::default();
    put(&affinity_table, 7, 60_000, 3);
    let late = visit(7, 50_000);
    let entry = affinity_table
        .find(late, LIFETIME)
        .expect("it is in effect");
    affinity_table.renew(late, entry);
    assert!(held(&affinity_table, 7, 70_000).is_some());
}

#[test]
fn first_of_two_moves_of_a_client_wins() {
    let affinity_table = AffinityTable::default();
    put(&affinity_table, 7, 1_000, 3);
    let now = visit(7, 2_000);
    let found = affinity_table.find(now, LIFETIME);
    affinity_table.put(now, LIFETIME, endpoint(4), found);
    affinity_table.put(now, LIFETIME, endpoint(5), found);
    assert_eq!(held(&affinity_table, 7, 2_000), Some(endpoint(4)));
    // as well where there was none before
    affinity_table.put(visit(9, 2_000), LIFETIME, endpoint(4), None);
    affinity_table.put(visit(9, 2_000), LIFETIME, endpoint(5), None);
    assert_eq!(held(&affinity_table, 9, 2_000), Some(endpoint(4)));
    assert_eq!(affinity_table.count(Moment(2_000), LIFETIME), 2);
}

#[test]
fn full_set_evicts_the_least_recently_used_entry() {
    let affinity_table = AffinityTable::default();
    let ways = WAYS as u64;
    for tag in 1..=ways {
        put(&affinity_table, client(tag), 1_000 * tag, tag);
    }
    // the first one is used again, so that the second is the oldest
    let now = visit(client(1), 9_000);
    affinity_table.renew(now, affinity_table.find(now, LIFETIME).unwrap());
    put(&affinity_table, client(ways + 1), 9_000, 99);
    for tag in 1..=ways {
        let expected = (tag != 2).then(|| endpoint(tag));
        assert_eq!(held(&affinity_table, client(tag), 9_000), expected, "{tag}");
    }
    assert_eq!(
        held(&affinity_table, client(ways + 1), 9_000),
        Some(endpoint(99))
    );
    assert_eq!(affinity_table.count(Moment(9_000), LIFETIME), WAYS);
}

#[test]
fn table_never_exceeds_its_capacity() {
    let affinity_table = AffinityTable::default();
    let clients = (0..2 * AFFINITY_ENTRIES_MAX as u64)
        .map(|client| client.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    for client in clients {
        put(&affinity_table, client, 1_000, 1);
    }
    let count = affinity_table.count(Moment(1_000), LIFETIME);
    assert!(
        count <= AFFINITY_ENTRIES_MAX && count > AFFINITY_ENTRIES_MAX * 9 / 10,
        "{count}"
    );
}

#[test]
fn each_endpoint_has_its_own_number() {
    let last = (1 << NUMBER_BITS) - 2;
    for (id, has_one) in [
        (0, true),
        (last, true),
        (last + 1, false),
        (1 << 32, false),
        (u64::MAX, false),
    ] {
        let number = EndpointNumber::of(id);
        assert_eq!(number.is_some(), has_one, "{id}");
        if let Some(number) = number {
            let affinity_table = AffinityTable::default();
            affinity_table.put(visit(u64::MAX, 1_000), LIFETIME, number, None);
            assert_eq!(held(&affinity_table, u64::MAX, 1_000), Some(number));
        }
    }
    assert_ne!(EndpointNumber::of(0), EndpointNumber::of(1));
}
