//! Limits of connections.

use std::time::Duration;

use crate::support::TestServer;

/// Maximum time that a test waits.
const DEADLINE: Duration = Duration::from_secs(30);

#[tokio::test(flavor = "multi_thread")]
async fn connection_without_good_credentials_is_closed() {
    let server =
        TestServer::start_with(|settings| settings.anonymous_max = Duration::from_secs(1)).await;
    let mut admin = server.admin().await;
    assert_eq!(admin.get("/version").await.code, 200);
    let mut idle = server.client(None).await;
    let mut guesser = server.client(Some("strait_guess")).await;
    assert_eq!(guesser.get("/version").await.code, 401);
    let mut probe = server.client(None).await;
    let probing = async { while probe.try_get("/healthz").await.is_some() {} };
    for closed in [
        tokio::time::timeout(DEADLINE, idle.closed()).await,
        tokio::time::timeout(DEADLINE, guesser.closed()).await,
        tokio::time::timeout(DEADLINE, probing).await,
    ] {
        assert_eq!(closed, Ok(()));
    }
    assert_eq!(admin.get("/version").await.code, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_past_the_limit_wait() {
    let server = TestServer::start_with(|settings| settings.connections_max = 2).await;
    let mut first = server.admin().await;
    let mut second = server.admin().await;
    let third = async { server.admin().await.get("/version").await.code };
    let others = async {
        for _ in 0..20 {
            assert_eq!(first.get("/version").await.code, 200);
            assert_eq!(second.get("/version").await.code, 200);
        }
    };
    let mut third = std::pin::pin!(third);
    tokio::select! {
        code = &mut third => panic!("there are two connections: {code}"),
        () = others => {}
    }
    drop(first);
    assert_eq!(tokio::time::timeout(DEADLINE, third).await, Ok(200));
}
