//! `strait iptables hold`: reports whether connections are captured, and restores the capture.

use std::process::{Child, Command, Output};

use rustix::process::{Pid, Signal, kill_process};

use super::lab::{Lab, Node};
use crate::support::eventually;

const LISTEN: &str = "127.0.0.1:15022";

/// Running holder, stopped on drop.
struct Holder(Child);

impl Drop for Holder {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs `strait health` against the holder, which answers in place of a proxy, with the capture at that address.
fn health(node: &Node, capture: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_strait"));
    command.args(["health", "--admin", LISTEN, "--capture", capture]);
    node.run(command)
}

#[test]
fn health_says_whether_connections_are_captured() {
    Lab::with_each_backend(1, |lab, backend| {
        let [node] = lab.nodes();
        let flags = ["--proxy-uid", "1337"]
            .into_iter()
            .chain(backend.split(' '));
        let flags: Vec<&str> = flags.collect();
        node.install(&flags.join(" "));
        let installed = node.state();
        assert!(node.iptables("remove").status.success());
        assert!(!health(node, LISTEN).status.success(), "nothing answers");

        let mut command = Command::new(env!("CARGO_BIN_EXE_strait"));
        command
            .args(["iptables", "hold", "--listen", LISTEN])
            .args(&flags);
        let mut holder = Holder(node.spawn(0, command));
        eventually("the holder answers", || {
            health(node, LISTEN).status.success()
        });
        assert_eq!(node.state(), installed, "{backend}");
        let other = health(node, "127.0.0.1:9");
        let said = String::from_utf8_lossy(&other.stderr).into_owned();
        assert!(said.contains("connections may not be captured"), "{said}");

        // Rules that somebody removes are back when the next client asks.
        assert!(node.iptables("remove").status.success());
        assert_ne!(node.state(), installed);
        assert!(health(node, LISTEN).status.success());
        assert_eq!(node.state(), installed, "{backend}");

        // So is one of its tables, of either IP version.
        if backend.ends_with("native") {
            for family in ["ip", "ip6"] {
                let mut delete = Command::new("nft");
                delete.args(["delete", "table", family, "strait_nat"]);
                assert!(node.run(delete).status.success());
                assert!(health(node, LISTEN).status.success());
                assert_eq!(node.state(), installed, "{family}");
            }
        }

        let pid = i32::try_from(holder.0.id()).ok().and_then(Pid::from_raw);
        kill_process(pid.unwrap(), Signal::TERM).unwrap();
        assert!(holder.0.wait().unwrap().success());
        assert_eq!(node.state(), installed, "the rules stay");
    });
}
