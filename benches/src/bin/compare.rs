//! `compare`: compares Strait with nginx, HAProxy and Envoy under the same load, in one run.
//!
//! The program is implemented in `benches::compare`; this file only converts the result to an exit code.

use std::io::Write as _;
use std::process::ExitCode;

use benches::compare::{Failure, arguments, run};

fn main() -> ExitCode {
    match run(arguments::parse()) {
        Ok(code) => code,
        Err(failure) => {
            // Nothing is left to tell when even standard error is gone.
            let _ = writeln!(std::io::stderr(), "compare: {failure}");
            match failure {
                Failure::Cancelled => ExitCode::from(130),
                Failure::Other(_) => ExitCode::from(1),
            }
        }
    }
}
