use super::*;

const LIFETIME: Duration = Duration::from_secs(10);

fn visit(client: u64, millis: u64) -> Visit {
    Visit {
        client,
        at: Moment(millis),
    }
}

fn endpoint(id: u64) -> PinNumber {
    PinNumber::of(id).unwrap()
}

/// A client of the first set, with this tag.
fn client(tag: u64) -> u64 {
    tag << (u64::BITS - TAG_BITS)
}

fn held(pins: &Pins, client: u64, millis: u64) -> Option<PinNumber> {
    pins.find(visit(client, millis), LIFETIME)
        .map(Pin::endpoint)
}

fn put(pins: &Pins, client: u64, millis: u64, id: u64) {
    let visit = visit(client, millis);
    pins.put(visit, LIFETIME, endpoint(id), pins.find(visit, LIFETIME));
}

#[test]
fn pin_holds_for_its_lifetime_and_a_second_longer_at_most() {
    // the second of its last use begins anew in the midst of the last row
    for start in [1, 999, 5_500, (SECONDS - 3) * 1000 + 1] {
        let pins = Pins::default();
        assert_eq!(held(&pins, 7, start), None);
        put(&pins, 7, start, 3);
        for (after, holds) in [(0, true), (10_000, true), (11_000, false), (60_000, false)] {
            let found = held(&pins, 7, start + after).is_some();
            assert_eq!(found, holds, "{after} ms after {start}");
        }
        assert_eq!(held(&pins, 8, start), None, "of another client");
    }
}

#[test]
fn every_visit_begins_the_lifetime_anew() {
    let pins = Pins::default();
    put(&pins, 7, 1_000, 3);
    for at in (1..20).map(|number| number * 9_000) {
        let pin = pins.find(visit(7, at), LIFETIME).expect("it is in force");
        assert_eq!(pin.endpoint(), endpoint(3));
        pins.renew(visit(7, at), pin);
        assert_eq!(
            pins.left(visit(7, at + 4_000), LIFETIME, pin),
            Duration::ZERO
        );
        let now = pins.find(visit(7, at + 4_000), LIFETIME).unwrap();
        let left = pins.left(visit(7, at + 4_000), LIFETIME, now);
        assert_eq!(left, Duration::from_secs(6));
    }
    assert_eq!(held(&pins, 7, 19 * 9_000 + 11_000), None);
}

#[test]
fn another_lifetime_counts_for_pins_that_are_there() {
    let pins = Pins::default();
    put(&pins, 7, 1_000, 3);
    let at = visit(7, 61_000);
    assert!(pins.find(at, Duration::from_secs(60)).is_some());
    assert!(pins.find(at, Duration::from_secs(59)).is_none());
}

#[test]
fn a_request_that_began_before_others_finds_their_pin_and_leaves_it_as_young() {
    let pins = Pins::default();
    put(&pins, 7, 60_000, 3);
    let late = visit(7, 50_000);
    let pin = pins.find(late, LIFETIME).expect("it is in force");
    pins.renew(late, pin);
    assert!(held(&pins, 7, 70_000).is_some());
}

#[test]
fn of_two_that_move_a_client_the_first_has_its_way() {
    let pins = Pins::default();
    put(&pins, 7, 1_000, 3);
    let now = visit(7, 2_000);
    let found = pins.find(now, LIFETIME);
    pins.put(now, LIFETIME, endpoint(4), found);
    pins.put(now, LIFETIME, endpoint(5), found);
    assert_eq!(held(&pins, 7, 2_000), Some(endpoint(4)));
    // as well where there was none before
    pins.put(visit(9, 2_000), LIFETIME, endpoint(4), None);
    pins.put(visit(9, 2_000), LIFETIME, endpoint(5), None);
    assert_eq!(held(&pins, 9, 2_000), Some(endpoint(4)));
    assert_eq!(pins.count(Moment(2_000), LIFETIME), 2);
}

#[test]
fn in_a_full_set_the_pin_goes_that_was_not_used_for_longest() {
    let pins = Pins::default();
    let ways = WAYS as u64;
    for tag in 1..=ways {
        put(&pins, client(tag), 1_000 * tag, tag);
    }
    // the first one is used again, so that the second is the oldest
    let now = visit(client(1), 9_000);
    pins.renew(now, pins.find(now, LIFETIME).unwrap());
    put(&pins, client(ways + 1), 9_000, 99);
    for tag in 1..=ways {
        let expected = (tag != 2).then(|| endpoint(tag));
        assert_eq!(held(&pins, client(tag), 9_000), expected, "{tag}");
    }
    assert_eq!(held(&pins, client(ways + 1), 9_000), Some(endpoint(99)));
    assert_eq!(pins.count(Moment(9_000), LIFETIME), WAYS);
}

#[test]
fn table_never_holds_more_than_its_bound() {
    let pins = Pins::default();
    let clients = (0..2 * PINS_MAX as u64).map(|client| client.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    for client in clients {
        put(&pins, client, 1_000, 1);
    }
    let count = pins.count(Moment(1_000), LIFETIME);
    assert!(count <= PINS_MAX && count > PINS_MAX * 9 / 10, "{count}");
}

#[test]
fn numbers_are_those_of_one_endpoint_each() {
    let last = (1 << NUMBER_BITS) - 2;
    for (id, has_one) in [
        (0, true),
        (last, true),
        (last + 1, false),
        (1 << 32, false),
        (u64::MAX, false),
    ] {
        let number = PinNumber::of(id);
        assert_eq!(number.is_some(), has_one, "{id}");
        if let Some(number) = number {
            let pins = Pins::default();
            pins.put(visit(u64::MAX, 1_000), LIFETIME, number, None);
            assert_eq!(held(&pins, u64::MAX, 1_000), Some(number));
        }
    }
    assert_ne!(PinNumber::of(0), PinNumber::of(1));
}
