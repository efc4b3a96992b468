//! The real thing: the binary, started with configuration in a directory of its own.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use proxy::telemetry::names::{Counter, FAMILIES, Gauge};

use super::{DEADLINE, eventually};

/// An address that no other test uses: the loopback network is large, so every caller gets an IP of its own, and the
/// kernel names a free port on it.
pub fn free_address() -> SocketAddr {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let next = NEXT.fetch_add(1, Ordering::Relaxed);
    let process = std::process::id();
    let [_, _, high, low] = process.to_be_bytes();
    let [_, _, _, last] = next.to_be_bytes();
    let ip = Ipv4Addr::new(127, high | 0x80, low, last.max(1));
    let socket = TcpListener::bind((ip, 0)).unwrap();
    socket.local_addr().unwrap()
}

/// Arguments that make the clients of a test internal.
pub const LOOPBACK_IS_INTERNAL: [&str; 2] = ["--internal-addresses", "127.0.0.0/8,::1"];

/// A running `strait run`; killed when this is dropped.
pub struct Proxy {
    /// Where its gateway listens, if the configuration says so.
    pub edge: SocketAddr,
    pub admin: SocketAddr,
    child: Child,
    directory: tempfile::TempDir,
}

/// What a proxy is started with.
pub struct Start {
    edge: SocketAddr,
    admin: SocketAddr,
    arguments: Vec<String>,
    environment: Vec<(String, String)>,
    config: Option<PathBuf>,
    stderr: Option<Stdio>,
    open_files: Option<u32>,
    activated: Option<TcpListener>,
    directory: tempfile::TempDir,
}

impl Start {
    /// With a gateway address that is free, and no configuration yet.
    pub fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory.path().join("mesh")).unwrap();
        Self {
            edge: free_address(),
            admin: free_address(),
            arguments: Vec::new(),
            environment: Vec::new(),
            config: None,
            stderr: None,
            open_files: None,
            activated: None,
            directory,
        }
    }

    /// The addresses of another process, which the new one takes over from.
    pub fn instead_of(mut self, other: &Proxy) -> Self {
        (self.edge, self.admin) = (other.edge, other.admin);
        self
    }

    /// Gives it a socket as a service manager does; the gateway is to listen there.
    pub fn activated(mut self, socket: &TcpListener) -> Self {
        self.edge = socket.local_addr().unwrap();
        self.activated = Some(socket.try_clone().unwrap());
        self
    }

    /// Where the gateway is to listen.
    pub fn edge(&self) -> SocketAddr {
        self.edge
    }

    /// Adds a file of resources.
    pub fn file(self, name: &str, text: impl AsRef<str>) -> Self {
        write(&self.directory.path().join("mesh").join(name), text);
        self
    }

    /// Adds arguments of `strait run`.
    pub fn args<T: Into<String>>(mut self, arguments: impl IntoIterator<Item = T>) -> Self {
        self.arguments.extend(arguments.into_iter().map(Into::into));
        self
    }

    /// Sets a variable of its environment.
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Reads `path`, relative to the proxy's working directory in which `mesh` is, instead of the absolute path of that.
    pub fn config(mut self, path: &str) -> Self {
        self.config = Some(path.into());
        self
    }

    /// Links `name` in the proxy's working directory to `target`.
    pub fn link(self, name: &str, target: &str) -> Self {
        let link = self.directory.path().join(name);
        std::fs::create_dir_all(link.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(target, link).unwrap();
        self
    }

    /// Gives it this instead of a file that [`Proxy::stderr`] reads.
    pub fn stderr(mut self, stderr: impl Into<Stdio>) -> Self {
        self.stderr = Some(stderr.into());
        self
    }

    /// Lets it have only so many open files.
    pub fn open_files(mut self, most: u32) -> Self {
        self.open_files = Some(most);
        self
    }

    /// Starts the process and waits until it is ready.
    pub fn start(self) -> Proxy {
        let proxy = self.spawn();
        eventually("the proxy is ready", || proxy.is_ready());
        proxy
    }

    /// Starts the process.
    pub fn spawn(self) -> Proxy {
        let root = self.directory.path();
        let log = std::fs::File::create(root.join("stderr")).unwrap();
        let mut command = binary(self.open_files, self.activated.is_some());
        if !self.arguments.iter().any(|text| text == "--access-log") {
            command.args(["run", "--access-log", "json"]);
        } else {
            command.arg("run");
        }
        let own = self.arguments.iter().any(|text| text == "--concurrency");
        let concurrency: &[&str] = if own { &[] } else { &["--concurrency", "2"] };
        let config = self.config.unwrap_or_else(|| root.join("mesh"));
        let child = command
            .current_dir(root)
            .arg("--config")
            .arg(config)
            .args(["--labels", "istio=ingressgateway", "--admin"])
            .arg(self.admin.to_string())
            .arg("--access-log-path")
            .arg(root.join("access.log"))
            .args(concurrency)
            .args(&self.arguments)
            .envs(self.environment)
            .stdin(match self.activated {
                Some(socket) => std::os::fd::OwnedFd::from(socket).into(),
                None => Stdio::null(),
            })
            .stderr(self.stderr.unwrap_or_else(|| log.into()))
            .spawn()
            .unwrap();
        Proxy {
            edge: self.edge,
            admin: self.admin,
            child,
            directory: self.directory,
        }
    }
}

/// The binary, with a limit of open files, and with standard input as a socket that the service manager gives it.
fn binary(open_files: Option<u32>, is_activated: bool) -> Command {
    let binary = env!("CARGO_BIN_EXE_strait");
    let mut script = String::new();
    if let Some(most) = open_files {
        script += &format!("ulimit -n {most} && ");
    }
    script += match is_activated {
        true => "LISTEN_FDS=1 LISTEN_PID=$$ exec \"$0\" \"$@\" 3<&0 </dev/null",
        false if script.is_empty() => return Command::new(binary),
        false => "exec \"$0\" \"$@\"",
    };
    let mut shell = Command::new("sh");
    shell.args(["-c", &script, binary]);
    shell
}

/// Replaces a file as a careful editor does: all at once.
fn write(path: &Path, text: impl AsRef<str>) {
    let draft = path.with_file_name(".draft");
    std::fs::write(&draft, text.as_ref()).unwrap();
    std::fs::rename(draft, path).unwrap();
}

impl Proxy {
    /// Starts with the resources that `mesh` writes for a gateway's address.
    pub fn with(mesh: impl FnOnce(SocketAddr) -> String) -> Self {
        Self::with_args(&[], mesh)
    }

    /// The same, with more arguments of `strait run`.
    pub fn with_args(arguments: &[&str], mesh: impl FnOnce(SocketAddr) -> String) -> Self {
        let start = Start::new().args(arguments.iter().copied());
        let text = mesh(start.edge());
        start.file("mesh.yaml", text).start()
    }

    /// Replaces or adds a file of resources.
    pub fn write(&self, name: &str, text: impl AsRef<str>) {
        write(&self.mesh().join(name), text);
    }

    /// Removes a file of resources.
    pub fn remove(&self, name: &str) {
        std::fs::remove_file(self.mesh().join(name)).unwrap();
    }

    /// The directory of resources.
    pub fn mesh(&self) -> PathBuf {
        self.directory.path().join("mesh")
    }

    /// Fetches a page of the admin server: status and body.
    pub fn try_page(&self, method: &str, path: &str) -> std::io::Result<(u16, String)> {
        let mut stream = TcpStream::connect(self.admin)?;
        stream.set_read_timeout(Some(DEADLINE))?;
        let host = self.admin;
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
        )?;
        let mut text = String::new();
        stream.read_to_string(&mut text)?;
        let status = text.split(' ').nth(1).and_then(|code| code.parse().ok());
        let body = text.split_once("\r\n\r\n").map(|(_, body)| body.to_owned());
        Ok((status.unwrap_or(0), body.unwrap_or_default()))
    }

    /// Fetches a page of the admin server.
    #[track_caller]
    pub fn page(&self, path: &str) -> String {
        let (status, body) = self.try_page("GET", path).unwrap();
        assert_eq!(status, 200, "{path}: {body}");
        body
    }

    /// Whether it serves.
    pub fn is_ready(&self) -> bool {
        self.try_page("GET", "/healthz/ready")
            .is_ok_and(|(status, _)| status == 200)
    }

    /// Sum of a metric's samples that carry these labels.
    pub fn metric(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        assert_declared(name, labels);
        let text = self.page("/stats/prometheus");
        let samples = text.lines().filter(|line| {
            let rest = line.strip_prefix(name);
            rest.is_some_and(|rest| rest.starts_with(['{', ' ']))
                && labels.iter().all(|(label, value)| {
                    line.contains(&format!("{{{label}=\"{value}\""))
                        || line.contains(&format!(",{label}=\"{value}\""))
                })
        });
        samples
            .map(|line| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap())
            .sum()
    }

    /// Lines of the access log so far.
    pub fn access_log(&self) -> Vec<serde_json::Value> {
        let text = std::fs::read_to_string(self.directory.path().join("access.log"));
        let text = text.unwrap_or_default();
        let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
        whole
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    /// Waits for the access log line of a path.
    #[track_caller]
    pub fn logged(&self, path: &str) -> serde_json::Value {
        let mut found = None;
        eventually("the access log has the line", || {
            let lines = self.access_log();
            found = lines.into_iter().find(|line| line["path"] == path);
            found.is_some()
        });
        found.unwrap()
    }

    /// What it wrote to standard error.
    pub fn stderr(&self) -> String {
        std::fs::read_to_string(self.directory.path().join("stderr")).unwrap()
    }

    /// Waits until it has logged this, and returns all that it has logged: a thread of its own writes the lines, so one may
    /// come after the event that it is about.
    pub fn has_logged(&self, text: &str) -> String {
        let mut log = String::new();
        eventually(text, || {
            log = self.stderr();
            log.contains(text)
        });
        log
    }

    /// Memory that it has right now, in KiB.
    pub fn resident_kib(&self) -> u64 {
        let size = self.status("VmRSS:");
        let kib = size.split_whitespace().next();
        kib.unwrap().parse().unwrap()
    }

    /// Whether SIGHUP does something else than ending it.
    pub fn handles_hangup(&self) -> bool {
        let caught = u64::from_str_radix(&self.status("SigCgt:"), 16).unwrap();
        caught & 1 == 1
    }

    /// What the system says about the process under this name.
    fn status(&self, name: &str) -> String {
        let path = format!("/proc/{}/status", self.child.id());
        let status = std::fs::read_to_string(path).unwrap();
        let value = status.lines().find_map(|line| line.strip_prefix(name));
        value.unwrap().trim().to_owned()
    }

    /// Sends a signal, by name: `TERM`.
    pub fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        let sent = Command::new("kill").args(["-s", name, &pid]).status();
        assert!(sent.unwrap().success());
    }

    /// How it ended, if it has.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().unwrap()
    }

    /// Waits for its end.
    #[track_caller]
    pub fn wait(&mut self) -> ExitStatus {
        let mut ended = None;
        eventually("the proxy ends", || {
            ended = self.ended();
            ended.is_some()
        });
        ended.unwrap()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            let log = self.stderr();
            let lines: Vec<_> = log.lines().collect();
            let last = &lines[lines.len().saturating_sub(40)..];
            println!("--- standard error of the proxy\n{}", last.join("\n"));
        }
    }
}

/// Panics if no metric of the proxy has this name, or if its series never have such a label: its sum would always be 0.
fn assert_declared(name: &str, labels: &[(&str, &str)]) {
    let counters = Counter::ALL.iter().map(|counter| counter.series());
    let series = counters.chain(Gauge::ALL.iter().map(|gauge| gauge.series()));
    let series: Vec<_> = series.filter(|one| one.family.name == name).collect();
    if series.is_empty() {
        let parts = ["", "_bucket", "_count", "_sum"];
        let stems = parts.map(|part| name.strip_suffix(part));
        let declared = |stem: &str| FAMILIES.iter().any(|family| family.name == stem);
        let known = stems.into_iter().flatten().any(declared);
        assert!(known, "no metric is called {name}");
        return;
    }
    for label in labels {
        let known = series.iter().any(|one| one.label == Some(*label));
        assert!(known, "{name} never has the label {label:?}");
    }
}
