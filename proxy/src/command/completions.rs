//! `strait completions`: a completion script for a shell.

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use super::{Cli, EXIT_DONE};

/// Arguments of `strait completions`.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  strait completions bash > /etc/bash_completion.d/strait")]
pub struct CompletionsArgs {
    /// Shell to write the script for
    pub shell: Shell,
}

/// Writes the script to standard output.
pub fn run(args: &CompletionsArgs) -> u8 {
    clap_complete::generate(
        args.shell,
        &mut Cli::command(),
        "strait",
        &mut std::io::stdout(),
    );
    EXIT_DONE
}
