//! Reads certificate and key files.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt;
use std::sync::Arc;

use rustix::fs::OFlags;

use crate::tls::store::NamedContent;
use crate::tls::{Problem, ProblemKind};

/// Maximum bytes of a file.
pub(super) const FILE_BYTES_MAX: u64 = 1 << 20;

/// Reads a file, and returns its bytes with its path.
pub(in crate::control) fn file(path: &Arc<str>) -> Result<NamedContent, Problem> {
    let read = || -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        // A pipe is not a file either, and opening one would wait for its writer.
        let file = File::options()
            .read(true)
            .custom_flags(OFlags::NONBLOCK.bits().cast_signed())
            .open(&**path)?;
        if !file.metadata()?.is_file() {
            return Err(io::Error::other("it is not a file"));
        }
        file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > FILE_BYTES_MAX {
            let text = format!("it has more than {FILE_BYTES_MAX} bytes");
            return Err(io::Error::other(text));
        }
        Ok(bytes)
    };
    match read() {
        Ok(bytes) => Ok((Arc::clone(path), bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let text = "there is no such file";
            Err(Problem::new(ProblemKind::Missing, Arc::clone(path), text))
        }
        Err(error) => {
            let text = format!("it cannot be read: {error}");
            Err(Problem::new(
                ProblemKind::Unreadable,
                Arc::clone(path),
                text,
            ))
        }
    }
}
