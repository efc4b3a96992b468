//! TCP relay between a client and a server. It can drop all data of established connections without closing them, like
//! a firewall that lost its connection state.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use http::Request;
use http_body_util::BodyExt;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::Api;

/// Running relay; it ends with the test's runtime.
pub(super) struct Relay {
    address: SocketAddr,
    /// Number of the current generation. Data of connections of an older generation is dropped.
    generation: Arc<AtomicU64>,
}

impl Relay {
    /// Starts a relay before a server that speaks HTTP/1.1 without TLS.
    pub(super) async fn start(api: &Api) -> Relay {
        let server = serve(api.clone()).await;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let relay = Relay {
            address: listener.local_addr().unwrap(),
            generation: Arc::default(),
        };
        let generation = Arc::clone(&relay.generation);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let server = TcpStream::connect(server).await.unwrap();
                let ((from_client, to_client), (from_server, to_server)) =
                    (client.into_split(), server.into_split());
                tokio::spawn(forward(from_client, to_server, Arc::clone(&generation)));
                tokio::spawn(forward(from_server, to_client, Arc::clone(&generation)));
            }
        });
        relay
    }

    /// Drops all further data of the existing connections. New connections work.
    pub(super) fn drop_established(&self) {
        self.generation.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn kubeconfig(&self) -> String {
        let server = format!("http://{}", self.address);
        json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "relay",
            "clusters": [{"name": "relay", "cluster": {"server": server}}],
            "contexts": [{"name": "relay", "context": {"cluster": "relay", "user": "proxy"}}],
            "users": [{"name": "proxy", "user": {}}],
        })
        .to_string()
    }
}

async fn forward(
    mut from: tokio::net::tcp::OwnedReadHalf,
    mut to: tokio::net::tcp::OwnedWriteHalf,
    generation: Arc<AtomicU64>,
) {
    let own = generation.load(Ordering::Relaxed);
    let mut buffer = vec![0; 16 << 10];
    while let Ok(count @ 1..) = from.read(&mut buffer).await {
        let is_dropped = generation.load(Ordering::Relaxed) != own;
        if !is_dropped && to.write_all(&buffer[..count]).await.is_err() {
            break;
        }
    }
    if generation.load(Ordering::Relaxed) != own {
        // Not even the end is forwarded.
        std::future::pending::<()>().await;
    }
}

/// Serves `api` and returns its address.
async fn serve(api: Api) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(answer_all(stream, api.clone()));
        }
    });
    address
}

/// Answers the requests of a connection. Requests must not have a body.
async fn answer_all(mut stream: TcpStream, api: Api) -> Option<()> {
    let mut received = Vec::new();
    loop {
        let end = loop {
            if let Some(at) = received.windows(4).position(|part| part == b"\r\n\r\n") {
                break at + 4;
            }
            if stream.read_buf(&mut received).await.ok()? == 0 {
                return None;
            }
        };
        let head: Vec<u8> = received.drain(..end).collect();
        let head = String::from_utf8(head).unwrap();
        let uri = head.split(' ').nth(1)?.to_owned();
        let request = Request::get(uri).body(kube::client::Body::empty()).unwrap();
        let (parts, mut body) = api.clone().answer(request).await.ok()?.into_parts();
        let code = parts.status.as_u16();
        let head = format!(
            "HTTP/1.1 {code} x\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).await.ok()?;
        while let Some(frame) = body.frame().await {
            let data = frame.ok()?.into_data().ok()?;
            let size = format!("{:x}\r\n", data.len());
            let chunk = [size.as_bytes(), &data, b"\r\n"].concat();
            if !data.is_empty() {
                stream.write_all(&chunk).await.ok()?;
            }
        }
        stream.write_all(b"0\r\n\r\n").await.ok()?;
    }
}
