//! Process of the workload, whose end ends the proxy (`--exit-with-pid`).
//!
//! The kernel reports the end of a process on a file descriptor of it (pidfd_open(2)): nothing is polled, and another
//! process that later gets the same PID does no harm.

use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, getpid, pidfd_open};
use tokio::net::unix::pipe::Receiver;
use tokio::time::sleep;

use super::start_error::{StartError, failed};

/// Interval at which a file is checked that does not contain a PID yet.
const FILE_INTERVAL: Duration = Duration::from_millis(100);

/// Maximum bytes read of the file: more than the digits of any PID and a line break.
const FILE_BYTES_MAX: u64 = 64;

/// Process of the workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WorkloadProcess {
    /// Process with this PID.
    Pid(Pid),
    /// Process whose PID is in this file, once the file exists.
    File(PathBuf),
}

impl WorkloadProcess {
    /// Parses a PID, or else a path.
    ///
    /// # Errors
    ///
    /// Fails if the number is not a PID.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Err("expected the number of a process, or a file with it".to_owned());
        }
        if text.bytes().any(|byte| !byte.is_ascii_digit()) {
            return Ok(Self::File(text.into()));
        }
        pid(text).map(Self::Pid)
    }
}

/// Parses a PID.
fn pid(text: &str) -> Result<Pid, String> {
    let number = text.trim().parse().ok().and_then(Pid::from_raw);
    number
        .filter(|pid| pid.as_raw_nonzero().get() > 0)
        .ok_or_else(|| {
            format!(
                "{:?} is not the number of a process: from 1 to {}",
                text.trim(),
                i32::MAX
            )
        })
}

/// Parses the PID in a file.
fn number_in(path: &Path, text: &str) -> Result<Pid, String> {
    pid(text).map_err(|error| {
        let file = path.display();
        format!("{file}: {error}; the file must have this number and nothing else, as `echo $$ > {file}` writes it")
    })
}

/// State of the watched workload process.
pub(super) enum Workload {
    /// No process is configured; the workload does not end the proxy.
    Unknown,
    /// The PID is not in the file yet.
    Awaited(PathBuf),
    Running(Receiver),
    Ended,
}

impl Workload {
    /// Opens the process, or the file if it exists already.
    ///
    /// # Errors
    ///
    /// Fails when the process does not exist or cannot be seen, or the file cannot be read.
    pub(super) fn find(process: Option<&WorkloadProcess>) -> Result<Self, StartError> {
        let Some(process) = process else {
            return Ok(Self::Unknown);
        };
        if is_alone(getpid()) {
            let text = "the proxy is process 1 of a process namespace of its own, and sees no process of the workload; set \
                        shareProcessNamespace: true in the pod, or docker run --pid container:NAME";
            return Err(failed("--exit-with-pid")(text));
        }
        match process {
            WorkloadProcess::Pid(pid) => open(*pid).map_err(failed("--exit-with-pid")),
            WorkloadProcess::File(path) => match read(path) {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    let what = format!("--exit-with-pid: cannot read {}", path.display());
                    Err(failed(&what)(error))
                }
                Ok(text) if !text.trim().is_empty() => {
                    number_in(path, &text).map_err(failed("--exit-with-pid"))?;
                    Ok(Self::Awaited(path.clone()))
                }
                _ => {
                    let file = path.display();
                    tracing::info!(%file, "waiting for the number of the workload's process in this file (--exit-with-pid)");
                    Ok(Self::Awaited(path.clone()))
                }
            },
        }
    }

    /// Waits until the process has ended. Cancel safe.
    pub(super) async fn ended(&mut self) {
        loop {
            match self {
                Self::Unknown => std::future::pending().await,
                Self::Awaited(path) => match awaited(path).await {
                    Ok(found) => *self = found,
                    Err(problem) => {
                        tracing::error!(%problem, "--exit-with-pid has no effect");
                        *self = Self::Unknown;
                    }
                },
                Self::Running(process) => {
                    if let Err(error) = process.readable().await {
                        tracing::error!(%error, "--exit-with-pid has no effect any more");
                        *self = Self::Unknown;
                        continue;
                    }
                    *self = Self::Ended;
                }
                Self::Ended => return,
            }
        }
    }
}

/// Returns whether a process with this PID sees only its own children: it is process 1 of a PID namespace.
fn is_alone(own: Pid) -> bool {
    own == Pid::INIT
}

/// Waits until the file contains a PID, and opens that process.
async fn awaited(path: &Path) -> Result<Workload, String> {
    let name = path.display();
    let text = loop {
        match read(path) {
            Ok(text) if !text.trim().is_empty() => break text,
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(format!("cannot read {name}: {error}")),
        }
        sleep(FILE_INTERVAL).await;
    };
    let pid = number_in(path, &text)?;
    match open(pid) {
        Ok(running) => {
            tracing::info!(pid = pid.as_raw_nonzero(), file = %name, "the proxy ends with this process (--exit-with-pid)");
            Ok(running)
        }
        // a short job may end before the proxy looks
        Err(WatchError::Absent(pid)) => {
            tracing::warn!(
                file = %name,
                "{}: taken to have ended",
                WatchError::Absent(pid)
            );
            Ok(Workload::Ended)
        }
        Err(other) => Err(format!("{name}: {other}")),
    }
}

fn read(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    let file = std::fs::File::open(path)?;
    file.take(FILE_BYTES_MAX).read_to_string(&mut text)?;
    Ok(text)
}

/// Reason why a process cannot be watched.
enum WatchError {
    Absent(Pid),
    Refused(Errno),
    Own,
    Unusable(io::Error),
}

impl std::fmt::Display for WatchError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Absent(pid) => write!(
                f,
                "no process {} in the process namespace of the proxy; in a pod, shareProcessNamespace: true lets its \
                 containers see each other's processes",
                pid.as_raw_nonzero()
            ),
            Self::Refused(error) => write!(
                f,
                "the kernel does not let the proxy watch a process (pidfd_open: {error}); Linux 5.3 can, if the seccomp \
                 profile of the container allows it"
            ),
            Self::Own => f.write_str(
                "this is the proxy itself: write the number that the workload's process has in the process namespace of \
                 the proxy",
            ),
            Self::Unusable(error) => write!(f, "cannot watch the process: {error}"),
        }
    }
}

fn open(pid: Pid) -> Result<Workload, WatchError> {
    if pid == getpid() {
        return Err(WatchError::Own);
    }
    let process = pidfd_open(pid, PidfdFlags::NONBLOCK).map_err(|error| match error {
        Errno::SRCH => WatchError::Absent(pid),
        Errno::PERM | Errno::NOSYS => WatchError::Refused(error),
        other => WatchError::Unusable(other.into()),
    })?;
    // the runtime has no other safe type for a descriptor that becomes readable; nothing is read
    let process = Receiver::from_owned_fd_unchecked(process);
    process.map(Workload::Running).map_err(WatchError::Unusable)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn number_is_a_process_and_anything_else_a_file() {
        let number = Pid::from_raw(42).unwrap();
        assert_eq!(
            WorkloadProcess::parse("42"),
            Ok(WorkloadProcess::Pid(number))
        );
        for path in ["/run/pid", "./42", "42.pid"] {
            let file = WorkloadProcess::File(path.into());
            assert_eq!(WorkloadProcess::parse(path), Ok(file));
        }
        for wrong in ["", "0", "99999999999"] {
            assert!(WorkloadProcess::parse(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn first_process_of_a_namespace_sees_no_workload() {
        assert!(is_alone(Pid::from_raw(1).unwrap()));
        assert!(!is_alone(Pid::from_raw(7).unwrap()));
    }

    #[tokio::test]
    async fn own_process_is_no_workload() {
        let Err(error) = open(getpid()) else {
            panic!("the process itself")
        };
        assert!(error.to_string().contains("the proxy itself"), "{error}");
    }
}
