//! The sockets of the admin server, of the health pages, and of the metrics.

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::Arc;

use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::watch;

use super::pages;
use super::settings::Settings;
use super::start_error::{StartError, failed};
use crate::admin::{self, AdminLimits, PageSet};
use crate::listener::socket::refusal;

/// Sockets that listen and are not served yet.
pub(super) struct AdminSockets {
    admin: TcpListener,
    health: Option<TcpListener>,
    metrics: Option<TcpListener>,
    address: SocketAddr,
}

/// Sockets that another process has opened.
#[derive(Default)]
pub(super) struct OpenedSockets {
    pub(super) admin: Option<std::net::TcpListener>,
    pub(super) health: Option<std::net::TcpListener>,
}

impl AdminSockets {
    /// Listens on the configured addresses, and reuses open sockets that have these addresses.
    pub(super) async fn open(
        settings: &Settings,
        opened: OpenedSockets,
    ) -> Result<Self, StartError> {
        let admin = match at(opened.admin, settings.admin) {
            Some(admin) => admin,
            None => bind(settings.admin, "the admin server", "--admin").await?,
        };
        let health = match settings.health {
            Some(address) => Some(match at(opened.health, address) {
                Some(health) => health,
                None => bind(address, "the health pages", "--health").await?,
            }),
            None => None,
        };
        Ok(Self {
            address: admin.local_addr().unwrap_or(settings.admin),
            admin,
            health,
            metrics: settings.metrics.map(shared).transpose()?,
        })
    }

    /// Address of the admin server.
    pub(super) fn admin(&self) -> SocketAddr {
        self.address
    }

    /// Duplicates the sockets for a process that takes over.
    ///
    /// # Errors
    ///
    /// Fails when the process has no file descriptor left.
    pub(super) fn share(&self) -> io::Result<OpenedSockets> {
        Ok(OpenedSockets {
            admin: Some(self.admin.as_fd().try_clone_to_owned()?.into()),
            health: match &self.health {
                Some(health) => Some(health.as_fd().try_clone_to_owned()?.into()),
                None => None,
            },
        })
    }

    /// Serves the pages until the sockets are handed over.
    pub(super) fn serve(self, sources: pages::Sources, handed_over: &watch::Receiver<bool>) {
        let state = Arc::new(sources.admin());
        let health = self.health.map(|health| (health, PageSet::Health));
        let metrics = self.metrics.map(|metrics| (metrics, PageSet::Metrics));
        let of_guests = health.into_iter().chain(metrics);
        for (listener, offer) in of_guests.chain([(self.admin, PageSet::All)]) {
            let (state, limits) = (Arc::clone(&state), AdminLimits::default());
            let mut handed_over = handed_over.clone();
            let until = async move {
                if handed_over.wait_for(|is_so| *is_so).await.is_err() {
                    std::future::pending::<()>().await;
                }
            };
            tokio::spawn(admin::serve(listener, state, offer, limits, until));
        }
    }
}

/// Returns the socket if it listens on this address.
fn at(opened: Option<std::net::TcpListener>, address: SocketAddr) -> Option<TcpListener> {
    let opened = opened.filter(|socket| socket.local_addr().is_ok_and(|at| at == address))?;
    opened.set_nonblocking(true).ok()?;
    TcpListener::from_std(opened).ok()
}

async fn bind(address: SocketAddr, who: &str, flag: &str) -> Result<TcpListener, StartError> {
    let what = format!("{who} cannot listen on {address} ({flag})");
    let refused = |error| failed(&what)(refusal(address, &error));
    TcpListener::bind(address).await.map_err(refused)
}

/// Listens for scrapers. A process that takes over listens on the same address before this one stops.
fn shared(address: SocketAddr) -> Result<TcpListener, StartError> {
    let what = format!("the metrics cannot be served on {address} (--metrics)");
    let listen = || {
        let socket = match address {
            SocketAddr::V4(_) => TcpSocket::new_v4()?,
            SocketAddr::V6(_) => TcpSocket::new_v6()?,
        };
        socket.set_reuseaddr(true)?;
        socket.set_reuseport(true)?;
        socket.bind(address)?;
        socket.listen(128)
    };
    listen().map_err(|error| failed(&what)(refusal(address, &error)))
}
