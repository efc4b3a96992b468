//! The `strait` binary, started with configuration in a directory of its own.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use proxy::telemetry::names::{Counter, FAMILIES, Gauge};

use super::{DEADLINE, eventually};

/// Returns an address that no other test uses: each call gets a loopback IP address of its own, and the kernel assigns
/// a free port on it.
pub fn free_address() -> SocketAddr {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let next = NEXT.fetch_add(1, Ordering::Relaxed);
    let [.., process] = std::process::id().to_be_bytes();
    let [high, low] = [next / 254, next % 254 + 1].map(|number| number as u8);
    let ip = Ipv4Addr::new(127, process | 0x80, high, low);
    let socket = TcpListener::bind((ip, 0)).unwrap();
    socket.local_addr().unwrap()
}

/// Arguments under which the clients of a test count as internal.
pub const LOOPBACK_IS_INTERNAL: [&str; 2] = ["--internal-addresses", "127.0.0.0/8,::1"];

/// Running `strait run`, killed on drop.
pub struct Proxy {
    /// Address of its gateway, if the configuration has one.
    pub edge: SocketAddr,
    pub admin: SocketAddr,
    child: Child,
    directory: tempfile::TempDir,
}

/// Builder for starting a proxy.
pub struct Start {
    edge: SocketAddr,
    admin: SocketAddr,
    arguments: Vec<String>,
    environment: Vec<(String, String)>,
    config: Option<PathBuf>,
    stderr: Option<Stdio>,
    open_files: Option<u32>,
    activated: Option<TcpListener>,
    logs_by_flags: bool,
    workers_by_flag: bool,
    directory: tempfile::TempDir,
}

impl Start {
    /// Creates a builder with a free gateway address and without configuration.
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
            logs_by_flags: true,
            workers_by_flag: true,
            directory,
        }
    }

    /// Leaves the number of workers to resources.
    pub fn without_workers_flag(mut self) -> Self {
        self.workers_by_flag = false;
        self
    }

    /// Leaves the access log to resources.
    pub fn without_log_flags(mut self) -> Self {
        self.logs_by_flags = false;
        self
    }

    /// Uses the addresses of a running proxy, which the new process replaces.
    pub fn instead_of(mut self, other: &Proxy) -> Self {
        (self.edge, self.admin) = (other.edge, other.admin);
        self
    }

    /// Passes a listening socket to the process, as a service manager does, for the gateway.
    pub fn activated(mut self, socket: &TcpListener) -> Self {
        self.edge = socket.local_addr().unwrap();
        self.activated = Some(socket.try_clone().unwrap());
        self
    }

    /// Returns the address for the gateway.
    pub fn edge(&self) -> SocketAddr {
        self.edge
    }

    /// Adds a resource file.
    pub fn file(self, name: &str, text: impl AsRef<str>) -> Self {
        write(&self.directory.path().join("mesh").join(name), text);
        self
    }

    /// Adds arguments of `strait run`.
    pub fn args<T: Into<String>>(mut self, arguments: impl IntoIterator<Item = T>) -> Self {
        self.arguments.extend(arguments.into_iter().map(Into::into));
        self
    }

    /// Sets an environment variable.
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Reads the configuration from `path`, relative to the working directory, which contains `mesh`; the default is
    /// the absolute path of `mesh`.
    pub fn config(mut self, path: &str) -> Self {
        self.config = Some(path.into());
        self
    }

    /// Creates a symbolic link `name` to `target` in the working directory.
    pub fn link(self, name: &str, target: &str) -> Self {
        let link = self.directory.path().join(name);
        std::fs::create_dir_all(link.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(target, link).unwrap();
        self
    }

    /// Redirects standard error, instead of writing it to the file that [`Proxy::stderr`] reads.
    pub fn stderr(mut self, stderr: impl Into<Stdio>) -> Self {
        self.stderr = Some(stderr.into());
        self
    }

    /// Limits the number of open files.
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
        command.arg("run");
        if self.logs_by_flags {
            command
                .arg("--access-log-path")
                .arg(root.join("access.log"));
            if !self.arguments.iter().any(|text| text == "--access-log") {
                command.args(["--access-log", "json"]);
            }
        }
        let own = self.arguments.iter().any(|text| text == "--concurrency");
        let own = own || !self.workers_by_flag;
        let concurrency: &[&str] = if own { &[] } else { &["--concurrency", "2"] };
        let config = self.config.unwrap_or_else(|| root.join("mesh"));
        let child = command
            .current_dir(root)
            .arg("--config")
            .arg(config)
            .args(["--labels", "istio=ingressgateway", "--admin"])
            .arg(self.admin.to_string())
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

/// Returns the command of the binary, with a limit of open files. If `is_activated`, its standard input is passed on as
/// the socket of a service manager (file descriptor 3).
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

/// Replaces a file atomically, by a rename.
fn write(path: &Path, text: impl AsRef<str>) {
    let draft = path.with_file_name(".draft");
    std::fs::write(&draft, text.as_ref()).unwrap();
    std::fs::rename(draft, path).unwrap();
}

impl Proxy {
    /// Starts a proxy with the resources that `mesh` returns for the gateway's address.
    pub fn with(mesh: impl FnOnce(SocketAddr) -> String) -> Self {
        Self::with_args(&[], mesh)
    }

    /// Starts a proxy with resources and additional arguments of `strait run`.
    pub fn with_args(arguments: &[&str], mesh: impl FnOnce(SocketAddr) -> String) -> Self {
        let start = Start::new().args(arguments.iter().copied());
        let text = mesh(start.edge());
        start.file("mesh.yaml", text).start()
    }

    /// Replaces or adds a resource file.
    pub fn write(&self, name: &str, text: impl AsRef<str>) {
        write(&self.mesh().join(name), text);
    }

    /// Removes a resource file.
    pub fn remove(&self, name: &str) {
        std::fs::remove_file(self.mesh().join(name)).unwrap();
    }

    /// Returns the directory of the resource files.
    pub fn mesh(&self) -> PathBuf {
        self.directory.path().join("mesh")
    }

    /// Requests a page of the admin server; returns status and body.
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

    /// Requests a page of the admin server, which must answer 200.
    #[track_caller]
    pub fn page(&self, path: &str) -> String {
        let (status, body) = self.try_page("GET", path).unwrap();
        assert_eq!(status, 200, "{path}: {body}");
        body
    }

    /// Whether the proxy is ready.
    pub fn is_ready(&self) -> bool {
        self.try_page("GET", "/healthz/ready")
            .is_ok_and(|(status, _)| status == 200)
    }

    /// Returns the sum of a metric's samples that have these labels.
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

    /// Returns the lines of the access log so far.
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

    /// Returns the standard error output so far.
    pub fn stderr(&self) -> String {
        std::fs::read_to_string(self.directory.path().join("stderr")).unwrap()
    }

    /// Waits until `text` has been logged, and returns the whole log. A separate thread writes the log, so a line may
    /// appear later than its event.
    pub fn has_logged(&self, text: &str) -> String {
        let mut log = String::new();
        eventually(text, || {
            log = self.stderr();
            log.contains(text)
        });
        log
    }

    /// Number of threads of workers.
    pub fn workers(&self) -> usize {
        let threads = std::fs::read_dir(format!("/proc/{}/task", self.child.id())).unwrap();
        let names = threads.filter_map(|thread| {
            let name = std::fs::read_to_string(thread.unwrap().path().join("comm"));
            name.ok()
        });
        names
            .filter(|name| name.starts_with("strait-worker"))
            .count()
    }

    /// Returns the current resident memory, in KiB.
    pub fn resident_kib(&self) -> u64 {
        let size = self.status("VmRSS:");
        let kib = size.split_whitespace().next();
        kib.unwrap().parse().unwrap()
    }

    /// Whether SIGHUP is handled instead of ending the process.
    pub fn handles_hangup(&self) -> bool {
        let caught = u64::from_str_radix(&self.status("SigCgt:"), 16).unwrap();
        caught & 1 == 1
    }

    /// Returns a field of `/proc/PID/status`.
    fn status(&self, name: &str) -> String {
        let path = format!("/proc/{}/status", self.child.id());
        let status = std::fs::read_to_string(path).unwrap();
        let value = status.lines().find_map(|line| line.strip_prefix(name));
        value.unwrap().trim().to_owned()
    }

    /// Sends a signal by name, such as `TERM`.
    pub fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        let sent = Command::new("kill").args(["-s", name, &pid]).status();
        assert!(sent.unwrap().success());
    }

    /// Returns the exit status, if the process has ended.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().unwrap()
    }

    /// Waits until the process has ended.
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

/// Panics if the proxy has no metric of this name, or if its series never have such a label: the sum would always be 0.
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
