//! Endpoints of the mesh: a server on all addresses of 127.0.0.0/8 whose responses name the requested address.

use std::io;
use std::net::Ipv4Addr;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::priority::Normal;
use crate::compare::failure::{Failure, context};

/// Maximum size of a request head, in bytes.
const HEAD_BYTES_MAX: usize = 16 * 1024;

/// Starts the server, and returns its port.
pub(super) fn start(normal: &Normal) -> Result<u16, Failure> {
    let listener = std::net::TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0));
    let listener = listener.map_err(context("cannot listen for the upstream"))?;
    listener
        .set_nonblocking(true)
        .map_err(context("the upstream"))?;
    let address = listener.local_addr().map_err(context("the upstream"))?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(context("cannot start a runtime"))?;
    normal.start(move || {
        runtime.block_on(async move {
            let Ok(listener) = TcpListener::from_std(listener) else {
                return;
            };
            while let Ok((stream, _)) = listener.accept().await {
                // A client that breaks off ends its connection only.
                tokio::spawn(async move { serve(stream).await.ok() });
            }
        });
    })?;
    Ok(address.port())
}

async fn serve(mut stream: TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let endpoint = stream.local_addr()?.ip();
    let answer =
        format!("HTTP/1.1 200 OK\r\nx-endpoint: {endpoint}\r\ncontent-length: 2\r\n\r\nok");
    let mut head = Vec::with_capacity(1024);
    loop {
        if stream.read_buf(&mut head).await? == 0 || head.len() > HEAD_BYTES_MAX {
            return Ok(());
        }
        if head.ends_with(b"\r\n\r\n") {
            head.clear();
            stream.write_all(answer.as_bytes()).await?;
        }
    }
}
