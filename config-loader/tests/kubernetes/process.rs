//! Processes of the API server, for tests that restart it.

use std::path::PathBuf;
use std::process::Command;

use crate::cluster::until;

/// API server and its etcd, found by a directory with `apiserver.pid` and `etcd.pid`.
pub struct Process {
    directory: PathBuf,
}

impl Process {
    pub fn new(directory: PathBuf) -> Process {
        Process { directory }
    }

    fn id(&self, name: &str) -> String {
        let path = self.directory.join(name);
        let text = std::fs::read_to_string(&path)
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        text.trim().to_owned()
    }

    /// Returns the command line of a process.
    fn command(&self, name: &str) -> Vec<String> {
        let words = std::fs::read(format!("/proc/{}/cmdline", self.id(name))).unwrap();
        let words = words
            .split(|byte| *byte == 0)
            .filter(|word| !word.is_empty());
        words
            .map(|word| String::from_utf8(word.to_vec()).unwrap())
            .collect()
    }

    /// Kills the API server, runs `meanwhile`, and starts it again with the same command. A graceful shutdown would
    /// wait for its watches.
    pub async fn restart(&self, meanwhile: impl AsyncFnOnce(&Process)) {
        let command = self.command("apiserver.pid");
        let id = self.id("apiserver.pid");
        let killed = Command::new("kill")
            .args(["-s", "KILL", &id])
            .status()
            .unwrap();
        assert!(killed.success());
        let port = flag(&command, "--secure-port");
        let listener = || std::net::TcpListener::bind(format!("127.0.0.1:{port}"));
        until("its port is free", async || listener().is_ok()).await;
        meanwhile(self).await;
        let script = "\"$0\" \"$@\" >>apiserver.log 2>&1 </dev/null & echo $!";
        let started = Command::new("sh")
            .current_dir(&self.directory)
            .args(["-c", script])
            .args(&command)
            .output()
            .unwrap();
        // The script that started the server stops it by this file.
        std::fs::write(self.directory.join("apiserver.pid"), started.stdout).unwrap();
    }

    /// Returns the address of etcd's API.
    pub fn etcd(&self) -> String {
        let command = self.command("etcd.pid");
        flag(&command, "--advertise-client-urls")
    }
}

/// Returns the value of a flag: the next argument, or the text after `=`.
fn flag(command: &[String], name: &str) -> String {
    let mut words = command.iter();
    while let Some(word) = words.next() {
        match word.strip_prefix(name) {
            Some("") => return words.next().unwrap().clone(),
            Some(rest) if rest.starts_with('=') => return rest[1..].to_owned(),
            _ => {}
        }
    }
    panic!("{name} is not among {command:?}");
}
