//! Config server, and a proxy that follows it, under traffic.

use std::fs::{File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use crate::support::client::{Client, Front};
use crate::support::mesh::{gateway, routes};
use crate::support::proxy::{Proxy, Start, free_address};
use crate::support::{eventually, until};

/// `strait control` process, killed on drop.
pub(crate) struct Control {
    child: Child,
    pub(crate) listen: String,
}

impl Control {
    pub(crate) fn start(data: &Path, listen: &str) -> Self {
        Self::start_with(data, listen, &[])
    }

    pub(crate) fn start_with(data: &Path, listen: &str, arguments: &[&str]) -> Self {
        let child = Command::new(env!("CARGO_BIN_EXE_strait"))
            .args(["control", "--listen", listen, "--data"])
            .arg(data)
            .args(arguments)
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let control = Self {
            child,
            listen: listen.to_owned(),
        };
        eventually("the config server answers", || {
            let kubeconfig = data.join("proxy.kubeconfig");
            kubeconfig.exists()
                && kubectl(data, &["get", "--raw", "/readyz"], "")
                    .status
                    .success()
        });
        control
    }

    /// Kills the server without warning, like a crash, and restarts it.
    fn crash(&mut self, data: &Path) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        let listen = self.listen.clone();
        *self = Self::start(data, &listen);
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn kubectl(data: &Path, arguments: &[&str], input: &str) -> Output {
    use std::io::Write;
    let mut child = Command::new("kubectl")
        .arg("--kubeconfig")
        .arg(data.join("admin.kubeconfig"))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(input.as_bytes()).unwrap();
    drop(stdin);
    child.wait_with_output().unwrap()
}

pub(crate) fn apply(data: &Path, text: &str) {
    let output = kubectl(data, &["apply", "-f", "-"], text);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
}

pub(crate) async fn until_says(proxy: &Proxy, text: &str) {
    until(&format!("it answers {text:?}"), async || {
        let Ok(mut client) = Client::try_connect(Front::H1, proxy.edge).await else {
            return false;
        };
        client.get("/").await.text() == text
    })
    .await;
}

pub(crate) fn answers(text: &str) -> String {
    let rule = format!("- directResponse: {{status: 200, body: {{string: \"{text}\"}}}}\n");
    routes("web", "[\"*\"]", &rule)
}

pub(crate) fn has_kubectl() -> bool {
    let mut kubectl = Command::new("kubectl");
    kubectl.args(["version", "--client"]).output().is_ok()
}

/// Returns the arguments for a proxy that follows the config server by the Kubernetes API.
pub(crate) fn by_kubernetes(control: &Control, data: &Path) -> Vec<String> {
    let _ = control;
    let kubeconfig = data.join("proxy.kubeconfig");
    let kubeconfig = kubeconfig.to_str().unwrap();
    ["--control", "kubernetes://", "--kubeconfig", kubeconfig]
        .map(str::to_owned)
        .into()
}

/// Returns the arguments for a proxy that follows the config server by xDS, with the token of the same user.
pub(crate) fn by_xds(control: &Control, data: &Path) -> Vec<String> {
    let kubeconfig = std::fs::read_to_string(data.join("proxy.kubeconfig")).unwrap();
    let mut lines = kubeconfig.lines();
    let token = lines.find_map(|line| line.trim().strip_prefix("token: "));
    let (file, ca) = (data.join("proxy.token"), data.join("ca.crt"));
    std::fs::write(&file, token.unwrap()).unwrap();
    let server = format!("xds://{}", control.listen);
    let files = [ca.to_str().unwrap(), file.to_str().unwrap()];
    [
        "--control",
        &server,
        "--control-ca",
        files[0],
        "--control-token",
        files[1],
    ]
    .map(str::to_owned)
    .into()
}

#[tokio::test]
async fn proxy_follows_a_config_server_through_its_crash() {
    if !has_kubectl() {
        eprintln!("skipped: there is no kubectl");
        return;
    }
    follows_through_a_crash(by_kubernetes).await;
}

#[tokio::test]
async fn proxy_follows_a_config_server_over_xds_through_its_crash() {
    if !has_kubectl() {
        eprintln!("skipped: there is no kubectl");
        return;
    }
    follows_through_a_crash(by_xds).await;
}

async fn follows_through_a_crash(way: fn(&Control, &Path) -> Vec<String>) {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let mut control = Control::start(&data, &free_address().to_string());
    let start = Start::new();
    apply(&data, &gateway(&[start.edge()]));
    apply(&data, &answers("one"));
    let arguments = way(&control, &data);
    let proxy = start.args(&arguments).spawn();
    until_says(&proxy, "one").await;
    apply(&data, &answers("two"));
    until_says(&proxy, "two").await;
    control.crash(&data);
    apply(&data, &answers("three"));
    until_says(&proxy, "three").await;
    let gone = kubectl(
        &data,
        &["delete", "virtualservice", "web", "-n", "default"],
        "",
    );
    assert!(gone.status.success(), "{gone:?}");
    until_says(&proxy, "").await;
}

#[test]
fn data_directory_that_others_may_read_gives_a_warning() {
    for (mode, is_warned) in [(0o755, true), (0o700, false)] {
        let directory = tempfile::tempdir().unwrap();
        let data = directory.path().join("data");
        std::fs::create_dir(&data).unwrap();
        std::fs::set_permissions(&data, Permissions::from_mode(mode)).unwrap();
        let log = directory.path().join("log");
        let child = Command::new(env!("CARGO_BIN_EXE_strait"))
            .args(["control", "--listen", "127.0.0.1:0", "--data"])
            .arg(&data)
            .stderr(File::create(&log).unwrap())
            .spawn()
            .unwrap();
        let mut control = Control {
            child,
            listen: String::new(),
        };
        eventually("it serves", || data.join("proxy.kubeconfig").exists());
        let has = |text: &str| std::fs::read_to_string(&log).unwrap().contains(text);
        let warning = "run `chmod 700` on it";
        if is_warned {
            eventually("it warns", || has(warning));
        }
        // the log is complete once the process has ended by itself
        let pid = control.child.id().to_string();
        Command::new("kill").args(["-TERM", &pid]).status().unwrap();
        control.child.wait().unwrap();
        assert_eq!(has(warning), is_warned, "{mode:o}");
    }
}

/// A soft limit of 1,024 open files, the default of shells and systemd, would be too low for a thousand proxies.
#[test]
fn config_server_raises_the_limit_of_open_files() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let command = format!(
        "ulimit -Sn 256 && exec {} control --listen 127.0.0.1:0 --data {}",
        env!("CARGO_BIN_EXE_strait"),
        data.display()
    );
    let child = Command::new("sh")
        .args(["-c", &command])
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let control = Control {
        child,
        listen: String::new(),
    };
    eventually("its files are there", || {
        data.join("proxy.kubeconfig").exists()
    });
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", control.child.id())).unwrap();
    let line = limits
        .lines()
        .find(|line| line.starts_with("Max open files"));
    let mut words = line.unwrap().split_whitespace().skip(3);
    assert_eq!(words.next(), words.next(), "{limits}");
}

/// Whether the only file of a directory has this text.
fn has_saved(directory: &Path, text: &str) -> bool {
    let files = std::fs::read_dir(directory).into_iter().flatten();
    let names = files.map(|file| file.unwrap().path());
    let mut files = names.filter(|path| path.extension().is_some_and(|end| end == "state"));
    let saved = files
        .next()
        .map(|path| std::fs::read_to_string(path).unwrap());
    // with its quotes: a word may be part of another, as `two` is of `networking`
    saved.is_some_and(|saved| saved.contains(&format!("\\\"{text}\\\"")))
}

#[tokio::test]
async fn proxy_starts_from_its_state_without_the_config_server() {
    if !has_kubectl() {
        eprintln!("skipped: there is no kubectl");
        return;
    }
    starts_from_its_state(by_kubernetes).await;
}

#[tokio::test]
async fn proxy_starts_from_its_state_without_the_xds_server() {
    if !has_kubectl() {
        eprintln!("skipped: there is no kubectl");
        return;
    }
    starts_from_its_state(by_xds).await;
}

async fn starts_from_its_state(way: fn(&Control, &Path) -> Vec<String>) {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let state = directory.path().join("state");
    let control = Control::start(&data, &free_address().to_string());
    let arguments = way(&control, &data);
    let following = |start: Start| {
        start
            .args(&arguments)
            .args(["--state", state.to_str().unwrap()])
            .spawn()
    };
    let start = Start::new();
    apply(&data, &gateway(&[start.edge()]));
    apply(&data, &answers("one"));
    let proxy = following(start);
    until_says(&proxy, "one").await;
    apply(&data, &answers("two"));
    eventually("the change is saved", || has_saved(&state, "two"));
    let listen = control.listen.clone();
    drop(control);
    let again = Start::new().instead_of(&proxy);
    drop(proxy);

    let proxy = following(again);
    until_says(&proxy, "two").await;
    proxy.has_logged("as saved in the directory of --state");
    let _control = Control::start(&data, &listen);
    apply(&data, &answers("three"));
    until_says(&proxy, "three").await;
    eventually("the new state is saved", || has_saved(&state, "three"));

    // A torn file is not used, and harms nothing.
    let again = Start::new().instead_of(&proxy);
    drop(proxy);
    for file in std::fs::read_dir(&state).unwrap() {
        let path = file.unwrap().path();
        let whole = std::fs::read(&path).unwrap();
        std::fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    }
    let proxy = following(again);
    until_says(&proxy, "three").await;
    proxy.has_logged("file is not used");
    eventually("the state is whole again", || has_saved(&state, "three"));
}
