//! Limit of open files, which must allow for all connections.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::error::Error;

/// Number of files that the process opens in addition to connections.
const OTHERS: u64 = 64;

/// Raises the limit of open files for this many connections, as far as the hard limit allows.
///
/// # Errors
/// When the hard limit is too low; the message states how to raise it.
pub fn make_room(connections: u64) -> Result<(), Error> {
    let limits = getrlimit(Resource::Nofile);
    let Some(current) = raised(&limits, connections + OTHERS)? else {
        return Ok(());
    };
    let maximum = limits.maximum;
    let limit = Rlimit {
        current: Some(current),
        maximum,
    };
    let failed = |error| Error::Start(format!("the limit of open files cannot be raised: {error}"));
    setrlimit(Resource::Nofile, limit).map_err(failed)
}

/// Returns the required soft limit, if the current one is lower.
fn raised(limits: &Rlimit, wanted: u64) -> Result<Option<u64>, Error> {
    if limits.current.is_none_or(|current| current >= wanted) {
        return Ok(None);
    }
    match limits.maximum {
        Some(maximum) if maximum < wanted => Err(Error::Usage(format!(
            "{wanted} files must be open, the limit is {maximum}: raise it with `ulimit -Hn`, or use fewer --connections"
        ))),
        _ => Ok(Some(wanted)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn soft_limit_is_raised_to_what_is_needed_and_the_hard_one_holds() {
        let limits = |current, maximum| Rlimit { current, maximum };
        let raised = |limits: Rlimit| raised(&limits, 1_000);
        assert_eq!(raised(limits(None, None)), Ok(None));
        assert_eq!(raised(limits(Some(1_000), Some(1_000))), Ok(None));
        assert_eq!(raised(limits(Some(256), None)), Ok(Some(1_000)));
        assert_eq!(raised(limits(Some(256), Some(4_096))), Ok(Some(1_000)));
        let error = raised(limits(Some(256), Some(512)))
            .unwrap_err()
            .to_string();
        assert!(error.contains("ulimit -Hn"), "{error}");
    }
}
