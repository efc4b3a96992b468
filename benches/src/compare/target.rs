//! Performance targets of Strait, and whether a run met them.

use crate::compare::configure::Proxy;
use crate::compare::figures::{Figure, Figures, Section, number};
use crate::compare::statistics::range;

/// Performance target: maximum of a figure of Strait, in its unit or relative to another figure.
struct Target {
    what: &'static str,
    figure: Figure,
    limit: f64,
    base: Base,
}

/// Unit or baseline of a limit.
enum Base {
    /// Absolute limit in this unit; the figure is divided by the factor.
    Unit(&'static str, f64),
    /// Limit relative to this figure of this proxy.
    Of(Figure, Proxy),
    /// Limit relative to the lowest figure of any other proxy.
    BestPeer,
}

/// Creates a target relative to the best of the other proxies.
const fn best_peer(what: &'static str, figure: Figure, limit: f64) -> Target {
    Target {
        what,
        figure,
        limit,
        base: Base::BestPeer,
    }
}

/// Creates a target relative to Envoy, whose features are closest to Strait's.
const fn envoy(what: &'static str, figure: Figure) -> Target {
    Target {
        what,
        figure,
        limit: 0.4,
        base: Base::Of(figure, Proxy::Envoy),
    }
}

const TARGETS: [Target; 30] = [
    best_peer("CPU per small request, to the best", Figure::CpuSmall, 0.95),
    Target {
        what: "CPU per small request, to Envoy",
        figure: Figure::CpuSmall,
        limit: 0.35,
        base: Base::Of(Figure::CpuSmall, Proxy::Envoy),
    },
    Target {
        what: "CPU with 1,000 routes, to one route",
        figure: Figure::CpuManyRoutes,
        limit: 1.05,
        base: Base::Of(Figure::CpuOneRoute, Proxy::Strait),
    },
    best_peer(
        "CPU per request of 1 MiB, to the best",
        Figure::CpuLarge,
        1.1,
    ),
    envoy("CPU per request of 1 MiB, to Envoy", Figure::CpuLarge),
    best_peer(
        "CPU per request, h2c to HTTP/1.1, to the best",
        Figure::CpuH2c,
        0.95,
    ),
    envoy("CPU per request, h2c to HTTP/1.1, to Envoy", Figure::CpuH2c),
    best_peer(
        "CPU per small request over HTTPS, to the best",
        Figure::CpuHttps,
        0.95,
    ),
    envoy(
        "CPU per small request over HTTPS, to Envoy",
        Figure::CpuHttps,
    ),
    best_peer(
        "CPU per full TLS handshake, to the best",
        Figure::CpuTlsFull,
        1.1,
    ),
    envoy("CPU per full TLS handshake, to Envoy", Figure::CpuTlsFull),
    best_peer(
        "CPU per resumed TLS session, to the best",
        Figure::CpuTlsResumed,
        1.1,
    ),
    envoy(
        "CPU per resumed TLS session, to Envoy",
        Figure::CpuTlsResumed,
    ),
    best_peer(
        "CPU per request, HTTP/2 over TLS to HTTP/1.1, to the best",
        Figure::CpuH2,
        0.95,
    ),
    envoy(
        "CPU per request, HTTP/2 over TLS to HTTP/1.1, to Envoy",
        Figure::CpuH2,
    ),
    best_peer("CPU per call of gRPC, to the best", Figure::CpuGrpc, 0.85),
    envoy("CPU per call of gRPC, to Envoy", Figure::CpuGrpc),
    best_peer("CPU per GB of TCP, to the best", Figure::CpuTcp, 1.1),
    envoy("CPU per GB of TCP, to Envoy", Figure::CpuTcp),
    Target {
        what: "CPU per request of a pair of sidecars, to Envoy",
        figure: Figure::CpuPair,
        limit: 0.35,
        base: Base::Of(Figure::CpuPair, Proxy::Envoy),
    },
    Target {
        what: "the same at 1,000 requests a second",
        figure: Figure::CpuPairSteady,
        limit: 0.35,
        base: Base::Of(Figure::CpuPairSteady, Proxy::Envoy),
    },
    Target {
        what: "p99 latency that a pair of sidecars adds, to Envoy",
        figure: Figure::PairAddedMicros,
        limit: 1.0,
        base: Base::Of(Figure::PairAddedMicros, Proxy::Envoy),
    },
    Target {
        what: "memory of a sidecar of the pair",
        figure: Figure::PairKib,
        limit: 15.0,
        base: Base::Unit("MiB", 1024.0),
    },
    Target {
        what: "CPU of a plain route beside plain ones, to alone",
        figure: Figure::CpuPlainBesidePlain,
        limit: 1.05,
        base: Base::Of(Figure::CpuPlainAlone, Proxy::Strait),
    },
    Target {
        what: "CPU of a plain route beside routes with features, to alone",
        figure: Figure::CpuPlainBesideFeatures,
        limit: 1.05,
        base: Base::Of(Figure::CpuPlainAlone, Proxy::Strait),
    },
    Target {
        what: "memory of the idle process",
        figure: Figure::IdleKib,
        limit: 12.0,
        base: Base::Unit("MiB", 1024.0),
    },
    Target {
        what: "memory per idle connection",
        figure: Figure::ConnectionKib,
        limit: 1.1,
        base: Base::Unit("KiB", 1.0),
    },
    Target {
        what: "memory with 5,000 routes",
        figure: Figure::LoadedKib,
        limit: 40.0,
        base: Base::Unit("MiB", 1024.0),
    },
    Target {
        what: "one-route change at 5,000 routes in effect",
        figure: Figure::ChangeMillis,
        limit: 50.0,
        base: Base::Unit("ms", 1.0),
    },
    Target {
        what: "the same, all routes in one VirtualService",
        figure: Figure::ChangeOneObjectMillis,
        limit: 50.0,
        base: Base::Unit("ms", 1.0),
    },
];

/// Returns the table of the targets that this run measured; `None` if it measured none.
pub(super) fn section(figures: &Figures) -> Option<Section> {
    let rows: Vec<_> = TARGETS
        .iter()
        .filter_map(|target| row(target, figures))
        .collect();
    if rows.is_empty() {
        return None;
    }
    Some(Section {
        title: "Targets".to_owned(),
        text: "What Strait is held to, and what this run measured.".to_owned(),
        columns: ["target", "at most", "measured", "met"]
            .map(str::to_owned)
            .to_vec(),
        rows,
    })
}

fn row(target: &Target, figures: &Figures) -> Option<Vec<String>> {
    let value = *figures.get(&(target.figure, Proxy::Strait))?;
    let (measured, unit) = match target.base {
        Base::Unit(unit, factor) => (value / factor, format!(" {unit}")),
        Base::Of(figure, proxy) => (value / figures.get(&(figure, proxy))?, "x".to_owned()),
        Base::BestPeer => {
            let peers = Proxy::ALL.into_iter().filter(|proxy| proxy.is_peer());
            let values = peers.filter_map(|peer| figures.get(&(target.figure, peer)));
            let (best, _) = range(values.copied())?;
            (value / best, "x".to_owned())
        }
    };
    let verdict = if measured <= target.limit {
        "yes"
    } else {
        "no"
    };
    let cell = |value: f64| format!("{}{unit}", number(value));
    Some(vec![
        target.what.to_owned(),
        cell(target.limit),
        cell(measured),
        verdict.to_owned(),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_measured_means_no_table() {
        assert_eq!(section(&Figures::new()), None);
    }

    #[test]
    fn target_relative_to_a_proxy_that_was_left_out_is_skipped() {
        let figures = Figures::from([((Figure::CpuSmall, Proxy::Strait), 18.0)]);
        assert_eq!(section(&figures), None);
    }

    #[test]
    fn targets_are_judged() {
        let figures = Figures::from([
            ((Figure::CpuSmall, Proxy::Strait), 22.0),
            ((Figure::CpuSmall, Proxy::Haproxy), 18.0),
            ((Figure::IdleKib, Proxy::Strait), 10.0 * 1024.0),
        ]);
        let rows = section(&figures).unwrap().rows;
        assert_eq!(rows[0][1..], ["0.95x", "1.22x", "no"]);
        assert_eq!(rows[1][1..], ["12.0 MiB", "10.0 MiB", "yes"]);
        assert_eq!(rows.len(), 2);
    }

    #[test]
    fn best_of_the_peers_is_what_counts() {
        let figures = Figures::from([
            ((Figure::CpuTcp, Proxy::Strait), 21.0),
            ((Figure::CpuTcp, Proxy::Nginx), 20.0),
            ((Figure::CpuTcp, Proxy::Haproxy), 30.0),
        ]);
        let rows = section(&figures).unwrap().rows;
        assert_eq!(rows[0][1..], ["1.10x", "1.05x", "yes"]);
        assert_eq!(rows.len(), 1);
    }

    #[test]
    fn figure_without_a_peer_is_not_judged() {
        let figures = Figures::from([((Figure::CpuTcp, Proxy::Strait), 21.0)]);
        assert_eq!(section(&figures), None);
    }
}
