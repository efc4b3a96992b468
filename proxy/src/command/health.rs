//! `strait health`, `strait wait` and `strait drain`: check whether a proxy on this machine is ready, and make it
//! drain.
//!
//! They ask its admin server: a container without a shell can be probed, a start hook can delay the workload until the
//! proxy accepts traffic, and a stop hook can announce that the pod ends.

use std::thread;
use std::time::{Duration, Instant};

use clap::Args;

use super::admin_client::{get, request};
use super::args::socket_address;
use super::{EXIT_DONE, EXIT_INPUT, report};
use crate::runtime::duration::duration;

/// Interval at which `strait wait` checks the proxy.
const PAUSE: Duration = Duration::from_millis(25);

/// Arguments of `strait health`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  strait health                                  exit code 0 if the proxy is ready, 1 if not
  strait health --capture 127.0.0.1:15022        the same of a sidecar beside `strait iptables hold`
  HEALTHCHECK CMD [\"/strait\", \"health\"]          in a Dockerfile")]
pub struct HealthArgs {
    /// The proxy.
    #[command(flatten)]
    pub proxy: ProxyArgs,
}

/// Arguments of `strait wait`.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  strait wait --timeout 30s && exec ./server     start the workload when the proxy is ready")]
pub struct WaitArgs {
    /// The proxy.
    #[command(flatten)]
    pub proxy: ProxyArgs,
    /// Maximum time to wait for the proxy
    #[arg(
        long,
        value_name = "TIME",
        default_value = "60s",
        env = "STRAIT_WAIT_TIMEOUT",
        value_parser = duration
    )]
    pub timeout: Duration,
}

/// Arguments of `strait drain`.
#[derive(Debug, Args)]
#[command(after_help = "\
The proxy fails its readiness probe, tells clients to go elsewhere (`connection: close`, GOAWAY), and serves open and \
new connections until it gets SIGTERM, or until the workload of a sidecar takes no connections any more.

Example:
  preStop: {exec: {command: [/strait, drain]}}   of a native sidecar, which gets SIGTERM after its workload has ended")]
pub struct DrainArgs {
    /// Address of the proxy's admin server
    #[arg(
        long,
        value_name = "IP:PORT",
        default_value = "127.0.0.1:15000",
        env = "STRAIT_ADMIN",
        value_parser = socket_address
    )]
    pub admin: std::net::SocketAddr,
}

/// Proxy to ask.
#[derive(Debug, Args)]
pub struct ProxyArgs {
    /// Address of its admin server, or of its health server (`strait run --health`)
    #[arg(
        long,
        value_name = "IP:PORT",
        default_value = "127.0.0.1:15000",
        env = "STRAIT_ADMIN",
        value_parser = socket_address
    )]
    pub admin: std::net::SocketAddr,
    /// Address of `strait iptables hold`: the proxy of a sidecar is ready only if connections of its workload are captured
    #[arg(
        long,
        value_name = "IP:PORT",
        env = "STRAIT_CAPTURE",
        value_parser = socket_address
    )]
    pub capture: Option<std::net::SocketAddr>,
}

impl ProxyArgs {
    /// Checks that the proxy is ready.
    ///
    /// # Errors
    ///
    /// Fails with the reason, if the proxy gives one.
    fn ready(&self) -> Result<(), String> {
        let admin = self.admin;
        let answer = get(&admin.to_string(), "/healthz/ready");
        match answer.map_err(|error| format!("no proxy answers at {admin}: {error}"))? {
            (200, _) => self.check_capture(),
            (503, body) => Err(format!("not ready: {}", body.trim_end())),
            (status, _) => Err(format!(
                "{admin} answers {status} for /healthz/ready: is it the admin server of a proxy?"
            )),
        }
    }

    /// Checks that connections of the workload are captured, if `--capture` is set.
    fn check_capture(&self) -> Result<(), String> {
        let Some(capture) = self.capture else {
            return Ok(());
        };
        let answer = get(&capture.to_string(), "/healthz/ready");
        match answer.map_err(|error| {
            format!("connections may not be captured: nothing answers at {capture}: {error}")
        })? {
            (200, _) => Ok(()),
            (_, body) => Err(body.trim_end().to_owned()),
        }
    }
}

/// Runs `strait health`.
pub fn health(args: &HealthArgs) -> u8 {
    exit(args.proxy.ready())
}

/// Runs `strait wait`.
pub fn wait(args: &WaitArgs) -> u8 {
    let end = Instant::now() + args.timeout;
    loop {
        let ready = args.proxy.ready();
        let left = end.saturating_duration_since(Instant::now());
        if ready.is_ok() || left.is_zero() {
            return exit(ready);
        }
        thread::sleep(PAUSE.min(left));
    }
}

/// Runs `strait drain`.
pub fn drain(args: &DrainArgs) -> u8 {
    let admin = args.admin;
    let answer = request("POST", &admin.to_string(), "/drain?announce");
    exit(match answer {
        Ok((200, _)) => Ok(()),
        Ok((status, _)) => Err(format!(
            "{admin} answers {status} for POST /drain: is it the admin server of a proxy?"
        )),
        Err(error) => Err(format!("no proxy answers at {admin}: {error}")),
    })
}

fn exit(ready: Result<(), String>) -> u8 {
    match ready {
        Ok(()) => EXIT_DONE,
        Err(reason) => {
            report(&reason);
            EXIT_INPUT
        }
    }
}
