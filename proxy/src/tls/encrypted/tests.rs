use std::future::Future;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, SignatureScheme};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::*;
use crate::tls::material::{Identity, IdentityPem};
use crate::tls::{Alpn, ServerSettings, ServerTls, Version};

/// Accepts any certificate: these tests are about the record layer.
#[derive(Debug)]
struct Anything;

impl ServerCertVerifier for Anything {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        let provider = rustls::crypto::aws_lc_rs::default_provider();
        provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}

fn server(version_max: Version) -> Arc<ServerConfig> {
    let pair = crate::pki::Authority::new("ca").server(&["a.example"]);
    let pem = IdentityPem {
        chain: ("chain", pair.chain.as_bytes()),
        key: ("key", pair.key.as_bytes()),
    };
    let identity = Arc::new(Identity::read(pem).unwrap());
    let settings = ServerSettings {
        version_max,
        alpn: Alpn::Http,
        ..ServerSettings::default()
    };
    let tls = ServerTls::new(&settings, vec![identity], None).unwrap();
    Arc::clone(tls.config([&b"h2"[..]]))
}

fn client() -> TlsConnector {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Anything))
        .with_no_client_auth();
    TlsConnector::from(Arc::new(config))
}

/// Returns both ends of a connection over a pipe with this capacity in bytes.
async fn pair(version: Version, pipe: usize) -> (TlsStream<DuplexStream>, Encrypted<DuplexStream>) {
    let (near, far) = duplex(pipe);
    let name = ServerName::try_from("a.example").unwrap();
    let (ours, theirs) = tokio::join!(
        Encrypted::accept(far, server(version)),
        client().connect(name, near),
    );
    (theirs.unwrap(), ours.unwrap())
}

async fn both<A, B>(a: impl Future<Output = A>, b: impl Future<Output = B>) -> (A, B) {
    tokio::join!(a, b)
}

const VERSIONS: [Version; 2] = [Version::Tls12, Version::Tls13];

#[tokio::test]
async fn bytes_pass_in_both_directions_with_any_pipe_size() {
    let sent: Vec<u8> = (0..300_000_u32).map(|n| (n % 251) as u8).collect();
    for version in VERSIONS {
        for pipe in [700, 20_000, 1_000_000] {
            let (mut theirs, mut ours) = pair(version, pipe).await;
            let mut received = vec![0; sent.len()];
            let (written, read) = both(
                async {
                    theirs.write_all(&sent).await?;
                    theirs.flush().await
                },
                ours.read_exact(&mut received),
            )
            .await;
            written.unwrap();
            read.unwrap();
            assert!(received == sent, "to us, pipe {pipe}");

            received.fill(0);
            let (written, read) = both(
                async {
                    ours.write_all(&sent).await?;
                    ours.flush().await
                },
                theirs.read_exact(&mut received),
            )
            .await;
            written.unwrap();
            read.unwrap();
            assert!(received == sent, "from us, pipe {pipe}");
        }
    }
}

#[tokio::test]
async fn idle_connection_holds_no_buffer() {
    let (mut theirs, mut ours) = pair(Version::Tls13, 1 << 20).await;
    theirs.write_all(b"ping").await.unwrap();
    theirs.flush().await.unwrap();
    let mut received = [0; 4];
    ours.read_exact(&mut received).await.unwrap();
    ours.write_all(b"pong").await.unwrap();
    ours.flush().await.unwrap();
    let nothing = poll_fn(|cx| {
        let mut space = [0; 4];
        let polled = Pin::new(&mut ours).poll_read(cx, &mut ReadBuf::new(&mut space));
        Poll::Ready(polled.is_pending())
    });
    assert!(nothing.await);
    assert_eq!(ours.incoming.capacity() + ours.outgoing.capacity(), 0);
    let size = size_of::<Encrypted<DuplexStream>>();
    assert!(size <= 2_048, "{size} bytes for each connection");
}

#[tokio::test]
async fn close_notify_is_end_of_stream_and_truncation_is_an_error() {
    for version in VERSIONS {
        let (mut theirs, mut ours) = pair(version, 1 << 20).await;
        theirs.write_all(b"last").await.unwrap();
        theirs.shutdown().await.unwrap();
        let mut received = Vec::new();
        ours.read_to_end(&mut received).await.unwrap();
        assert_eq!(received, b"last");
        ours.write_all(b"after").await.unwrap();
        ours.shutdown().await.unwrap();
        let mut answer = Vec::new();
        theirs.read_to_end(&mut answer).await.unwrap();
        assert_eq!(answer, b"after", "half of the connection stays open");

        let (theirs, mut ours) = pair(version, 1 << 20).await;
        drop(theirs);
        let error = ours.read(&mut [0; 8]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    }
}

#[tokio::test]
async fn small_chunks_are_sent_in_one_record() {
    for (lengths, expected) in [
        (&[100, 200][..], &[300][..]),
        (&[5, 0, 5], &[10]),
        (&[16_384], &[16_384]),
        (&[100, 40_000], &[16_384, 16_384, 7_332]),
        (&[16_384, 16_384, 1], &[16_384, 16_384, 1]),
        (&[100_000], &[16_384, 16_384, 16_384, 16_384]),
        (&[60_000, 60_000], &[16_384, 16_384, 16_384, 16_384]),
        (&[], &[]),
    ] {
        let pieces: Vec<Vec<u8>> = lengths.iter().map(|length| vec![7; *length]).collect();
        let slices: Vec<IoSlice<'_>> = pieces.iter().map(|piece| IoSlice::new(piece)).collect();
        let mut records = Vec::new();
        buffer::records(&slices, |plain| {
            records.push(plain.len());
            Ok(())
        })
        .unwrap();
        assert_eq!(records, expected, "{lengths:?}");
    }
}

#[tokio::test]
async fn invalid_bytes_and_timeouts_fail_the_handshake() {
    for (bytes, expected) in [
        (&b"GET / HTTP/1.1\r\n\r\n"[..], Reason::Protocol),
        (&[0x16, 3, 1, 0xff, 0xff, 1], Reason::Protocol),
        (b"", Reason::Closed),
        (&[0x16, 3, 1, 0, 9], Reason::Closed),
    ] {
        let (mut near, far) = duplex(4096);
        near.write_all(bytes).await.unwrap();
        near.shutdown().await.unwrap();
        let failure = Encrypted::accept(far, server(Version::Tls13))
            .await
            .unwrap_err();
        assert_eq!(failure.reason, expected, "{failure}");
    }
}

/// Returns the client's end over a real socket, and the server's.
async fn client_of_a_socket() -> (
    Encrypted<tokio::net::UnixStream, UnbufferedClientConnection>,
    tokio_rustls::server::TlsStream<tokio::net::UnixStream>,
) {
    let (near, far) = tokio::net::UnixStream::pair().unwrap();
    let config = Arc::clone(client().config());
    let name = ServerName::try_from("a.example").unwrap();
    let acceptor = tokio_rustls::TlsAcceptor::from(server(Version::Tls13));
    let (ours, theirs) =
        tokio::join!(Encrypted::connect(near, config, name), acceptor.accept(far),);
    (ours.unwrap(), theirs.unwrap())
}

#[tokio::test]
async fn session_ticket_is_no_data_and_close_notify_is_end_of_stream() {
    let (mut ours, mut theirs) = client_of_a_socket().await;
    let mut look = |space: &mut [u8]| {
        ours.try_read(space, |socket, space| {
            // the kernel has the bytes already: both ends are in this process
            socket.try_read(space)
        })
    };
    theirs.flush().await.unwrap();
    tokio::task::yield_now().await;
    let nothing = look(&mut [0; 8]).unwrap_err();
    assert_eq!(nothing.kind(), io::ErrorKind::WouldBlock, "tickets came");
    theirs.write_all(b"word").await.unwrap();
    theirs.flush().await.unwrap();
    let mut space = [0; 8];
    assert_eq!(read_soon(&mut look, &mut space).await.unwrap(), 4);
    assert_eq!(&space[..4], b"word");
    theirs.shutdown().await.unwrap();
    assert_eq!(read_soon(&mut look, &mut space).await.unwrap(), 0);
}

/// Reads until bytes are available; the poller may need a turn to notice them.
async fn read_soon(
    look: &mut impl FnMut(&mut [u8]) -> io::Result<usize>,
    space: &mut [u8],
) -> io::Result<usize> {
    loop {
        match look(space) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                tokio::task::yield_now().await;
            }
            read => return read,
        }
    }
}

#[tokio::test]
async fn client_and_server_complete_a_handshake() {
    let (near, far) = duplex(4096);
    let name = ServerName::try_from("a.example").unwrap();
    let (ours, theirs) = tokio::join!(
        Encrypted::connect(near, Arc::clone(client().config()), name),
        Encrypted::accept(far, server(Version::Tls13)),
    );
    let (mut ours, mut theirs) = (ours.unwrap(), theirs.unwrap());
    let sent: Vec<u8> = (0..100_000_u32).map(|n| (n % 251) as u8).collect();
    let mut received = vec![0; sent.len()];
    let (written, read) = both(
        async {
            ours.write_all(&sent).await?;
            ours.shutdown().await
        },
        theirs.read_exact(&mut received),
    )
    .await;
    written.unwrap();
    read.unwrap();
    assert!(received == sent);
    let size = size_of::<Encrypted<DuplexStream, UnbufferedClientConnection>>();
    assert!(size <= 2_048, "{size} bytes for each connection");
}
