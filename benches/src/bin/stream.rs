//! The program `stream`: a config server with many objects, and a proxy that follows it.
//!
//! Everything it does is in `benches::stream`; this file only turns the outcome into an exit code.

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
