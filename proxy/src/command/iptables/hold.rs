//! Server of `strait iptables hold`, which reports whether connections are captured.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime;
use tokio::time::{Duration, sleep, timeout};

use crate::command::control::stopped;
use crate::command::report;

/// Timeout for the head of a request: a silent client delays the others no longer than this.
const HEAD_WAIT: Duration = Duration::from_millis(200);

/// Maximum time for a client to send its request and read the response.
const PATIENCE: Duration = Duration::from_secs(5);

/// Responds to every request with the result of `ensure`: whether the rules are in place. Ends on a signal.
///
/// # Errors
///
/// Fails if the address cannot be listened on.
pub(crate) fn serve(
    address: SocketAddr,
    ensure: impl Fn() -> Result<(), String>,
) -> Result<(), String> {
    let runtime = runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| format!("cannot start: {error}"))?;
    runtime.block_on(async {
        let listener = TcpListener::bind(address).await;
        let listener = listener.map_err(|error| format!("cannot listen on {address}: {error}"))?;
        tokio::select! {
            () = accept(&listener, &ensure) => Ok(()),
            stopped = stopped() => stopped,
        }
    })
}

async fn accept(listener: &TcpListener, ensure: &impl Fn() -> Result<(), String>) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => _ = timeout(PATIENCE, answer(stream, ensure)).await,
            Err(error) => {
                report(&format!("a connection cannot be accepted: {error}"));
                sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

/// Responds to one request, whatever its content.
async fn answer(mut stream: TcpStream, ensure: &impl Fn() -> Result<(), String>) {
    // The head of a small request arrives in one piece, and nothing in it matters.
    let mut head = [0; 4_096];
    let _ = timeout(HEAD_WAIT, stream.read(&mut head)).await;
    let (status, body) = match ensure() {
        Ok(()) => ("200 OK", "connections are captured\n".to_owned()),
        Err(error) => (
            "503 Service Unavailable",
            format!("connections are not captured: {error}\n"),
        ),
    };
    let length = body.len();
    let response = format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/plain\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
    );
    // The client may have closed the connection.
    let _ = stream.write_all(response.as_bytes()).await;
    let _ = stream.shutdown().await;
}
