//! Bulk load: bytes through a TCP connection in both directions at once.

use std::net::Ipv4Addr;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::compare::upstream::bulk::{ACK, BULK, SESSION_BYTES, discard, send};

/// Runs one session with the upstream; it counts once the upstream has confirmed that all bytes arrived.
pub(super) async fn session(port: u16) -> Result<bool, String> {
    through(port).await.map_err(|error| error.to_string())
}

async fn through(port: u16) -> std::io::Result<bool> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await?;
    stream.set_nodelay(true)?;
    stream.write_u8(BULK).await?;
    let (reader, mut writer) = stream.split();
    let (received, sent) = tokio::join!(discard(reader.as_ref(), SESSION_BYTES), send(&mut writer));
    received.and(sent)?;
    if stream.read_u8().await? != ACK {
        return Err(std::io::ErrorKind::InvalidData.into());
    }
    Ok(true)
}
