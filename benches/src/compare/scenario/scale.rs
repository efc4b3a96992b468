//! The scenarios in which the number of endpoints or of connections grows.

use super::courses::one_route;
use super::name::MANY_ENDPOINTS;
use super::throughput::{Course, Variant};
use crate::compare::load::Load;

/// The request is the same everywhere; the proxies balance it over more and more endpoints.
pub(super) fn endpoints() -> Course {
    let of = |label, endpoints| Variant {
        label,
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::scenario::Scenario;

    #[test]
    fn upstream_listens_on_the_address_of_every_endpoint() {
        let course = endpoints();
        let most = course.variants.iter().map(|variant| variant.endpoints);
        assert_eq!(most.max(), Some(Scenario::Endpoints.upstream_addresses()));
        assert_eq!(course.variants[0].endpoints, 1, "the base of the others");
    }
}
