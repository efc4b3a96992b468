//! Arguments about metrics.

use std::net::SocketAddr;

use clap::{Args, ValueEnum};

use super::address::socket_address;

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
    /// Exemplars of sampled requests on histograms of durations, in OpenMetrics
    #[arg(long, value_enum, default_value_t = SwitchArg::On, env = "STRAIT_EXEMPLARS")]
    pub exemplars: SwitchArg,
    /// Requests by rule: strait_rule_requests_total
    #[arg(long, value_enum, default_value_t = SwitchArg::On, env = "STRAIT_RULE_METRICS")]
    pub rule_metrics: SwitchArg,
}

/// Switch of a feature.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SwitchArg {
    /// On
    On,
    /// Off
    Off,
}
