//! `strait completions`: a completion script for a shell.

use clap::Args;
use clap_complete::Shell;

use super::EXIT_DONE;

/// Arguments of `strait completions`.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  strait completions bash > /etc/bash_completion.d/strait")]
pub struct CompletionsArgs {
    /// Shell to write the script for
    pub shell: Shell,
}

/// Writes the script for a command line to standard output.
pub fn run(args: &CompletionsArgs, mut cli: clap::Command) -> u8 {
    clap_complete::generate(args.shell, &mut cli, "strait", &mut std::io::stdout());
    EXIT_DONE
}
