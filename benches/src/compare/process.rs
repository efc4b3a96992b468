//! Starting other programs on a given core, and making sure that none of them outlives this one.
//!
//! Invariant: every process started here ends when its [`Process`] is dropped, and the kernel ends it when this program
//! dies without unwinding. Every wait has a deadline and can be cancelled.

use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::compare::accounting;
use crate::compare::failure::{Failure, context};

/// Time from the request to end until a process is killed.
const GRACE: Duration = Duration::from_secs(2);

/// A program and its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandLine(pub Vec<OsString>);

impl CommandLine {
    /// Creates the command line that starts `program` with `arguments`.
    pub fn new<A: Into<OsString>>(program: &Path, arguments: impl IntoIterator<Item = A>) -> Self {
        let program = program.as_os_str().to_owned();
        Self(
            std::iter::once(program)
                .chain(arguments.into_iter().map(Into::into))
                .collect(),
        )
    }
}

/// Cancellation flag of the run; every wait checks it.
#[derive(Clone, Debug, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// Cancels all waits.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// # Errors
    /// `Failure::Cancelled` once the run was cancelled.
    pub fn check(&self) -> Result<(), Failure> {
        if self.0.load(Ordering::Relaxed) {
            Err(Failure::Cancelled)
        } else {
            Ok(())
        }
    }

    /// Calls `question` every `interval` until it returns a value.
    ///
    /// # Errors
    /// When `limit` has passed, the run was cancelled, or `question` fails.
    pub fn poll<T>(
        &self,
        interval: Duration,
        limit: Duration,
        what: &str,
        mut question: impl FnMut() -> Result<Option<T>, Failure>,
    ) -> Result<T, Failure> {
        let deadline = Instant::now() + limit;
        loop {
            self.check()?;
            if let Some(answer) = question()? {
                return Ok(answer);
            }
            if Instant::now() >= deadline {
                return Err(Failure::new(format!("{what}: gave up after {limit:?}")));
            }
            thread::sleep(interval);
        }
    }
}

/// Running program, ended on drop.
#[derive(Debug)]
pub struct Process {
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Returns the ID of the process that was started; its own children are its descendants.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Returns the output so far.
    pub fn output(&self) -> String {
        fs::read(&self.log)
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .unwrap_or_default()
    }

    /// # Errors
    /// When the process has ended, with the end of its output.
    pub fn check_alive(&mut self) -> Result<(), Failure> {
        match self.child.try_wait() {
            Ok(None) => Ok(()),
            Ok(Some(status)) => Err(Failure::new(format!(
                "ended early ({status}): {}",
                tail(&self.output())
            ))),
            Err(error) => Err(Failure::new(format!("cannot be watched: {error}"))),
        }
    }
}

impl Drop for Process {
    /// Ends the process with a signal before killing it, since a killed nginx would leave its worker behind.
    fn drop(&mut self) {
        if !matches!(self.child.try_wait(), Ok(None)) {
            return;
        }
        let asked = Command::new("sh")
            .arg("-c")
            .arg("kill -TERM \"$0\"")
            .arg(self.pid().to_string())
            .status();
        let deadline = Instant::now() + GRACE;
        while asked.is_ok() && Instant::now() < deadline {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            thread::sleep(Duration::from_millis(5));
        }
        kill_tree(self.pid());
        // Fails only when the process has been waited for.
        let _ = self.child.wait();
    }
}

/// Kills a process and its descendants, since a worker would outlive its master.
fn kill_tree(root: u32) {
    let tree = accounting::tree(root);
    // Fails only for processes that ended meanwhile.
    let _ = Command::new("sh")
        .args(["-c", "kill -KILL \"$@\"", "sh"])
        .args(tree.iter().map(u32::to_string))
        .stderr(Stdio::null())
        .status();
}

/// Launcher of programs, with all their output in one directory.
#[derive(Debug)]
pub struct Launcher {
    directory: PathBuf,
    cancel: Cancel,
}

impl Launcher {
    /// Creates a launcher that keeps the output of its programs in `directory`.
    pub fn new(directory: PathBuf, cancel: Cancel) -> Self {
        Self { directory, cancel }
    }

    /// Returns the cancellation flag.
    pub fn cancel(&self) -> &Cancel {
        &self.cancel
    }

    /// Returns the directory for the files of this run.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Starts a program pinned to one core. `name` is the name of its log file and must be unique in the run.
    ///
    /// # Errors
    /// When the program cannot be started.
    pub fn start(&self, name: &str, core: usize, line: &CommandLine) -> Result<Process, Failure> {
        self.cancel.check()?;
        let log = self.directory.join(format!("{name}.log"));
        let output = File::create(&log).map_err(context(log.display()))?;
        let errors = output.try_clone().map_err(context(log.display()))?;
        // `setpriv` lets the kernel end the program when we are killed; both replace themselves by what they start.
        let child = Command::new("taskset")
            .args([
                "-c",
                &core.to_string(),
                "setpriv",
                "--pdeathsig",
                "TERM",
                "--",
            ])
            .args(&line.0)
            .current_dir(&self.directory)
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(errors)
            .spawn()
            .map_err(context(format!("cannot start {name}")))?;
        Ok(Process { child, log })
    }

    /// Runs a program until it exits, and returns its output.
    ///
    /// # Errors
    /// When it cannot be started, takes longer than `limit`, or the run was cancelled. An unsuccessful exit is no
    /// error: load generators report failed requests in their output, which the caller reads.
    pub fn run(
        &self,
        name: &str,
        core: usize,
        line: &CommandLine,
        limit: Duration,
    ) -> Result<String, Failure> {
        let mut process = self.start(name, core, line)?;
        self.cancel
            .poll(Duration::from_millis(10), limit, name, || {
                let status = process.child.try_wait().map_err(context(name))?;
                Ok(status)
            })?;
        Ok(process.output())
    }
}

/// Raises this program's limit of open files towards `wanted`. Programs that it starts inherit the limit.
///
/// # Errors
/// When the hard limit is less than `wanted`; the limit is then raised to the hard limit.
pub fn raise_open_files(wanted: u64) -> Result<(), Failure> {
    let limits = fs::read_to_string("/proc/self/limits").map_err(context("/proc/self/limits"))?;
    let (soft, hard) = parse_open_files(&limits)
        .ok_or_else(|| Failure::new("cannot read the limit of open files"))?;
    let pid = std::process::id().to_string();
    if soft < hard.min(wanted) {
        let limit = format!("--nofile={}:", hard.min(wanted));
        let status = Command::new("prlimit")
            .args(["--pid", &pid, &limit])
            .status()
            .map_err(context("prlimit"))?;
        if !status.success() {
            return Err(Failure::new(
                "prlimit could not raise the limit of open files",
            ));
        }
    }
    if hard < wanted {
        return Err(Failure::new(format!(
            "only {hard} files may be open, {wanted} are wanted: raise `ulimit -Hn`"
        )));
    }
    Ok(())
}

/// Returns the soft limit of open files of this program and of programs that it starts.
pub fn open_files() -> u64 {
    let limits = fs::read_to_string("/proc/self/limits").unwrap_or_default();
    parse_open_files(&limits).map_or(0, |(soft, _)| soft)
}

/// Pins this program to a core, and thereby all programs that it starts without a core of their own.
///
/// # Errors
/// When `taskset` fails, for example because the core does not exist.
pub fn pin_self(core: usize) -> Result<(), Failure> {
    let pid = std::process::id().to_string();
    let output = Command::new("taskset")
        .args(["-a", "-c", "-p", &core.to_string(), &pid])
        .output();
    let output = output.map_err(context("cannot run taskset"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(Failure::new(format!(
        "cannot pin to core {core}: {}",
        String::from_utf8_lossy(&output.stderr).trim()
    )))
}

/// Parses the soft and hard limit of open files from `/proc/PID/limits`.
fn parse_open_files(limits: &str) -> Option<(u64, u64)> {
    let line = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max open files"))?;
    let mut fields = line.split_ascii_whitespace();
    let mut limit = || match fields.next()? {
        "unlimited" => Some(u64::MAX),
        number => number.parse().ok(),
    };
    Some((limit()?, limit()?))
}

/// Joins the last lines of a log into one line.
fn tail(text: &str) -> String {
    let lines: Vec<&str> = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    lines[lines.len().saturating_sub(3)..].join(" / ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_file_limits_are_read() {
        let text = "Limit  Soft  Hard  Units\nMax open files            1024                 524288    files\n";
        assert_eq!(parse_open_files(text), Some((1024, 524_288)));
        assert_eq!(
            parse_open_files("Max open files  256  unlimited  files"),
            Some((256, u64::MAX))
        );
        assert_eq!(parse_open_files("Max processes 1 2"), None);
    }

    #[test]
    fn cancelled_run_waits_for_nothing() {
        let cancel = Cancel::default();
        cancel.cancel();
        let forever = Duration::from_secs(3600);
        let answer = cancel.poll(forever, forever, "never", || Ok(None::<()>));
        assert!(matches!(answer, Err(Failure::Cancelled)));
    }

    #[test]
    fn poll_returns_the_first_answer() {
        let mut asked = 0;
        let answer =
            Cancel::default().poll(Duration::ZERO, Duration::from_secs(60), "third", || {
                asked += 1;
                Ok((asked == 3).then_some(asked))
            });
        assert_eq!(answer.unwrap(), 3);
    }

    #[test]
    fn poll_gives_up_at_its_limit() {
        let answer =
            Cancel::default().poll(Duration::ZERO, Duration::ZERO, "it", || Ok(None::<()>));
        assert_eq!(answer.unwrap_err().to_string(), "it: gave up after 0ns");
    }

    #[test]
    fn worker_is_killed_with_its_master() {
        let mut master = Command::new("sh")
            .args(["-c", "sleep 600 & wait"])
            .spawn()
            .unwrap();
        let (interval, limit) = (Duration::from_millis(1), Duration::from_secs(60));
        let has_worker = || Ok((accounting::tree(master.id()).len() == 2).then_some(()));
        let up = Cancel::default().poll(interval, limit, "no worker", has_worker);
        let worker = accounting::tree(master.id())[1];
        kill_tree(master.id());
        let ended = master.wait().unwrap();
        assert!(up.is_ok() && !ended.success());
        let is_gone = || Ok(accounting::tree(worker).is_empty().then_some(()));
        let gone = Cancel::default().poll(interval, limit, "the worker lives on", is_gone);
        assert!(gone.is_ok());
    }

    #[test]
    fn tail_is_the_last_lines_that_say_something() {
        assert_eq!(tail("a\nb\n\n  c\nd\n"), "b / c / d");
        assert_eq!(tail(""), "");
    }
}
