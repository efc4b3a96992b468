//! Probe of a container, on a connection of its own.

use http::StatusCode;

use super::connect::connect;
use super::{Action, ProbeRequest, Prober, grpc, http_get};
use crate::admin::reply::Reply;
use traffic::error::BoxError;

impl Prober {
    /// Sends the probe to the container.
    pub(super) async fn ask(&self, asked: ProbeRequest<'_>) -> Result<Reply, BoxError> {
        match &self.action {
            Action::Grpc { port, service } => {
                let stream = connect(asked.pod, *port).await?;
                Box::pin(grpc::ask(stream, service)).await?;
                Ok(passed("SERVING\n"))
            }
            Action::Http(get) => Box::pin(http_get::ask(get, asked)).await,
            Action::Tcp { port } => {
                connect(asked.pod, *port).await?;
                Ok(passed("connected\n"))
            }
        }
    }
}

fn passed(text: &str) -> Reply {
    Reply::text(StatusCode::OK, text)
}
