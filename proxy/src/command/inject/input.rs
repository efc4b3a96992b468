//! Inputs of `strait inject`: files, directories, and standard input.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use config_loader::parse::FILE_BYTES_MAX;

/// Text of a file.
pub(in crate::command) struct Input {
    pub(in crate::command) name: String,
    pub(in crate::command) text: String,
}

/// Reads all inputs, in their order; those of a directory by name.
///
/// # Errors
///
/// Names the path that cannot be read.
pub(in crate::command) fn read(paths: &[PathBuf]) -> Result<Vec<Input>, String> {
    let mut inputs = Vec::new();
    for path in paths {
        add(path, true, &mut inputs).map_err(|error| match &*path.to_string_lossy() {
            "-" => format!("standard input: {error}"),
            path => format!("{path}: {error}"),
        })?;
    }
    Ok(inputs)
}

fn add(path: &Path, is_named: bool, inputs: &mut Vec<Input>) -> io::Result<()> {
    if path == Path::new("-") {
        let text = limited(io::stdin().lock())?;
        inputs.push(Input {
            name: "standard input".to_owned(),
            text,
        });
        return Ok(());
    }
    if path.is_dir() {
        let entries = fs::read_dir(path)?.map(|entry| entry.map(|entry| entry.path()));
        let mut entries: Vec<PathBuf> = entries.collect::<io::Result<_>>()?;
        entries.sort();
        return entries
            .iter()
            .try_for_each(|entry| add(entry, false, inputs));
    }
    let extension = path.extension().unwrap_or_default();
    let is_resource = ["json", "yaml", "yml"].iter().any(|one| extension == *one);
    if is_named || is_resource {
        let text = limited(fs::File::open(path)?)?;
        inputs.push(Input {
            name: path.display().to_string(),
            text,
        });
    }
    Ok(())
}

/// Reads a text, up to the size limit of a file of resources.
fn limited(reader: impl Read) -> io::Result<String> {
    let mut text = String::new();
    reader.take(FILE_BYTES_MAX + 1).read_to_string(&mut text)?;
    if text.len() as u64 > FILE_BYTES_MAX {
        return Err(io::Error::other(format!(
            "more than {FILE_BYTES_MAX} bytes; split it into several files"
        )));
    }
    Ok(text)
}
