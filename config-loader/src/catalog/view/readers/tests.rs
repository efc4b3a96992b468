//! The index finds the parts that a scan of all reads finds.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use crate::catalog::{Read, Tape};
use crate::kind::Kind;

const HOSTS: [&str; 4] = ["a.test", "b.test", "*.test", "*"];

/// Adds a read of an object or of a host.
fn record(tape: &Tape, number: usize) {
    match HOSTS.get(number) {
        Some(host) => tape.read_host("hosts", host, 0),
        None => tape.read(Read::Object(Kind::Service, "ns", &number.to_string()), 0),
    }
}

fn change(changed: &[usize]) -> Changes {
    let (mut changes, why) = (Changes::default(), "why".into());
    for number in changed {
        match HOSTS.get(*number) {
            Some(host) => changes.add_host("hosts", host, &why),
            None => changes.add(Read::Object(Kind::Service, "ns", &number.to_string()), &why),
        }
    }
    changes
}

proptest! {
    #[test]
    fn index_agrees_with_a_scan_of_all_reads(
        parts in prop::collection::vec((0..6_u8, prop::option::weighted(0.8, prop::collection::vec(0..9_usize, 0..5))), 0..20),
        changed in prop::collection::vec(0..9_usize, 0..4),
    ) {
        let mut readers = Readers::default();
        for (part, reads) in parts {
            let tape = Tape::default();
            match reads {
                Some(reads) => {
                    let record = || reads.iter().for_each(|number| record(&tape, *number));
                    readers.insert(part, tape.part(record).1);
                }
                None => readers.remove(&part),
            }
        }
        let changes = change(&changed);
        let scan = readers.by_part.iter();
        let scan = scan.filter(|(_, reads)| changes.cause_for(reads).is_some());
        let scan: BTreeSet<u8> = scan.map(|(part, _)| *part).collect();
        let touched: BTreeSet<u8> = readers.touched(&changes).into_keys().collect();
        prop_assert_eq!(touched, scan);
        let keys: usize = readers.by_part.values().map(|reads| reads.keys.len()).sum();
        prop_assert_eq!(readers.by_key.len(), keys);
    }
}
