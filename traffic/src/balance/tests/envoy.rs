//! Endpoints of keys as picked by Envoy; `testdata/envoy_picks` describes the recording.

use serde::Deserialize;

use super::super::hash::{Host, xx_hash};
use super::super::{EndpointIdx, HashAlgorithm, HashTable};

#[derive(Deserialize)]
struct Recorded {
    keys: usize,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    algorithm: String,
    size: u64,
    weights: String,
    endpoints: u32,
    picks: Vec<u32>,
}

impl Case {
    fn algorithm(&self) -> HashAlgorithm {
        match &*self.algorithm {
            "ring_hash" => HashAlgorithm::RingHash {
                size_min: self.size,
            },
            "maglev" => HashAlgorithm::Maglev { size: self.size },
            other => panic!("{other} is not an algorithm"),
        }
    }

    fn weight(&self, number: u32) -> f64 {
        f64::from(match &*self.weights {
            "equal" => 1,
            "rising" => 1 + number % 5,
            "steep" if number.is_multiple_of(3) => 100,
            "steep" => 1,
            other => panic!("{other} are not weights"),
        })
    }
}

fn address(number: u32) -> String {
    let (third, fourth) = (number / 250, number % 250 + 1);
    format!("127.66.{third}.{fourth}:{}", 9 + number % 7)
}

#[test]
fn keys_pick_the_same_endpoints_as_envoy() {
    let text = include_str!("../../../testdata/envoy_picks/picks.json");
    let recorded: Recorded = serde_json::from_str(text).unwrap();
    assert!(recorded.cases.len() > 100);
    for case in &recorded.cases {
        let addresses: Vec<String> = (0..case.endpoints).map(address).collect();
        let hosts: Vec<_> = (0..case.endpoints)
            .zip(&addresses)
            .map(|(number, key)| {
                let weight = case.weight(number);
                (EndpointIdx(number), Host { key, weight })
            })
            .collect();
        let table = HashTable::build(case.algorithm(), &hosts).unwrap();
        let picks: Vec<u32> = (0..recorded.keys)
            .map(|key| {
                let hash = xx_hash(format!("key-{key}").as_bytes());
                table.pick(hash, 0, |_| true).unwrap().0
            })
            .collect();
        let of = format!(
            "{} {} {} {}",
            case.algorithm, case.size, case.weights, case.endpoints
        );
        assert_eq!(picks, case.picks, "{of}");
        let shares: f64 = table.shares().values().sum();
        assert!((shares - 1.0).abs() < 1e-6, "{of}: {shares}");
    }
}
