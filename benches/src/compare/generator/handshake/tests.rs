use std::path::Path;
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs::Ticketer;
use rustls_pki_types::PrivateKeyDer;
use rustls_pki_types::pem::PemObject as _;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::*;
use crate::compare::tls::Credentials;

/// Test server that presents a certificate, issues this many session tickets, and responds with this many bytes.
struct Server {
    tickets: usize,
    body_bytes: usize,
}

const USUAL: Server = Server {
    tickets: 2,
    body_bytes: SMALL_BODY,
};

impl Server {
    fn config(&self, shown: &Credentials) -> ServerConfig {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let certificate = tls::read_certificate(&shown.certificate).unwrap();
        let key = PrivateKeyDer::from_pem_file(&shown.key).unwrap();
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate], key)
            .unwrap();
        config.ticketer = Ticketer::new().unwrap();
        config.send_tls13_tickets = self.tickets;
        config
    }

    async fn serve(&self, listener: TcpListener, acceptor: TlsAcceptor) -> io::Result<()> {
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n",
            self.body_bytes
        );
        let mut response = head.into_bytes();
        response.resize(response.len() + self.body_bytes, b'x');
        loop {
            let (stream, _) = listener.accept().await?;
            // A client that refuses what it sees ends its own connection only.
            let _ = answer(&acceptor, stream, &response).await;
        }
    }
}

async fn answer(acceptor: &TlsAcceptor, stream: TcpStream, response: &[u8]) -> io::Result<()> {
    let mut stream = acceptor.accept(stream).await?;
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") && stream.read_buf(&mut head).await? > 0 {}
    stream.write_all(response).await?;
    stream.shutdown().await
}

/// Connects to the server three times with the same client, and returns the results of [`Caller::once`].
fn calls(
    server: &Server,
    work: GeneratedWork,
    expected: Option<&Path>,
) -> [Result<bool, String>; 3] {
    let directory = tempfile::tempdir().unwrap();
    let shown = Credentials::make(directory.path()).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()
        .unwrap();
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let wanted = Generate {
            work,
            port: listener.local_addr().unwrap().port(),
            connections: 1,
            in_flight: 1,
            seconds: 1,
            path: "/".to_owned(),
            pid: None,
            certificate: Some(expected.unwrap_or(&shown.certificate).to_owned()),
        };
        let caller = Caller::new(&wanted).unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(server.config(&shown)));
        let three = async {
            [
                caller.once().await,
                caller.once().await,
                caller.once().await,
            ]
        };
        tokio::select! {
            results = three => results,
            served = server.serve(listener, acceptor) => panic!("the server ended: {served:?}"),
        }
    })
}

#[test]
fn full_handshakes_are_counted_and_never_resumed() {
    let counted = calls(&USUAL, GeneratedWork::Full, None);
    assert_eq!(counted, [Ok(true), Ok(true), Ok(true)]);
}

#[test]
fn sessions_are_resumed_after_the_first_which_does_not_count() {
    let counted = calls(&USUAL, GeneratedWork::Resumed, None);
    assert_eq!(counted, [Ok(false), Ok(true), Ok(true)]);
}

#[test]
fn server_without_tickets_fails_whoever_resumes() {
    let server = Server {
        tickets: 0,
        ..USUAL
    };
    let counted = calls(&server, GeneratedWork::Resumed, None);
    assert_eq!(counted[0], Ok(false));
    assert!(counted[1].is_err() && counted[2].is_err());
}

#[test]
fn short_body_is_a_failure() {
    let server = Server {
        body_bytes: SMALL_BODY - 1,
        ..USUAL
    };
    let counted = calls(&server, GeneratedWork::Full, None);
    assert!(counted.iter().all(Result::is_err));
}

#[test]
fn other_certificate_is_a_failure() {
    let directory = tempfile::tempdir().unwrap();
    let other = Credentials::make(directory.path()).unwrap();
    let counted = calls(&USUAL, GeneratedWork::Full, Some(&other.certificate));
    assert!(counted.iter().all(Result::is_err));
}
