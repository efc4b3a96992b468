//! Scenarios with a growing number of endpoints or connections.

use super::courses::one_route;
use super::name::{DOWNSTREAM_FILES, MANY_CONNECTIONS, MANY_ENDPOINTS};
use super::throughput::{Course, Variant};
use crate::compare::load::Load;

/// Returns the scenario of endpoints. The request is the same in all variants; the number of endpoints grows.
pub(super) fn endpoints() -> Course {
    let of = |label: &'static str, endpoints| Variant {
        label: label.into(),
        endpoints,
        ..Variant::catch_all(None)
    };
    Course {
        title: "1 to 1,000 endpoints",
        text: "64 connections, responses of 128 bytes, one route. Each proxy runs with 1, 10, 100 and 1,000 endpoints in \
               the same rounds, and balances by round robin. The endpoints are loopback addresses of the same upstream, \
               which has a listener for each."
            .to_owned(),
        variants: vec![
            of("1 endpoint", 1),
            of("10 endpoints", 10),
            of("100 endpoints", 100),
            of("1,000 endpoints", MANY_ENDPOINTS),
        ],
        ..one_route(Load::Http1 { connections: 64 }, None)
    }
}

/// Number of requests in flight, independent of the number of connections.
const IN_FLIGHT: u32 = 64;

/// Returns the scenario of connections. With wrk, all connections would have a request in flight and need as many
/// upstream connections, which is not comparable to fewer connections.
///
/// Strait accepts one downstream connection per two files that it may open, so the limit of open files bounds the last
/// variant, for all proxies alike.
pub(super) fn downstream(open_files: u64) -> Course {
    let missing = DOWNSTREAM_FILES.saturating_sub(open_files).div_ceil(2);
    let fewer = u32::try_from(missing).unwrap_or(u32::MAX);
    let most = MANY_CONNECTIONS.saturating_sub(fewer).max(1_000) / 100 * 100;
    let mut text = "Keep-alive connections of HTTP/1.1, responses of 128 bytes, one route. 64 requests are in flight at \
                    once, each on the connection that was idle for longest. CPU time counts from when all connections \
                    are open, and have made a request, until before they are closed. This program makes the load itself."
        .to_owned();
    if most < MANY_CONNECTIONS {
        text.push_str(&format!(
            " The limit of {open_files} open files allows {} connections instead of {}.",
            thousands(most),
            thousands(MANY_CONNECTIONS)
        ));
    }
    let load = |connections| Load::Rotation {
        connections,
        in_flight: IN_FLIGHT,
    };
    let of = |connections| Variant {
        label: format!("{} connections", thousands(connections)).into(),
        load: Some(load(connections)),
        ..Variant::catch_all(None)
    };
    Course {
        title: "Many downstream connections",
        text,
        variants: [IN_FLIGHT, 1_000, most].map(of).into(),
        ..one_route(load(IN_FLIGHT), None)
    }
}

/// Formats a number below a million with a comma after its thousands.
fn thousands(number: u32) -> String {
    match (number / 1_000, number % 1_000) {
        (0, rest) => rest.to_string(),
        (thousands, rest) => format!("{thousands},{rest:03}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::scenario::Scenario;

    #[test]
    fn only_the_number_of_connections_differs() {
        let course = downstream(DOWNSTREAM_FILES);
        assert!(!course.text.contains("open files"));
        let connections = course.variants.iter().map(|variant| {
            let Load::Rotation {
                connections,
                in_flight,
            } = course.load(variant)
            else {
                panic!("another load: {:?}", variant.load);
            };
            assert_eq!(in_flight, IN_FLIGHT);
            connections
        });
        assert_eq!(connections.collect::<Vec<_>>(), [64, 1_000, 10_000]);
    }

    #[test]
    fn limit_of_open_files_bounds_the_connections_and_is_mentioned() {
        let course = downstream(20_000);
        let labels: Vec<&str> = course.variants.iter().map(|it| &*it.label).collect();
        assert_eq!(
            labels,
            ["64 connections", "1,000 connections", "9,400 connections"]
        );
        assert!(
            course
                .text
                .ends_with("limit of 20000 open files allows 9,400 connections instead of 10,000.")
        );
    }

    #[test]
    fn upstream_listens_on_the_address_of_every_endpoint() {
        let course = endpoints();
        let most = course.variants.iter().map(|variant| variant.endpoints);
        assert_eq!(most.max(), Some(Scenario::Endpoints.upstream_addresses()));
        assert_eq!(course.variants[0].endpoints, 1, "the base of the others");
    }
}
