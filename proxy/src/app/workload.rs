//! The process of the workload, whose end ends the proxy (`--exit-with-pid`).
//!
//! The kernel reports the end of a process on a file descriptor of it (pidfd_open(2)): nothing is polled, and another
//! process that gets its number later is no matter.

use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, getpid, pidfd_open};
use tokio::net::unix::pipe::Receiver;
use tokio::time::sleep;

use super::start_error::{StartError, failed};

/// How often to look for a file that does not have a number yet.
const FILE_INTERVAL: Duration = Duration::from_millis(100);

/// More than the digits of any number and a line break.
const FILE_BYTES_MAX: u64 = 64;

/// Which process is the workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WorkloadProcess {
    /// The one with this number.
    Pid(Pid),
    /// The one whose number is in this file, as soon as it is there.
    File(PathBuf),
}

impl WorkloadProcess {
    /// A number, or else a path.
    ///
    /// # Errors
    ///
    /// When the number is none of a process.
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

/// Parses the number of a process.
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

/// The number of a process in a file.
fn number_in(path: &Path, text: &str) -> Result<Pid, String> {
    pid(text).map_err(|error| {
        let file = path.display();
        format!("{file}: {error}; the file must have this number and nothing else, as `echo $$ > {file}` writes it")
    })
}

/// Waits for the end of the workload.
pub(super) enum Workload {
    /// It does not end the proxy.
    Unknown,
    /// Its number is not known yet.
    Awaited(PathBuf),
    Running(Receiver),
    Ended,
}

impl Workload {
    /// Looks for the process, or for the file if there is one already.
    ///
    /// # Errors
    ///
    /// When the process is not there or cannot be seen, or the file cannot be read.
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

    /// Waits until the process has ended. May be dropped and called again.
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

/// Whether a process with this number sees no process but its own children.
fn is_alone(own: Pid) -> bool {
    own == Pid::INIT
}

/// The process whose number a file has, as soon as it has one.
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
        // a short job may end before anyone looks
        Err(Unseen::Absent(pid)) => {
            tracing::warn!(
                file = %name,
                "{}: taken to have ended",
                Unseen::Absent(pid)
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

/// Why a process cannot be watched.
enum Unseen {
    Absent(Pid),
    Refused(Errno),
    Own,
    Unusable(io::Error),
}

impl std::fmt::Display for Unseen {
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

fn open(pid: Pid) -> Result<Workload, Unseen> {
    if pid == getpid() {
        return Err(Unseen::Own);
    }
    let process = pidfd_open(pid, PidfdFlags::NONBLOCK).map_err(|error| match error {
        Errno::SRCH => Unseen::Absent(pid),
        Errno::PERM | Errno::NOSYS => Unseen::Refused(error),
        other => Unseen::Unusable(other.into()),
    })?;
    // the runtime has no other safe type for a descriptor that becomes readable; nothing is read
    let process = Receiver::from_owned_fd_unchecked(process);
    process.map(Workload::Running).map_err(Unseen::Unusable)
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
