//! The program `instructions`: what a small request costs in user space, counted instead of timed.
//!
//! Everything it does is in `benches::instructions`; this file only turns the outcome into an exit code.

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
