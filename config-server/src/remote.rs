//! API servers that Strait writes to.

use std::path::PathBuf;
use std::time::Duration;

use config_loader::ApiServer;
use config_loader::source::connect;
use kube::Client;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{Mutex, mpsc};

/// Delay before a full feed is tried again.
const FULL_PAUSE: Duration = Duration::from_millis(5);

/// API server that Strait writes to.
pub struct Remote {
    server: ApiServer,
    kubeconfig: Option<PathBuf>,
    client: Mutex<Option<Client>>,
}

impl Clone for Remote {
    /// Returns the same API server, with a client of its own.
    fn clone(&self) -> Remote {
        Remote::new(self.server.clone(), self.kubeconfig.clone())
    }
}

impl std::fmt::Debug for Remote {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut remote = f.debug_struct("Remote");
        remote.field("server", &self.server).finish_non_exhaustive()
    }
}

impl Remote {
    /// Returns the API server with the credentials of a kubeconfig.
    pub fn new(server: ApiServer, kubeconfig: Option<PathBuf>) -> Remote {
        Remote {
            server,
            kubeconfig,
            client: Mutex::new(None),
        }
    }

    /// Returns the client; a new one after the credentials were rejected.
    ///
    /// # Errors
    /// If the credentials cannot be read, as a message.
    pub async fn client(&self) -> Result<Client, String> {
        let mut client = self.client.lock().await;
        if let Some(client) = &*client {
            return Ok(client.clone());
        }
        let made = connect(&self.server, self.kubeconfig.as_deref()).await?;
        Ok(client.insert(made).clone())
    }

    /// Returns the name of the API server for messages.
    pub fn name(&self) -> String {
        self.server.name()
    }

    /// Drops the client, whose credentials were rejected.
    pub async fn forget_client(&self) {
        self.client.lock().await.take();
    }
}

/// Sends a message from a blocking thread, and waits while the feed is full. Returns false if the receiver was
/// dropped.
pub fn send<T>(feed: &mpsc::Sender<T>, mut message: T) -> bool {
    loop {
        message = match feed.try_send(message) {
            Ok(()) => return true,
            Err(TrySendError::Closed(_)) => return false,
            Err(TrySendError::Full(message)) => message,
        };
        std::thread::sleep(FULL_PAUSE);
    }
}
