//! Server in a process of its own, which tests can kill.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use config_server::store::etcd::EtcdSettings;
use config_server::{Settings, start};
use tempfile::TempDir;

use crate::support::Client;

/// Maximum time until the server listens.
const START_MAX: Duration = Duration::from_secs(60);
/// Interval between readiness checks.
const ASK_EVERY: Duration = Duration::from_millis(5);

/// Server process, killed on drop.
pub struct ServerProcess {
    pub data: TempDir,
    pub address: SocketAddr,
    etcd: Option<EtcdSettings>,
    child: Option<Child>,
}

impl ServerProcess {
    /// Returns a server with new data that is not started. It keeps its address across restarts.
    pub fn new(etcd: Option<EtcdSettings>) -> ServerProcess {
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        ServerProcess {
            data: tempfile::tempdir().unwrap(),
            address: free.local_addr().unwrap(),
            etcd,
            child: None,
        }
    }

    /// Starts the process: the program in `STRAIT_TEST_CONTROL`, or else this executable with [`server_process`].
    pub fn spawn(&mut self) {
        let mut command = match std::env::var_os("STRAIT_TEST_CONTROL") {
            Some(program) => self.program(program.into()),
            None => self.own_program(),
        };
        let child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        self.child = Some(child.spawn().unwrap());
    }

    fn program(&self, program: PathBuf) -> Command {
        let mut command = Command::new(program);
        command.args(["control", "--listen", &self.address.to_string(), "--data"]);
        command.arg(self.data.path());
        if let Some(etcd) = &self.etcd {
            command.args([
                "--etcd",
                &etcd.urls.join(","),
                "--etcd-prefix",
                &etcd.prefix,
            ]);
        }
        command
    }

    fn own_program(&self) -> Command {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args(["--exact", "process::server_process", "--ignored"])
            .env("STRAIT_TEST_DATA", self.data.path())
            .env("STRAIT_TEST_LISTEN", self.address.to_string());
        if let Some(etcd) = &self.etcd {
            command.env("STRAIT_TEST_ETCD", etcd.urls.join(","));
            command.env("STRAIT_TEST_ETCD_PREFIX", &etcd.prefix);
        }
        command
    }

    /// Waits until the server is ready.
    pub async fn until_ready(&mut self) {
        let ready = async {
            loop {
                if let Some(mut client) = self.client().await
                    && client.try_get("/readyz").await.is_some()
                {
                    return;
                }
                let child = self.child.as_mut().unwrap();
                assert_eq!(child.try_wait().unwrap(), None, "the server ended");
                tokio::time::sleep(ASK_EVERY).await;
            }
        };
        let waited = tokio::time::timeout(START_MAX, ready).await;
        waited.expect("the server answers");
    }

    /// Returns a client with the admin's token; `None` while the server is unreachable.
    pub async fn client(&self) -> Option<Client> {
        connect(self.address, self.data.path()).await
    }

    /// Kills the process with SIGKILL.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Returns a client with the admin's token of a data directory.
pub async fn connect(address: SocketAddr, data: &Path) -> Option<Client> {
    let kubeconfig = data.join("admin.kubeconfig");
    let token = kubeconfig
        .exists()
        .then(|| crate::support::token_in(&kubeconfig))?;
    Client::try_connect(address, &data.join("ca.crt"), Some(&token)).await
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "this is the server process of other tests, which start it"]
async fn server_process() {
    let Ok(data) = std::env::var("STRAIT_TEST_DATA") else {
        return;
    };
    let listen = std::env::var("STRAIT_TEST_LISTEN")
        .unwrap()
        .parse()
        .unwrap();
    let mut settings = Settings::new(data.into(), listen);
    settings.writes_status = false;
    settings.etcd = std::env::var("STRAIT_TEST_ETCD")
        .ok()
        .map(|urls| EtcdSettings {
            urls: urls.split(',').map(str::to_owned).collect(),
            prefix: std::env::var("STRAIT_TEST_ETCD_PREFIX").unwrap(),
            ..EtcdSettings::default()
        });
    start(&settings).await.unwrap().serve().await;
}
