//! `instructions`: counts the user-space instructions of a small request.
//!
//! The program is implemented in `benches::instructions`; this file only converts the result to an exit code.

use std::io::Write as _;
use std::process::ExitCode;

use clap::Parser as _;

use benches::instructions::{Arguments, run};

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            // Nothing is left to tell when even standard error is gone.
            let _ = writeln!(std::io::stderr(), "instructions: {failure}");
            ExitCode::FAILURE
        }
    }
}
