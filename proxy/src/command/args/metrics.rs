//! Arguments about metrics.

use std::net::SocketAddr;
use std::sync::Arc;

use clap::{Args, ValueEnum};

use super::address::socket_address;
use crate::telemetry::DurationBounds;

/// Settings of metrics.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Metrics")]
pub struct MetricsArgs {
    /// Address that serves only /stats/prometheus, for scrapers, such as 0.0.0.0:15020
    #[arg(long, value_name = "IP:PORT", env = "STRAIT_METRICS", value_parser = socket_address)]
    pub metrics: Option<SocketAddr>,
    /// Maximum number of combinations of values that labels with values of requests have; requests with further ones are counted
    /// as `other`
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1000,
        env = "STRAIT_METRIC_SERIES_MAX"
    )]
    pub metric_series_max: usize,
    /// Upper bounds of the buckets of istio_request_duration_milliseconds, 1 to 19 rising numbers [default: those of Istio, 0.5 to
    /// 3600000]
    #[arg(long, value_name = "MS,...", env = "STRAIT_DURATION_BUCKETS", value_parser = duration_bounds)]
    pub duration_buckets: Option<Arc<DurationBounds>>,
    /// Compression of metrics for scrapers that accept it
    #[arg(long, value_enum, default_value_t = SwitchArg::On, env = "STRAIT_STATS_COMPRESSION")]
    pub stats_compression: SwitchArg,
    /// Exemplars of sampled requests on histograms of durations, in OpenMetrics
    #[arg(long, value_enum, default_value_t = SwitchArg::On, env = "STRAIT_EXEMPLARS")]
    pub exemplars: SwitchArg,
    /// Requests by rule: strait_rule_requests_total
    #[arg(long, value_enum, default_value_t = SwitchArg::On, env = "STRAIT_RULE_METRICS")]
    pub rule_metrics: SwitchArg,
}

/// Parses `--duration-buckets`.
fn duration_bounds(text: &str) -> Result<Arc<DurationBounds>, String> {
    let numbers = text.split(',').map(|number| number.trim().parse().ok());
    let millis: Option<Vec<f64>> = numbers.collect();
    let bounds = millis.and_then(|millis| DurationBounds::new(&millis));
    let bounds = bounds.map(Arc::new);
    bounds
        .ok_or_else(|| "write 1 to 19 rising numbers of milliseconds, such as 1,10,100".to_owned())
}

/// Switch of a feature.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SwitchArg {
    /// On
    On,
    /// Off
    Off,
}
