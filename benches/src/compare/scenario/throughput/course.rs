//! Scenario under load, and the results of its turns.

use std::borrow::Cow;
use std::time::Duration;

use crate::compare::bench::{Bench, Running};
use crate::compare::configure::{Feature, Others, Proxy, Work};
use crate::compare::load::{Counts, Load};
use crate::compare::report::Figure;
use crate::compare::statistics::median;

/// Scenario under load.
pub(in crate::compare::scenario) struct Course {
    pub(in crate::compare::scenario) title: &'static str,
    pub(in crate::compare::scenario) text: String,
    pub(in crate::compare::scenario) load: Load,
    pub(in crate::compare::scenario) unit: Unit,
    pub(in crate::compare::scenario) work: Work,
    pub(in crate::compare::scenario) tls: bool,
    pub(in crate::compare::scenario) path: String,
    pub(in crate::compare::scenario) proxies: &'static [Proxy],
    /// Variants; the first one is the baseline of the others.
    pub(in crate::compare::scenario) variants: Vec<Variant>,
}

impl Course {
    pub(in crate::compare::scenario) fn load(&self, variant: &Variant) -> Load {
        variant.load.unwrap_or(self.load)
    }

    pub(in crate::compare::scenario) fn http2(&self) -> bool {
        matches!(self.load, Load::Http2 { .. } | Load::Grpc { .. })
    }

    /// Whether the table has a row without a proxy. Handshakes have none, since the upstream speaks no TLS.
    pub(in crate::compare::scenario) fn has_direct(&self) -> bool {
        self.unit != Unit::Handshake
    }
}

/// Unit of work that CPU time is divided by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::compare::scenario) enum Unit {
    Request,
    Handshake,
    Gigabyte,
}

/// Configuration of each proxy in a scenario.
pub(in crate::compare::scenario) struct Variant {
    pub(in crate::compare::scenario) label: Cow<'static, str>,
    pub(in crate::compare::scenario) prefixes: Vec<String>,
    pub(in crate::compare::scenario) others: Others,
    pub(in crate::compare::scenario) endpoints: u16,
    /// Feature of the route that every request matches.
    pub(in crate::compare::scenario) feature: Option<Feature>,
    /// Load that replaces the load of the scenario.
    pub(in crate::compare::scenario) load: Option<Load>,
    pub(in crate::compare::scenario) figure: Option<Figure>,
}

impl Variant {
    /// Creates a variant with one catch-all route.
    pub(in crate::compare::scenario) fn catch_all(figure: Option<Figure>) -> Self {
        Self {
            label: "".into(),
            prefixes: vec!["/".to_owned()],
            others: Others::None,
            endpoints: 1,
            feature: None,
            load: None,
            figure,
        }
    }
}

/// Participant that takes turns under load.
pub(in crate::compare::scenario) struct Entrant {
    /// Running proxy; `None` is the upstream without a proxy.
    pub(in crate::compare::scenario) running: Option<Running>,
    pub(in crate::compare::scenario) variant: usize,
    pub(in crate::compare::scenario) label: String,
    pub(in crate::compare::scenario) turns: Vec<Turn>,
}

/// Result of one turn.
#[derive(Clone, Debug)]
pub(in crate::compare::scenario) struct Turn {
    pub(in crate::compare::scenario) counts: Counts,
    pub(in crate::compare::scenario) unit: Unit,
    /// Minimum number of bytes read per counted request.
    pub(in crate::compare::scenario) bytes_each: u64,
    pub(in crate::compare::scenario) cpu: Duration,
    pub(in crate::compare::scenario) elapsed: Duration,
}

impl Turn {
    /// Amount of work, in its unit.
    pub(in crate::compare::scenario) fn amount(&self) -> f64 {
        match self.unit {
            Unit::Request | Unit::Handshake => self.counts.requests as f64,
            Unit::Gigabyte => self.counts.bytes as f64 / 1e9,
        }
    }

    /// CPU time per unit of work: in us per request or handshake, in ms per GB.
    pub(in crate::compare::scenario) fn cpu(&self) -> f64 {
        let parts = match self.unit {
            Unit::Request | Unit::Handshake => 1e6,
            Unit::Gigabyte => 1e3,
        };
        self.cpu.as_secs_f64() * parts / self.amount()
    }

    pub(in crate::compare::scenario) fn per_second(&self) -> f64 {
        self.amount() / self.elapsed.as_secs_f64()
    }

    pub(in crate::compare::scenario) fn busy_percent(&self) -> f64 {
        100.0 * self.cpu.as_secs_f64() / self.elapsed.as_secs_f64()
    }

    /// Whether bodies were shorter than expected.
    pub(in crate::compare::scenario) fn is_short(&self) -> bool {
        self.counts.bytes < self.counts.requests * self.bytes_each
    }
}

impl Entrant {
    pub(in crate::compare::scenario) fn direct() -> Self {
        Self {
            running: None,
            variant: 0,
            label: "direct (CPU of the upstream)".into(),
            turns: vec![],
        }
    }

    pub(in crate::compare::scenario) fn proxy(&self) -> Option<Proxy> {
        self.running.as_ref().map(|running| running.proxy)
    }

    pub(in crate::compare::scenario) fn pid(&self, bench: &Bench) -> u32 {
        self.running
            .as_ref()
            .map_or(bench.upstream_pid(), |running| running.process.pid())
    }

    pub(in crate::compare::scenario) fn cpu(&self) -> Option<f64> {
        median(self.turns.iter().map(Turn::cpu))
    }
}
