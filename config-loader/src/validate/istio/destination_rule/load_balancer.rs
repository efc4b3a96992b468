//! `loadBalancer`: selection of one endpoint.

use std::collections::HashMap;
use std::sync::Arc;

use super::locality;
use crate::diagnostic::codes::common::CM019;
use crate::diagnostic::codes::istio::{
    DR151, DR152, DR153, DR154, DR155, DR156, DR157, DR158, DR159, DR160, DR161, DR174, DR175,
    DR176, DR301, DR302, DR303, DR305, DR307,
};
use crate::raw::{self, Field};
use crate::resource::istio::{
    Aggression, Algorithm, ConsistentHash, CookieAttribute, HashAlgorithm, HashKey, LoadBalancer,
    Warmup,
};
use crate::span::Span;
use crate::validate::istio::shared;
use crate::validate::{Check, scalar};

/// Largest size of a hash ring.
const RING_SIZE_MAX: u32 = 8_388_608;

const SIMPLE: [(&str, Algorithm); 6] = [
    ("UNSPECIFIED", Algorithm::Unsaid),
    ("LEAST_CONN", Algorithm::LeastRequest),
    ("LEAST_REQUEST", Algorithm::LeastRequest),
    ("PASSTHROUGH", Algorithm::Passthrough),
    ("RANDOM", Algorithm::Random),
    ("ROUND_ROBIN", Algorithm::RoundRobin),
];

/// Returns the load balancer settings. `outliers` tells whether endpoints can be ejected.
pub(super) fn load_balancer(
    field: &Field<raw::istio::LoadBalancerSettings>,
    outliers: bool,
    check: &mut Check<'_>,
) -> Option<LoadBalancer> {
    let raw = field.get()?;
    shared::exclude(
        [
            ("simple", shared::text_span(&raw.simple)),
            ("consistentHash", shared::block(&raw.consistent_hash)),
        ],
        DR151,
        "keep the one that is meant",
        check,
    );
    shared::exclude(
        [
            ("localityLbSetting", shared::block(&raw.locality_lb_setting)),
            (
                "zoneAwareLbSetting",
                shared::block(&raw.zone_aware_lb_setting),
            ),
        ],
        DR161,
        "keep one locality setting",
        check,
    );
    let simple = simple(&raw.simple, check);
    let hash = consistent_hash(&raw.consistent_hash, check);
    Some(LoadBalancer {
        algorithm: hash.map_or(simple, |hash| Algorithm::ConsistentHash(Box::new(hash))),
        locality: locality::locality_setting(&raw.locality_lb_setting, outliers, check)
            .map(Box::new),
        zone_aware: locality::zone_aware_setting(&raw.zone_aware_lb_setting, outliers, check)
            .map(Box::new),
        warmup: warmup(raw, check),
        line: check.line(field.span()),
    })
}

fn simple(field: &Field<String>, check: &mut Check<'_>) -> Algorithm {
    if field.get().is_some_and(|name| name == "LEAST_CONN") {
        check
            .warning(DR302, field.span(), "LEAST_CONN is deprecated")
            .help("write `LEAST_REQUEST`, which is the same");
    }
    let index: Vec<(&str, usize)> = SIMPLE
        .iter()
        .enumerate()
        .map(|(index, (name, _))| (*name, index))
        .collect();
    let found = scalar::enum_of(field, &index, check);
    found.map_or(Algorithm::default(), |index| SIMPLE[index].1.clone())
}

fn consistent_hash(
    field: &Field<raw::istio::ConsistentHash>,
    check: &mut Check<'_>,
) -> Option<ConsistentHash> {
    let raw = field.get()?;
    let source_ip = if shared::flag(&raw.use_source_ip) {
        raw.use_source_ip.span()
    } else {
        Span::NONE
    };
    let keys = [
        ("httpHeaderName", shared::text_span(&raw.http_header_name)),
        ("httpCookie", shared::block(&raw.http_cookie)),
        ("useSourceIp", source_ip),
        (
            "httpQueryParameterName",
            shared::text_span(&raw.http_query_parameter_name),
        ),
    ];
    scalar::at_most_one(&keys, DR152, check);
    if keys.iter().all(|(_, span)| span.is_none()) {
        check
            .error(DR152, field.span(), "consistentHash needs one key")
            .help("write `httpHeaderName`, `httpCookie`, `useSourceIp: true` or `httpQueryParameterName`");
    }
    let algorithm = hash_algorithm(raw, check);
    let key = cookie(&raw.http_cookie, check)
        .or_else(|| {
            shared::text(&raw.http_header_name)
                .map(|name| HashKey::Header(Arc::from(name.to_ascii_lowercase())))
        })
        .or_else(|| shared::text_arc(&raw.http_query_parameter_name).map(HashKey::QueryParameter))
        .unwrap_or(HashKey::SourceIp);
    Some(ConsistentHash {
        key,
        algorithm,
        line: check.line(field.span()),
    })
}

fn cookie(field: &Field<raw::istio::HttpCookie>, check: &mut Check<'_>) -> Option<HashKey> {
    let raw = field.get()?;
    if shared::text(&raw.name).is_none() && !raw.name.is_invalid() {
        check
            .error(
                DR153,
                shared::location(&raw.name, field.span()),
                "cookie without name",
            )
            .help("write `name`");
    }
    let mut names: HashMap<String, Span> = HashMap::new();
    let mut attributes = Vec::new();
    for (entry, raw) in scalar::items(&raw.attributes, check) {
        let span = shared::location(&raw.name, entry.span());
        let name = shared::text(&raw.name).unwrap_or("");
        if name.is_empty() {
            check
                .error(DR154, span, "cookie attribute without name")
                .help("write for example `{name: SameSite, value: Lax}`");
        } else if let Some(first) = names.insert(name.to_ascii_lowercase(), span) {
            let location = check.location(first);
            check
                .error(
                    DR155,
                    span,
                    format!("cookie attribute `{name}` is given twice"),
                )
                .help("remove one of the two")
                .related(location, "first given here");
        }
        attributes.push(CookieAttribute {
            name: Arc::from(name),
            value: shared::text_or_empty(&raw.value),
        });
    }
    Some(HashKey::Cookie {
        name: shared::text_or_empty(&raw.name),
        path: shared::text_arc(&raw.path),
        ttl: scalar::duration_or_zero(&raw.ttl, check),
        attributes,
    })
}

fn hash_algorithm(raw: &raw::istio::ConsistentHash, check: &mut Check<'_>) -> HashAlgorithm {
    let ring = ("ringHash", shared::block(&raw.ring_hash));
    let maglev = ("maglev", shared::block(&raw.maglev));
    scalar::at_most_one(&[ring, maglev], CM019, check);
    let old = ("minimumRingSize", shared::block(&raw.minimum_ring_size));
    let help = "`minimumRingSize` beside the key is the old form: write it under `ringHash`";
    let clash = shared::exclude([old, ring], DR156, help, check)
        || shared::exclude([old, maglev], DR156, help, check);
    if !old.1.is_none() && !clash {
        check
            .warning(DR157, old.1, "minimumRingSize beside the key is deprecated")
            .help("write `ringHash: {minimumRingSize: ...}`");
    }
    let old = ring_size(&raw.minimum_ring_size, check);
    if let Some(maglev) = raw.maglev.get() {
        return HashAlgorithm::Maglev {
            table_size: table_size(&maglev.table_size, check),
        };
    }
    let size = raw
        .ring_hash
        .get()
        .and_then(|ring| ring_size(&ring.minimum_ring_size, check));
    HashAlgorithm::RingHash {
        ring_size_min: size.or(old).unwrap_or(HashAlgorithm::RING_SIZE_MIN_DEFAULT),
    }
}

/// Returns the size of a hash ring; `None` if it is missing or 0, which counts as missing.
fn ring_size(field: &Field<i64>, check: &mut Check<'_>) -> Option<u64> {
    let size = scalar::non_negative(field, "minimumRingSize", DR305, check)?;
    if size > RING_SIZE_MAX {
        check
            .error(
                DR307,
                field.span(),
                format!("minimumRingSize {size} is too large"),
            )
            .help(format!("the largest is {RING_SIZE_MAX}"));
    }
    Some(u64::from(size)).filter(|size| *size > 0)
}

fn table_size(field: &Field<i64>, check: &mut Check<'_>) -> u64 {
    let Some(written) = field.get().copied() else {
        return HashAlgorithm::TABLE_SIZE_DEFAULT;
    };
    let size = u64::try_from(written).unwrap_or(0);
    let default = format!("leave it out for {}", HashAlgorithm::TABLE_SIZE_DEFAULT);
    if size == 0 {
        check
            .error(DR158, field.span(), "maglev needs a tableSize above 0")
            .help(default);
    } else if size >= HashAlgorithm::TABLE_SIZE_LIMIT {
        let help = format!("it must be below {}", HashAlgorithm::TABLE_SIZE_LIMIT);
        check
            .error(
                DR159,
                field.span(),
                format!("tableSize {size} is too large"),
            )
            .help(help);
    } else if !is_prime(size) || size < 3 {
        check
            .error(
                DR160,
                field.span(),
                format!("tableSize {size} is not a prime of at least 3"),
            )
            .help(format!("write {}, or {default}", near_prime(size)));
    }
    size
}

/// Returns the smallest prime that is not below `size` and within the limit, else the largest prime below `size`.
fn near_prime(size: u64) -> u64 {
    let larger = (size.max(3)..HashAlgorithm::TABLE_SIZE_LIMIT).find(|one| is_prime(*one));
    let mut smaller = (3..size).rev();
    larger
        .or_else(|| smaller.find(|one| is_prime(*one)))
        .unwrap_or(HashAlgorithm::TABLE_SIZE_DEFAULT)
}

fn is_prime(number: u64) -> bool {
    number > 1
        && (2..)
            .take_while(|factor| factor * factor <= number)
            .all(|factor| !number.is_multiple_of(factor))
}

fn warmup(raw: &raw::istio::LoadBalancerSettings, check: &mut Check<'_>) -> Option<Warmup> {
    let old = (
        "warmupDurationSecs",
        shared::text_span(&raw.warmup_duration_secs),
    );
    let new = ("warmup", shared::block(&raw.warmup));
    if !shared::exclude([old, new], DR303, "keep `warmup`", check) && !old.1.is_none() {
        check
            .warning(DR301, old.1, "warmupDurationSecs is deprecated")
            .help("write `warmup: {duration: ...}`");
    }
    let plain = |duration| Warmup {
        duration,
        percent_min: Warmup::PERCENT_MIN_DEFAULT,
        aggression: Aggression::default(),
    };
    let old = if old.1.is_none() {
        None
    } else {
        scalar::duration(&raw.warmup_duration_secs, check)
    };
    let Some(settings) = raw.warmup.get() else {
        return old.map(plain);
    };
    if shared::text_span(&settings.duration).is_none() {
        check
            .error(
                DR174,
                shared::location(&settings.duration, raw.warmup.span()),
                "warmup without duration",
            )
            .help("write for example `duration: 30s`");
        return None;
    }
    let percent = settings.minimum_percent.get().copied();
    if let Some(percent) = percent.filter(|percent| !(0.0..=100.0).contains(percent)) {
        check
            .error(
                DR175,
                settings.minimum_percent.span(),
                format!("{percent} percent is outside 0..100"),
            )
            .help(format!("leave it out for {}", Warmup::PERCENT_MIN_DEFAULT));
    }
    let aggression = settings.aggression.get().copied();
    if aggression.is_some_and(|aggression| aggression.is_nan() || aggression <= 0.0) {
        check
            .error(
                DR176,
                settings.aggression.span(),
                "aggression must be above 0",
            )
            .help("1 is a straight line");
    }
    let duration = scalar::duration(&settings.duration, check)?;
    Some(Warmup {
        percent_min: percent.unwrap_or(Warmup::PERCENT_MIN_DEFAULT),
        aggression: aggression.map(Aggression).unwrap_or_default(),
        ..plain(duration)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suggested_prime_is_a_valid_table_size() {
        for (size, near) in [
            (1, 3),
            (2, 3),
            (4, 5),
            (1000, 1009),
            (65_536, 65_537),
            (5_000_010, 4_999_999),
        ] {
            assert_eq!(near_prime(size), near, "{size}");
        }
    }
}
