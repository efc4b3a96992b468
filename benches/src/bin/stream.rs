//! `stream`: measures a config server with many objects, and a proxy that follows it.
//!
//! The program is implemented in `benches::stream`; this file only converts the result to an exit code.

use std::io::Write as _;
use std::process::ExitCode;

use clap::Parser as _;

use benches::stream::{Arguments, run};

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            // Nothing is left to tell when even standard error is gone.
            let _ = writeln!(std::io::stderr(), "stream: {failure}");
            ExitCode::FAILURE
        }
    }
}
