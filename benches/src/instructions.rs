//! User-space instructions that the proxy executes per small request, counted by callgrind.
//!
//! A count repeats to within about one percent on any machine, even a busy one, where CPU time requires idle cores. It
//! excludes system calls, cache misses and the kernel: CPU time is the decisive figure, a count shows where it changed.
//!
//! The proxy is started twice, for N requests and for 2N. The difference between the two counts, divided by N, excludes
//! the start.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use std::{fs, io, thread};

use clap::Parser;

use crate::compare::Failure;
use crate::compare::client::{connect, free_port, parse_response, request};
use crate::compare::configure::{self, Others, Plan, Proxy, Work};
use crate::compare::failure::context;
use crate::compare::probe::{Probe, Verdict};
use crate::compare::process::{Cancel, CommandLine, Launcher, Process};
use crate::compare::tool::{Found, strait_binary};

/// Recorded instructions per small request, on x86-64 with the `release` profile. Update it with the code that changes
/// it.
const RECORDED: f64 = 24_069.0;

/// Recorded instructions with the `dev` profile, without debug information, which CI has built anyway.
const RECORDED_UNOPTIMIZED: f64 = 103_200.0;

/// Difference from the recorded count that is reported as a change, in percent; compilers and C libraries differ by
/// less.
const NOTABLE_PERCENT: f64 = 3.0;

/// Number of keep-alive connections that send at once, as in the scenario `small` of `compare`.
const CONNECTIONS: usize = 64;

/// Maximum time for the proxy to start, and to stop; callgrind makes it about fifty times slower.
const LIMIT: Duration = Duration::from_secs(180);

const RESPONSE: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 128\r\n\r\n";

/// Counts the user-space instructions of a small request.
///
/// Compares the count with a recorded one and warns if they differ; the exit code only says whether counting succeeded.
/// Needs valgrind. Build the proxy first: `cargo build --release -p proxy`.
#[derive(Clone, Debug, Parser)]
#[command(name = "instructions", version)]
pub struct Arguments {
    /// The binary of Strait. Default: `strait` beside this program.
    #[arg(long, value_name = "PATH")]
    pub strait: Option<PathBuf>,

    /// Requests of the first run; the second run sends twice as many.
    #[arg(long, value_name = "N", default_value_t = 6400, value_parser = clap::value_parser!(u32).range(640..=1_000_000))]
    pub requests: u32,

    /// Compare with the recorded count of the `dev` profile.
    #[arg(long)]
    pub unoptimized: bool,

    /// Number of AuthorizationPolicies that deny other requests; the count is then compared with no recorded one.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub policies: usize,

    /// Percentage of the requests with spans, which are dropped for want of a collector; the count is then compared with no
    /// recorded one.
    #[arg(long, value_name = "PERCENT", conflicts_with = "policies")]
    pub traces: Option<u8>,

    /// Directory that gets both profiles, for `callgrind_annotate`.
    #[arg(long, value_name = "DIRECTORY")]
    pub profiles: Option<PathBuf>,
}

impl Arguments {
    fn others(&self) -> Others {
        match (self.traces, self.policies) {
            (Some(percent), _) => Others::Traces(percent),
            (None, 0) => Others::None,
            (None, count) => Others::Policies(count),
        }
    }
}

/// Counts the instructions and prints the result.
///
/// # Errors
/// When valgrind or the proxy is missing, or the proxy does not answer correctly.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let strait = strait_binary(arguments.strait.as_deref())?;
    if !strait.is_file() {
        return Err(Failure::new(format!(
            "{} is not there; build it with `cargo build --release -p proxy`",
            strait.display()
        )));
    }
    if Command::new("valgrind").arg("--version").output().is_err() {
        return Err(Failure::new(
            "valgrind is not installed; get it with `apt-get install valgrind`",
        ));
    }
    let directory = tempfile::tempdir().map_err(context("no temporary directory"))?;
    let upstream = start_upstream().map_err(context("cannot start the upstream"))?;
    let bench = Bench {
        launcher: Launcher::new(directory.path().to_owned(), Cancel::default()),
        strait: Found {
            path: strait,
            version: String::new(),
        },
        profiles: arguments.profiles.as_deref().unwrap_or(directory.path()),
        upstream,
        others: arguments.others(),
    };
    let rounds = arguments.requests.div_ceil(CONNECTIONS as u32);
    let once = bench.count("once", rounds)?;
    let twice = bench.count("twice", 2 * rounds)?;
    let requests = f64::from(rounds) * CONNECTIONS as f64;
    let count = (twice as f64 - once as f64) / requests;
    let recorded = match arguments.unoptimized {
        true => RECORDED_UNOPTIMIZED,
        false => RECORDED,
    };
    let text = match bench.others {
        Others::None => verdict(count, recorded),
        others => {
            format!("a small request with {others:?} takes {count:.0} instructions in user space")
        }
    };
    let printed = writeln!(io::stdout(), "{text}");
    printed.map_err(context("cannot print the result"))
}

/// Formats a count, with a warning if it differs from the recorded one.
fn verdict(count: f64, recorded: f64) -> String {
    let percent = (count / recorded - 1.0) * 100.0;
    let mut text = format!(
        "a small request takes {count:.0} instructions in user space (recorded: {recorded:.0}, {percent:+.1} %)"
    );
    if percent.abs() > NOTABLE_PERCENT {
        text.push_str(
            "\nwarning: this is not what is recorded; find the cause, or change what is recorded in benches/src/instructions.rs",
        );
    }
    text
}

struct Bench<'a> {
    launcher: Launcher,
    strait: Found,
    profiles: &'a Path,
    upstream: u16,
    others: Others,
}

impl Bench<'_> {
    /// Counts the instructions of a proxy from its start to its end, with `rounds` requests on each connection.
    fn count(&self, name: &str, rounds: u32) -> Result<u64, Failure> {
        let plan = Plan {
            listen: free_port()?,
            admin: free_port()?,
            upstream: self.upstream,
            collector: free_port()?,
            endpoints: 1,
            prefixes: vec!["/".to_owned()],
            prefixes_per_object: 1,
            work: Work::Http,
            http2: false,
            tls: None,
            others: self.others,
            feature: None,
            nginx_module: None,
            connections_max: CONNECTIONS as u32,
        };
        let directory = self.launcher.directory().join(name);
        for file in configure::files(Proxy::Strait, &self.strait, &plan, &directory) {
            let path = directory.join(file.path);
            let parent = path.parent().unwrap_or(&directory);
            fs::create_dir_all(parent).map_err(context(parent.display()))?;
            fs::write(&path, file.text).map_err(context(path.display()))?;
        }
        let profile = self.profiles.join(format!("callgrind.{name}"));
        let CommandLine(proxy) = configure::command(Proxy::Strait, &self.strait, &plan, &directory);
        let mut out = std::ffi::OsString::from("--callgrind-out-file=");
        out.push(&profile);
        let valgrind = [std::ffi::OsString::from("--tool=callgrind"), out];
        let line = CommandLine::new(Path::new("valgrind"), valgrind.into_iter().chain(proxy));
        let mut process = self.launcher.start(name, 0, &line)?;
        self.wait_until_up(&mut process, &plan)?;
        send(plan.listen, rounds).map_err(context("the proxy does not answer"))?;
        self.stop(&mut process)?;
        let text = fs::read_to_string(&profile).map_err(context(profile.display()))?;
        total(&text)
            .ok_or_else(|| Failure::new(format!("{}: no total of instructions", profile.display())))
    }

    fn wait_until_up(&self, process: &mut Process, plan: &Plan) -> Result<(), Failure> {
        let probe = Probe::new(plan, "/")?;
        let (interval, limit) = (Duration::from_millis(100), LIMIT);
        let cancel = self.launcher.cancel();
        cancel.poll(interval, limit, "the proxy does not start", || {
            process.check_alive()?;
            match probe.ask()? {
                Verdict::Right => Ok(Some(())),
                Verdict::NotYet(_) => Ok(None),
                Verdict::Wrong(reason) => Err(Failure::new(reason)),
            }
        })
    }

    /// Asks the proxy to stop and waits until it has exited, because callgrind writes its profile last.
    fn stop(&self, process: &mut Process) -> Result<(), Failure> {
        let pid = process.pid().to_string();
        let asked = Command::new("sh")
            .args(["-c", "kill -TERM \"$0\"", &pid])
            .status();
        asked.map_err(context("cannot stop the proxy"))?;
        let (interval, limit) = (Duration::from_millis(50), LIMIT);
        let cancel = self.launcher.cancel();
        cancel.poll(interval, limit, "the proxy does not end", || {
            Ok(process.check_alive().is_err().then_some(()))
        })
    }
}

/// Returns the total of a profile.
fn total(profile: &str) -> Option<u64> {
    let mut lines = profile.lines();
    let total = lines.find_map(|line| {
        let total = line.strip_prefix("totals:");
        total.or_else(|| line.strip_prefix("summary:"))
    })?;
    total.trim().parse().ok()
}

/// Sends `rounds` requests on each connection. Each round starts when all requests of the previous one are answered.
fn send(port: u16, rounds: u32) -> io::Result<()> {
    let connections = (0..CONNECTIONS).map(|_| connect(port));
    let mut connections = connections.collect::<io::Result<Vec<_>>>()?;
    for connection in &connections {
        // under callgrind the first responses take their time
        connection.set_read_timeout(Some(LIMIT))?;
    }
    let request = request("/");
    for _ in 0..rounds {
        for connection in &mut connections {
            connection.write_all(&request)?;
        }
        for connection in &mut connections {
            receive(connection)?;
        }
    }
    Ok(())
}

/// Reads one response, which must be the upstream's.
fn receive(connection: &mut TcpStream) -> io::Result<()> {
    let mut response = Vec::new();
    let mut piece = [0; 1024];
    loop {
        if let Some(answer) = parse_response(&response)? {
            return match answer.status {
                200 => Ok(()),
                status => Err(io::Error::other(format!("status {status}"))),
            };
        }
        match connection.read(&mut piece)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            length => response.extend_from_slice(&piece[..length]),
        }
    }
}

/// Starts an upstream that answers every request with [`RESPONSE`], and returns its port.
fn start_upstream() -> io::Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let port = listener.local_addr()?.port();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || answer(stream));
        }
    });
    Ok(port)
}

/// Answers requests until the proxy closes the connection. The proxy sends one request at a time, without a body.
fn answer(mut stream: TcpStream) -> io::Result<()> {
    let response = format!("{RESPONSE}{}", "x".repeat(128));
    let mut received = Vec::new();
    let mut piece = [0; 4096];
    loop {
        match stream.read(&mut piece)? {
            0 => return Ok(()),
            length => received.extend_from_slice(&piece[..length]),
        }
        if received.ends_with(b"\r\n\r\n") {
            received.clear();
            stream.write_all(response.as_bytes())?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn total_is_read_from_a_profile() {
        let profile = "version: 1\nevents: Ir\nfn=(1) main\n12 34\n\ntotals: 22535999\n";
        assert_eq!(total(profile), Some(22_535_999));
        assert_eq!(total("events: Ir\nsummary: 17\n"), Some(17));
        assert_eq!(total("events: Ir\n"), None);
    }

    #[test]
    fn count_far_from_the_recorded_one_is_a_warning() {
        assert!(!verdict(10_200.0, 10_000.0).contains("warning"));
        assert!(verdict(10_200.0, 10_000.0).contains("+2.0 %"));
        assert!(verdict(10_400.0, 10_000.0).contains("warning"));
        assert!(verdict(9_600.0, 10_000.0).contains("warning"));
    }

    #[test]
    fn upstream_answers_each_request_on_a_connection() {
        let port = start_upstream().unwrap();
        let mut connection = connect(port).unwrap();
        for _ in 0..3 {
            connection.write_all(&request("/")).unwrap();
            receive(&mut connection).unwrap();
        }
    }
}
