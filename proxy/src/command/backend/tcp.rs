//! TCP server that speaks first, as databases do: it sends a line with its name, then echoes everything that it
//! receives.

use std::sync::Arc;

use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};

use super::Workload;
use super::server::ACCEPT_PAUSE;

/// Serves as long as the thread runs.
pub(super) async fn serve(listener: std::net::TcpListener, workload: Arc<Workload>) {
    let Ok(listener) = TcpListener::from_std(listener) else {
        return;
    };
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                let greeting = format!("{workload}\n");
                tokio::task::spawn_local(async move { drop(echo(stream, &greeting).await) });
            }
            Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
        }
    }
}

async fn echo(mut stream: TcpStream, greeting: &str) -> std::io::Result<()> {
    let (mut from, mut to) = stream.split();
    to.write_all(greeting.as_bytes()).await?;
    tokio::io::copy(&mut from, &mut to).await?;
    to.shutdown().await
}
