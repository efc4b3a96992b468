//! Limit of open files, which limits connections.
//!
//! Invariant: [`connections_max`] leaves files for listeners, the admin server, logs and configuration, whatever
//! clients do.

use std::fs::File;
use std::io;

use rustix::io::Errno;
use rustix::process::{Resource, getrlimit, setrlimit};

/// Raises the process's soft limit of open files to its hard limit, and returns it; `None` means no limit.
///
/// Shells start programs with a soft limit of 1,024 for the sake of `select`, which the proxy does not use; a proxied
/// connection needs two files.
///
/// # Errors
///
/// Fails when the system refuses, which leaves the limit unchanged.
pub fn raise_limit() -> io::Result<Option<u64>> {
    let mut limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum {
        limit.current = limit.maximum;
        setrlimit(Resource::Nofile, limit)?;
    }
    Ok(limit.maximum)
}

/// Returns the soft limit; `None` means no limit.
pub fn limit() -> Option<u64> {
    getrlimit(Resource::Nofile).current
}

/// Files that are reserved for other uses than client connections and their upstream connections.
const RESERVE: u64 = 512;

/// Returns the number of downstream connections that a limit of open files allows: each needs a file for itself and one
/// upstream. The reserve is at most a quarter of the limit.
pub fn connections_max(limit: Option<u64>) -> usize {
    let connections = limit.map_or(u64::MAX, |limit| (limit - RESERVE.min(limit / 4)) / 2);
    usize::try_from(connections).unwrap_or(usize::MAX)
}

/// Returns the number of connections that a limit of open files allows in a server without upstream connections.
pub fn connections_max_of_server(limit: Option<u64>) -> usize {
    let connections = limit.map_or(u64::MAX, |limit| limit - RESERVE.min(limit / 4));
    usize::try_from(connections).unwrap_or(usize::MAX)
}

/// Open file that is held in reserve, to be closed when the system has no more.
#[derive(Debug)]
pub struct SpareFile(Option<File>);

impl SpareFile {
    /// Opens the file, if possible.
    pub fn hold() -> Self {
        Self(File::open("/dev/null").ok())
    }

    /// Closes the file while `run` uses its descriptor, and opens it again. Returns `None` if no file was held.
    pub fn lend<T>(&mut self, run: impl FnOnce() -> T) -> Option<T> {
        drop(self.0.take()?);
        let result = run();
        *self = Self::hold();
        Some(result)
    }

    /// Returns whether an error means that the process or the system has no file descriptor left.
    pub fn is_wanted(error: &io::Error) -> bool {
        let wanted = [Errno::MFILE, Errno::NFILE].map(Errno::raw_os_error);
        error
            .raw_os_error()
            .is_some_and(|code| wanted.contains(&code))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connection_limit_keeps_a_reserve_of_files() {
        for (limit, connections) in [
            (None, usize::MAX),
            (Some(0), 0),
            (Some(64), 24),
            (Some(1_024), 384),
            (Some(2_048), 768),
            (Some(1_048_576), 524_032),
        ] {
            assert_eq!(connections_max(limit), connections, "{limit:?}");
        }
        for (limit, connections) in [
            (None, usize::MAX),
            (Some(64), 48),
            (Some(1_024), 768),
            (Some(20_000), 19_488),
        ] {
            assert_eq!(connections_max_of_server(limit), connections, "{limit:?}");
        }
    }

    #[test]
    fn soft_limit_is_raised_to_the_hard_limit() {
        let raised = raise_limit().unwrap();
        assert_eq!(getrlimit(Resource::Nofile).current, raised);
    }
}
