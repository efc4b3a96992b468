//! The program `drill`: a zone dies under load and comes back.
//!
//! Everything it does is in `benches::drill`; this file only turns the outcome into an exit code.

use std::io::Write as _;
use std::process::ExitCode;

use clap::Parser as _;

use benches::drill::{Arguments, run};

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            // Nothing is left to tell when even standard error is gone.
            let _ = writeln!(std::io::stderr(), "drill: {failure}");
            ExitCode::FAILURE
        }
    }
}
