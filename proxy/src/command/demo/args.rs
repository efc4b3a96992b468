//! Arguments of `strait demo`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

use crate::command::args::{cluster_key, socket_address};
use crate::command::run::ServeArgs;

/// Maximum requests per second that the demo sends by itself.
const RATE_MAX: u16 = 1_000;

/// Arguments of `strait demo`.
#[derive(Debug, Args)]
#[command(after_help = "\
Starts three clusters, each with a gateway and two versions of a service, and an edge gateway that shares requests among \
them by a GlobalTrafficPolicy. It writes their configuration into a new directory, prints commands to try, sends \
requests, and shows the cluster and version that respond. Ctrl-C ends it.

  strait demo                                     and then, in another terminal:
  curl http://127.0.0.1:8080/                     one more request
  curl -X POST http://127.0.0.1:15010/demo/clusters/c2/stop
                                                  c2 is stopped: the others take over, no request fails
  curl -X POST http://127.0.0.1:15010/demo/clusters/c2/start
                                                  c2 is started, and has its share again

With --dir it serves another directory, with an echo service on every loopback endpoint of its ServiceEntries, \
WorkloadEntries, EndpointSlices and ServiceImports:
  strait demo --dir examples/bookinfo")]
pub struct DemoArgs {
    /// Settings of serving.
    #[command(flatten)]
    pub serve: ServeArgs,
    /// Directory with a configuration to serve, instead of the three clusters
    #[arg(long, value_name = "DIR", env = "STRAIT_DEMO_DIR")]
    pub dir: Option<PathBuf>,
    /// Kubernetes cluster that the gateway of --dir is in: region/zone/group/name, or just the name
    #[arg(long, value_name = "KEY", default_value = "local", env = "STRAIT_DEMO_CLUSTER", value_parser = cluster_key, requires = "dir")]
    pub cluster: String,
    /// Address of the edge gateway. With port 0, it and the clusters listen on free ports
    #[arg(
        long,
        value_name = "IP:PORT",
        default_value = "127.0.0.1:8080",
        env = "STRAIT_DEMO_LISTEN",
        value_parser = socket_address,
        conflicts_with = "dir"
    )]
    pub listen: SocketAddr,
    /// Address of the control API that stops and starts clusters
    #[arg(
        long,
        value_name = "IP:PORT",
        default_value = "127.0.0.1:15010",
        env = "STRAIT_DEMO_CONTROL",
        value_parser = socket_address,
        conflicts_with = "dir"
    )]
    pub control: SocketAddr,
    /// New directory for the configuration, which is kept; default: a temporary directory, which is
    /// removed at the end
    #[arg(
        long,
        value_name = "DIR",
        env = "STRAIT_DEMO_KEEP_FILES",
        conflicts_with = "dir"
    )]
    pub keep_files: Option<PathBuf>,
    /// Requests that the demo sends by itself; 0 for none, and no table
    #[arg(
        long,
        value_name = "N",
        default_value_t = 50,
        env = "STRAIT_DEMO_REQUESTS_PER_SECOND",
        value_parser = clap::value_parser!(u16).range(0..=i64::from(RATE_MAX)),
        conflicts_with = "dir"
    )]
    pub requests_per_second: u16,
}
