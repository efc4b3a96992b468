//! Kubernetes client in Go, if `.ci/run` has built it.

use std::path::Path;
use std::process::Command;

use crate::support::TestServer;

async fn go_client_works_unchanged(server: TestServer) {
    let judge = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/client-go/judge");
    if !judge.exists() {
        println!("skipped: the Go client is not built in target/client-go");
        return;
    }
    let mut command = Command::new(judge);
    command.arg(server.data.path().join("admin.kubeconfig"));
    let output = tokio::task::spawn_blocking(move || command.output());
    let output = output.await.unwrap().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, error) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{out}\n{error}");
}

crate::support::on_each_store!(go_client_works_unchanged);
