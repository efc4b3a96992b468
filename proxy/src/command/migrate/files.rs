//! Input of `strait migrate`.

use std::path::PathBuf;

use clap::Args;

/// Files that are read.
#[derive(Debug, Args)]
pub struct FilesArgs {
    /// File, directory (read recursively), or - for standard input. May be repeated
    #[arg(
        short = 'f',
        long = "filename",
        value_name = "PATH",
        default_value = "-",
        env = "STRAIT_MIGRATE_FILENAME",
        value_delimiter = ','
    )]
    pub filenames: Vec<PathBuf>,
}
