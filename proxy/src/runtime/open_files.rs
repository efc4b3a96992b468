//! The limit of open files, which is a limit of connections.

use std::io;

use rustix::process::{Resource, getrlimit, setrlimit};

/// Raises the process's soft limit of open files to its hard limit, and returns it; `None` is no limit.
///
/// Shells start programs with a soft limit of 1,024 for the sake of `select`, which nothing here uses; a proxy needs two
/// files per connection that it carries.
///
/// # Errors
///
/// When the system refuses, which leaves the limit as it was.
pub fn raise_limit() -> io::Result<Option<u64>> {
    let mut limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum {
        limit.current = limit.maximum;
        setrlimit(Resource::Nofile, limit)?;
    }
    Ok(limit.maximum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn soft_limit_becomes_the_hard_one() {
        let raised = raise_limit().unwrap();
        assert_eq!(getrlimit(Resource::Nofile).current, raised);
    }
}
