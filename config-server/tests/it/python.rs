//! Kubernetes client in Python, if `.ci/run` has installed it.

use std::path::Path;
use std::process::Command;

use crate::support::TestServer;

async fn python_client_works_unchanged(server: TestServer) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let python = root.join("../target/python-client/bin/python");
    let has_client = Command::new(&python)
        .args(["-c", "import kubernetes"])
        .output();
    if !has_client.is_ok_and(|output| output.status.success()) {
        println!("skipped: the Python client is not installed in target/python-client");
        return;
    }
    let mut command = Command::new(python);
    command
        .arg(root.join("tests/python/client.py"))
        .arg(server.data.path().join("admin.kubeconfig"));
    let output = tokio::task::spawn_blocking(move || command.output());
    let output = output.await.unwrap().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, error) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{out}\n{error}");
}

crate::support::on_each_store!(python_client_works_unchanged);
