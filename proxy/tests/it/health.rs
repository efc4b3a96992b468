//! `strait health` and `strait wait`.

use std::net::SocketAddr;
use std::process::{Command, Output, Stdio};

use crate::support::eventually;
use crate::support::mesh::everything_to;
use crate::support::origin::{Back, Origin};
use crate::support::proxy::{Start, free_address};

fn strait(command: &str, admin: SocketAddr) -> Command {
    let mut strait = Command::new(env!("CARGO_BIN_EXE_strait"));
    strait.args([command, "--admin", &admin.to_string()]);
    strait
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn health_fails_where_no_proxy_answers() {
    let admin = free_address();
    let output = strait("health", admin).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let reason = stderr(&output);
    assert!(
        reason.starts_with(&format!("strait: no proxy answers at {admin}: ")),
        "{reason}"
    );
}

#[test]
fn wait_gives_up_after_its_timeout() {
    let mut wait = strait("wait", free_address());
    let output = wait.args(["--timeout", "150ms"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("no proxy answers"));
}

#[test]
fn wait_ends_and_health_succeeds_when_the_proxy_becomes_ready() {
    let origin = Origin::named(Back::H1, "hello");
    let proxy = Start::new().file("empty.yaml", "# nothing yet\n").spawn();
    eventually("the admin server answers", || {
        proxy.try_page("GET", "/healthz/live").is_ok()
    });
    let output = strait("health", proxy.admin).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr(&output).starts_with("strait: not ready: "),
        "{}",
        stderr(&output)
    );
    let mut wait = strait("wait", proxy.admin)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    assert!(wait.try_wait().unwrap().is_none(), "the proxy is not ready");
    proxy.write("mesh.yaml", everything_to(proxy.edge, &origin));
    assert!(wait.wait().unwrap().success());
    let output = strait("health", proxy.admin).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
}
