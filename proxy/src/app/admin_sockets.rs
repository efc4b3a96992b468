//! The sockets of the admin server and of the health pages.

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::net::TcpListener;

use super::pages;
use super::settings::Settings;
use super::start_error::{StartError, failed};
use crate::admin::{self, AdminLimits, Offer};
use crate::listener::socket::refusal;

/// Sockets that listen, and are not served yet.
pub(super) struct AdminSockets {
    admin: TcpListener,
    health: Option<TcpListener>,
    address: SocketAddr,
}

impl AdminSockets {
    /// Listens where the settings say.
    pub(super) async fn open(settings: &Settings) -> Result<Self, StartError> {
        let admin = bind(settings.admin, "the admin server", "--admin").await?;
        let health = match settings.health {
            Some(address) => Some(bind(address, "the health pages", "--health").await?),
            None => None,
        };
        Ok(Self {
            address: admin.local_addr().unwrap_or(settings.admin),
            admin,
            health,
        })
    }

    /// Where the admin server listens.
    pub(super) fn admin(&self) -> SocketAddr {
        self.address
    }

    /// Answers for as long as the process lives.
    pub(super) fn serve(self, sources: pages::Sources) {
        let state = Arc::new(sources.admin());
        let health = self.health.map(|health| (health, Offer::Health));
        for (listener, offer) in health.into_iter().chain([(self.admin, Offer::All)]) {
            let (state, limits) = (Arc::clone(&state), AdminLimits::default());
            let until = std::future::pending();
            tokio::spawn(admin::serve(listener, state, offer, limits, until));
        }
    }
}

async fn bind(address: SocketAddr, who: &str, flag: &str) -> Result<TcpListener, StartError> {
    let what = format!("{who} cannot listen on {address} ({flag})");
    let refused = |error| failed(&what)(refusal(address, &error));
    TcpListener::bind(address).await.map_err(refused)
}
