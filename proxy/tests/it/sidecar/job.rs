//! Sidecar of a job, which ends once the process of the workload has ended.

use std::process::{Child, Command, Stdio};

use crate::support::eventually;
use crate::support::proxy::{Proxy, Start};

/// Process that runs until it is killed.
struct Job(Child);

impl Job {
    fn start() -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_strait"));
        command.args(["backend", "--listen", "127.0.0.1:0"]);
        Self(
            command
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap(),
        )
    }

    fn pid(&self) -> String {
        self.0.id().to_string()
    }

    fn end(&mut self) {
        self.0.kill().unwrap();
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        // it may have ended already
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn with(process: &str) -> Start {
    Start::new().args(["--allow-empty", "--exit-with-pid", process])
}

#[track_caller]
fn ends_with(mut proxy: Proxy, mut job: Job) {
    assert!(proxy.ended().is_none());
    job.end();
    assert!(proxy.wait().success());
    let log = proxy.stderr();
    assert!(
        log.contains("the process of the workload has ended"),
        "{log}"
    );
}

#[test]
fn proxy_drains_and_exits_with_0_when_the_process_has_ended() {
    let job = Job::start();
    let proxy = with(&job.pid()).start();
    ends_with(proxy, job);
}

#[test]
fn number_of_the_process_may_come_later_in_a_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("pid");
    let proxy = with(path.to_str().unwrap()).start();
    std::fs::write(&path, "").unwrap();
    let job = Job::start();
    std::fs::write(&path, format!("{}\n", job.pid())).unwrap();
    eventually("the file is read", || {
        proxy.stderr().contains("the proxy ends with this process")
    });
    ends_with(proxy, job);
}

#[test]
fn job_that_has_ended_before_its_number_is_read_ends_the_proxy() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("pid");
    // above the largest number that Linux gives to a process
    std::fs::write(&path, "4194305").unwrap();
    let mut proxy = with(path.to_str().unwrap()).spawn();
    assert!(proxy.wait().success());
    let log = proxy.stderr();
    assert!(log.contains("taken to have ended"), "{log}");
}

#[test]
fn process_that_cannot_be_watched_is_an_error_with_its_fix() {
    let directory = tempfile::tempdir().unwrap();
    let garbage = directory.path().join("garbage");
    std::fs::write(&garbage, "pid=7").unwrap();
    for (process, message) in [
        ("4194305", "shareProcessNamespace: true"),
        (directory.path().to_str().unwrap(), "cannot read"),
        (garbage.to_str().unwrap(), "this number and nothing else"),
    ] {
        let mut proxy = with(process).spawn();
        assert_eq!(proxy.wait().code(), Some(1), "{process}");
        let log = proxy.stderr();
        assert!(log.contains("--exit-with-pid"), "{process}: {log}");
        assert!(log.contains(message), "{process}: {log}");
    }
}
