//! Connects to API servers.

use std::path::Path;
use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::runtime::utils::{Backoff, ResetTimerBackoff};
use kube::{Client, Config};

use super::settings::ApiServer;

/// How long a connection may take to be made.
const CONNECT_MAX: Duration = Duration::from_secs(5);

/// The pauses between attempts: the first, the longest, and after how long without an error the first counts again.
const PAUSE_MIN: Duration = Duration::from_millis(200);
const PAUSE_MAX: Duration = Duration::from_secs(5);
const PAUSE_RESET: Duration = Duration::from_secs(30);

/// How long a server may take to answer a question about what it serves.
pub(super) const ANSWER_MAX: Duration = Duration::from_secs(10);

/// A client of `server`. The kubeconfig is read anew each time, so that new credentials count; `Err` says in words what is
/// missing.
pub(super) async fn connect(
    server: &ApiServer,
    kubeconfig: Option<&Path>,
) -> Result<Client, String> {
    let mut config = configure(server, kubeconfig).await?;
    config.connect_timeout = Some(CONNECT_MAX);
    // Watches have a back-off of their own.
    config.default_retry = false;
    Client::try_from(config).map_err(|error| error.to_string())
}

/// The pauses between attempts, twice as long each time. A random part keeps proxies that lost a server together from coming back
/// together.
pub(super) fn pauses() -> impl Backoff + 'static {
    ResetTimerBackoff::new(Pauses(growing().build()), PAUSE_RESET)
}

struct Pauses(ExponentialBackoff);

fn growing() -> ExponentialBuilder {
    ExponentialBuilder::new()
        .with_min_delay(PAUSE_MIN)
        .with_max_delay(PAUSE_MAX)
        .with_jitter()
        .without_max_times()
}

impl Iterator for Pauses {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        self.0.next()
    }
}

impl Backoff for Pauses {
    fn reset(&mut self) {
        self.0 = growing().build();
    }
}

async fn configure(server: &ApiServer, kubeconfig: Option<&Path>) -> Result<Config, String> {
    let options = KubeConfigOptions {
        context: Some(server.context.clone()).filter(|context| !context.is_empty()),
        ..KubeConfigOptions::default()
    };
    let of = |error: &dyn std::error::Error| super::problems::with_causes(error);
    match kubeconfig {
        Some(path) => {
            let read = Kubeconfig::read_from(path).map_err(|error| of(&error))?;
            let config = Config::from_custom_kubeconfig(read, &options).await;
            config.map_err(|error| of(&error))
        }
        None if options.context.is_some() => {
            let config = Config::from_kubeconfig(&options).await;
            config.map_err(|error| of(&error))
        }
        None => Config::infer().await.map_err(|error| of(&error)),
    }
}
