//! `drill`: a zone fails under load and recovers.
//!
//! The program is implemented in `benches::drill`; this file only converts the result to an exit code.

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
