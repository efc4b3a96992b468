//! Arguments of `strait backend`.

use std::net::SocketAddr;
use std::time::Duration;

use clap::Args;
use http::Uri;

use super::Workload;
use crate::command::args::socket_address;
use crate::command::load::Target;
use crate::runtime::duration::duration;

/// Maximum requests per second of a client.
const RATE_MAX: u16 = 1_000;

const HELP: &str = "\
As a backend it serves HTTP/1.1, HTTP/2 without TLS and gRPC, and says which cluster, service and version responds: in \
the header x-backend and in the body, as JSON with `accept: application/json`. Some paths do more:

  /healthz/ready       200, for probes: strait health --admin 127.0.0.1:8080
  /status/CODE         responds with this status
  any path that ends in `flaky` fails at the first attempt

As a client it sends requests, and prints each second how many each backend has answered and how many failed.

Examples:
  strait backend --cluster c1 --service web --version v1 --listen 0.0.0.0:8080
  strait backend --client http://127.0.0.1:8080/ --rate 50
  strait backend --client http://edge/ --requests 1000

Exit codes of the client: 0 no request failed, 1 some failed, 2 the usage is wrong.";

/// Arguments of `strait backend`.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub struct BackendArgs {
    /// Address of the HTTP server. May be repeated
    #[arg(
        long,
        value_name = "IP:PORT",
        default_value = "127.0.0.1:8080",
        env = "STRAIT_BACKEND_LISTEN",
        value_delimiter = ',',
        value_parser = socket_address
    )]
    pub listen: Vec<SocketAddr>,
    /// Address of a TCP server that sends a line with its name, then everything that it receives. May be repeated
    #[arg(
        long,
        value_name = "IP:PORT",
        env = "STRAIT_BACKEND_TCP",
        value_delimiter = ',',
        value_parser = socket_address
    )]
    pub tcp: Vec<SocketAddr>,
    /// Cluster that the backend says it is in
    #[arg(
        long,
        value_name = "NAME",
        default_value = "",
        env = "STRAIT_BACKEND_CLUSTER",
        hide_default_value = true
    )]
    pub cluster: String,
    /// Service that the backend says it is of
    #[arg(
        long,
        value_name = "NAME",
        default_value = "web",
        env = "STRAIT_BACKEND_SERVICE"
    )]
    pub service: String,
    /// Version that the backend says it has
    #[arg(
        long,
        value_name = "NAME",
        default_value = "",
        env = "STRAIT_BACKEND_VERSION",
        hide_default_value = true
    )]
    pub version: String,
    /// Send requests to this URL instead of serving
    #[arg(
        long,
        value_name = "URL",
        env = "STRAIT_BACKEND_CLIENT",
        help_heading = "Client"
    )]
    pub client: Option<Uri>,
    /// Host of the requests; default: that of the URL
    #[arg(
        long,
        value_name = "NAME",
        env = "STRAIT_BACKEND_HOST",
        help_heading = "Client"
    )]
    pub host: Option<String>,
    /// Requests per second
    #[arg(
        long,
        value_name = "N",
        default_value_t = 10,
        env = "STRAIT_BACKEND_RATE",
        value_parser = clap::value_parser!(u16).range(1..=i64::from(RATE_MAX)),
        help_heading = "Client"
    )]
    pub rate: u16,
    /// End after so many requests; default: go on until a signal
    #[arg(
        long,
        value_name = "N",
        env = "STRAIT_BACKEND_REQUESTS",
        help_heading = "Client"
    )]
    pub requests: Option<u64>,
    /// Time for a response; without one, the request has failed
    #[arg(
        long,
        value_name = "DURATION",
        default_value = "10s",
        env = "STRAIT_BACKEND_TIMEOUT",
        value_parser = duration,
        help_heading = "Client"
    )]
    pub timeout: Duration,
    /// Use a new connection for each request
    #[arg(long, env = "STRAIT_BACKEND_NEW_CONNECTIONS", help_heading = "Client")]
    pub new_connections: bool,
}

impl BackendArgs {
    pub(super) fn workload(&self) -> Workload {
        Workload {
            cluster: self.cluster.clone(),
            service: self.service.clone(),
            version: self.version.clone(),
        }
    }

    /// Returns the target of a client's requests; `None` for a server.
    ///
    /// # Errors
    ///
    /// Fails when the URL has no host, or needs TLS.
    pub(super) fn target(&self) -> Result<Option<Target>, String> {
        let Some(url) = &self.client else {
            return Ok(None);
        };
        let wrong = || format!("--client {url}: write for example http://edge:8080/");
        if url.scheme_str() != Some("http") {
            return Err(wrong());
        }
        let name = url
            .host()
            .filter(|name| !name.is_empty())
            .ok_or_else(wrong)?;
        let authority = url.authority().map_or(name, |all| all.as_str());
        let mut target = Target::named(name, url.port_u16().unwrap_or(80))?;
        target.host = self.host.as_deref().unwrap_or(authority).to_owned();
        target.path = url
            .path_and_query()
            .map_or("/", |path| path.as_str())
            .to_owned();
        target.timeout = self.timeout;
        target.keeps_connections = !self.new_connections;
        Ok(Some(target))
    }
}
