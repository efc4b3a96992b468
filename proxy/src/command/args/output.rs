//! Arguments of commands that ask a running proxy, and print what they find.

use clap::{Args, ValueEnum};

/// Proxy that is asked.
#[derive(Clone, Debug, Args)]
pub struct AdminArgs {
    /// Address of the proxy's admin server
    #[arg(
        long,
        value_name = "HOST:PORT",
        default_value = "127.0.0.1:15000",
        env = "STRAIT_ADMIN"
    )]
    pub admin: String,
}

/// `--output`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OutputArg {
    /// For a person at a terminal
    Text,
    /// Objects, for programs
    Json,
}
