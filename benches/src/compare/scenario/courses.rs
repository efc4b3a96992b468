//! Definitions of the scenarios under load.

use super::throughput::{Course, Unit, Variant};
use crate::compare::configure::feature;
use crate::compare::configure::{Feature, Others, Proxy, Work, prefix};
use crate::compare::load::Load;
use crate::compare::report::Figure;
use crate::compare::upstream::grpc;
use crate::compare::upstream::http::LARGE_PATH;

/// Number of routes in the scenario that compares many routes with one.
const MANY_ROUTES: usize = 1_000;

/// Number of routes in addition to the plain one in the scenario of features.
const OTHER_ROUTES: usize = 100;

/// Returns the defaults of most scenarios: one route, all proxies, HTTP.
pub(super) fn one_route(load: Load, figure: Option<Figure>) -> Course {
    Course {
        title: "",
        text: String::new(),
        load,
        unit: Unit::Request,
        work: Work::Http,
        tls: false,
        path: "/".to_owned(),
        proxies: &Proxy::ALL,
        variants: vec![Variant::catch_all(figure)],
    }
}

pub(super) fn small() -> Course {
    Course {
        title: "Small keep-alive requests over HTTP/1.1",
        text: "64 connections, responses of 128 bytes, one route.".to_owned(),
        ..one_route(Load::Http1 { connections: 64 }, Some(Figure::CpuSmall))
    }
}

/// Returns the scenario of many routes. Both variants request the same path, so that only the number of routes differs.
pub(super) fn routes() -> Course {
    let last = prefix(MANY_ROUTES - 1);
    let of = |label: &'static str, prefixes, figure| Variant {
        label: label.into(),
        prefixes,
        ..Variant::catch_all(Some(figure))
    };
    Course {
        title: "1,000 prefix routes, hitting the last",
        text: "64 connections, responses of 128 bytes. Each proxy also runs with that one route alone, in the same \
               rounds. HAProxy looks prefixes up in a map, nginx has a location for each, Envoy and Strait an \
               ordered list of rules."
            .to_owned(),
        path: format!("{last}item"),
        variants: vec![
            of("1 route", vec![last], Figure::CpuOneRoute),
            of(
                "1,000 routes",
                (0..MANY_ROUTES).map(prefix).collect(),
                Figure::CpuManyRoutes,
            ),
        ],
        ..one_route(Load::Http1 { connections: 64 }, None)
    }
}

/// Returns the scenario of features. The plain route is the same in all variants; number and features of the routes
/// before it differ.
pub(super) fn features() -> Course {
    let plain = prefix(0);
    let of = |label: &'static str, others, figure| Variant {
        label: label.into(),
        prefixes: vec![plain.clone()],
        others,
        ..Variant::catch_all(Some(figure))
    };
    Course {
        title: "A plain route beside routes with features",
        text: "64 connections, responses of 128 bytes, Strait only. All requests take one plain route: alone, after \
               100 other plain routes, and after 100 routes with retries, faults, CORS, mirrors, header operations \
               and time-outs, which no request takes."
            .to_owned(),
        path: format!("{plain}item"),
        proxies: &[Proxy::Strait, Proxy::Before],
        variants: vec![
            of("alone", Others::None, Figure::CpuPlainAlone),
            of(
                "beside plain",
                Others::Plain(OTHER_ROUTES),
                Figure::CpuPlainBesidePlain,
            ),
            of(
                "beside features",
                Others::Featured(OTHER_ROUTES),
                Figure::CpuPlainBesideFeatures,
            ),
        ],
        ..one_route(Load::Http1 { connections: 64 }, None)
    }
}

/// Returns the scenario of policies. Every request is compared with all of them, and none denies it.
pub(super) fn authz() -> Course {
    let of = |label: &'static str, count| Variant {
        label: label.into(),
        others: match count {
            0 => Others::None,
            count => Others::Policies(count),
        },
        ..Variant::catch_all(None)
    };
    Course {
        title: "Policies that deny other requests",
        text: "64 connections, responses of 128 bytes. Each policy denies one method on two paths, which no request has: \
               in Strait AuthorizationPolicies, in Envoy the filter that Istio makes of them."
            .to_owned(),
        proxies: &[Proxy::Strait, Proxy::Before, Proxy::Envoy],
        variants: vec![
            of("none", 0),
            of("1 policy", 1),
            of("100 policies", 100),
            of("1,000 policies", 1_000),
        ],
        ..one_route(Load::Http1 { connections: 64 }, None)
    }
}

/// Returns the scenario of tokens. All requests have the same one.
pub(super) fn jwt() -> Course {
    let of = |label: &'static str, others| Variant {
        label: label.into(),
        others,
        ..Variant::catch_all(None)
    };
    let tokens = |envoy_keeps_them| Others::Tokens { envoy_keeps_them };
    Course {
        title: "Requests with a token",
        text: "64 connections, responses of 128 bytes. Every request has the same token, signed with RS256 and a key of \
               2,048 bits. Strait keeps verified tokens, and Envoy does where its cache is on; Istio does not turn it on."
            .to_owned(),
        proxies: &[Proxy::Strait, Proxy::Before, Proxy::Envoy],
        variants: vec![
            of("no token", Others::None),
            of("a token", tokens(false)),
            of("a token, Envoy with its cache", tokens(true)),
        ],
        ..one_route(Load::Http1 { connections: 64 }, None)
    }
}

/// Returns the scenario of traces.
pub(super) fn traces() -> Course {
    let of = |label: &'static str, others| Variant {
        label: label.into(),
        others,
        ..Variant::catch_all(None)
    };
    Course {
        title: "Requests with traces",
        text: "64 connections, responses of 128 bytes. Both proxies send two spans per sampled request to a collector over \
               gRPC, in Envoy by its OpenTelemetry tracer with `spawn_upstream_span`. The CPU time of the proxy includes \
               that of sending the spans."
            .to_owned(),
        proxies: &[Proxy::Strait, Proxy::Before, Proxy::Envoy],
        variants: vec![
            of("no tracing", Others::None),
            of("0 %", Others::Traces(0)),
            of("1 %", Others::Traces(1)),
            of("100 %", Others::Traces(100)),
        ],
        ..one_route(Load::Http1 { connections: 64 }, None)
    }
}

/// Returns the scenario of feature costs. All variants have the same requests and the same number of endpoints.
pub(super) fn feature_costs() -> Course {
    let of = |feature: Feature| Variant {
        label: feature.label().into(),
        feature: Some(feature),
        ..Variant::catch_all(None)
    };
    Course {
        title: "A route with one feature",
        text: "64 connections, responses of 128 bytes, Strait only, in the same rounds with each feature: every request \
               takes a route that has it, and no other one. The upstream has four endpoints. All requests have a header \
               for conditions and hashes, and an origin. The hash is the same for all, so that they go to one endpoint. \
               The access log goes to /dev/null."
            .to_owned(),
        path: feature::PATH.to_owned(),
        proxies: &[Proxy::Strait, Proxy::Before],
        variants: Feature::ALL.map(of).into(),
        ..one_route(Load::Http1 { connections: 64 }, None)
    }
}

const HTTP2: Load = Load::Http2 {
    connections: 16,
    streams: 8,
};

pub(super) fn h2c() -> Course {
    Course {
        title: "HTTP/2 without TLS to HTTP/1.1",
        text: "16 connections with 8 streams each, responses of 128 bytes, one route. The direct row is HTTP/1.1 \
               with 8 requests in flight per connection."
            .to_owned(),
        ..one_route(HTTP2, Some(Figure::CpuH2c))
    }
}

pub(super) fn large() -> Course {
    Course {
        title: "Responses of 1 MiB over HTTP/1.1",
        text: "16 connections, one route.".to_owned(),
        path: LARGE_PATH.to_owned(),
        ..one_route(Load::Http1 { connections: 16 }, Some(Figure::CpuLarge))
    }
}

pub(super) fn https() -> Course {
    Course {
        title: "Small keep-alive requests over HTTPS",
        text: "64 connections with HTTP/1.1 over TLS 1.3 (AES-128-GCM, ECDSA with P-256), responses of 128 bytes, \
               one route, HTTP/1.1 without TLS to the upstream. The direct row is without TLS."
            .to_owned(),
        tls: true,
        ..one_route(Load::Http1 { connections: 64 }, Some(Figure::CpuHttps))
    }
}

/// Returns the scenario of TLS handshakes. The load generator checks each handshake and each response.
pub(super) fn handshakes(resumed: bool) -> Course {
    let (title, text, figure) = if resumed {
        (
            "Resumed TLS sessions",
            "each with a ticket of the connection before, one request and its end, 32 at once. TLS 1.3, X25519 \
             in resumptions too. A connection that is not resumed counts as failed.",
            Figure::CpuTlsResumed,
        )
    } else {
        (
            "Full TLS handshakes",
            "each with a full handshake, one request and its end, 32 at once. TLS 1.3, X25519, a certificate for \
             ECDSA with P-256.",
            Figure::CpuTlsFull,
        )
    };
    let load = Load::Handshakes {
        connections: 32,
        resumed,
    };
    Course {
        title,
        text: format!("New connections, {text}"),
        unit: Unit::Handshake,
        tls: true,
        ..one_route(load, Some(figure))
    }
}

pub(super) fn h2() -> Course {
    Course {
        title: "HTTP/2 over TLS to HTTP/1.1",
        text: "16 connections with 8 streams each over TLS 1.3 (AES-128-GCM, ECDSA with P-256), responses of 128 \
               bytes, one route. The direct row is HTTP/1.1 without TLS, with 8 requests in flight per connection."
            .to_owned(),
        tls: true,
        ..one_route(HTTP2, Some(Figure::CpuH2))
    }
}

pub(super) fn grpc() -> Course {
    let load = Load::Grpc {
        connections: 16,
        streams: 8,
    };
    Course {
        title: "Unary calls of gRPC",
        text: "HTTP/2 without TLS to both sides, 16 connections with 8 calls each, messages of 128 bytes both ways, \
               status 0 in the trailers. nginx has one call at a time on a connection to the upstream."
            .to_owned(),
        work: Work::Grpc,
        path: grpc::PATH.to_owned(),
        ..one_route(load, Some(Figure::CpuGrpc))
    }
}

pub(super) fn tcp() -> Course {
    Course {
        title: "Bytes through TCP connections",
        text: "4 connections, 64 MiB each way at once through each of them, then new ones. GB count both ways; \
               GB/s per core is what a proxy would do with a core all to itself."
            .to_owned(),
        unit: Unit::Gigabyte,
        work: Work::Tcp,
        ..one_route(Load::Bulk { connections: 4 }, Some(Figure::CpuTcp))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_of_many_routes_is_the_only_one_of_the_baseline() {
        let course = routes();
        assert_eq!(
            course.variants[0].prefixes,
            [course.variants[1].prefixes[MANY_ROUTES - 1].clone()]
        );
        assert!(course.path.starts_with(&course.variants[0].prefixes[0]));
    }

    #[test]
    fn plain_route_is_the_same_whatever_is_beside_it() {
        let course = features();
        assert_eq!(course.variants[0].others, Others::None);
        for variant in &course.variants {
            assert_eq!(variant.prefixes, [prefix(0)]);
        }
    }

    #[test]
    fn features_are_compared_with_the_plain_route() {
        let course = feature_costs();
        assert_eq!(course.variants[0].feature, Some(Feature::None));
        assert!(course.path.starts_with(&prefix(0)));
        let features = course.variants.iter().map(|variant| variant.feature);
        assert_eq!(features.collect::<Vec<_>>(), Feature::ALL.map(Some));
    }

    #[test]
    fn each_kind_of_handshake_has_its_own_figure() {
        let figure = |resumed| handshakes(resumed).variants[0].figure;
        assert_eq!(figure(false), Some(Figure::CpuTlsFull));
        assert_eq!(figure(true), Some(Figure::CpuTlsResumed));
    }
}
