//! `drill`: a zone fails under load and recovers.
//!
//! The program is implemented in `benches::drill`; this file only starts it.

use std::process::ExitCode;

use benches::compare::exit_code;
use benches::drill::{Arguments, run};
use clap::Parser as _;

fn main() -> ExitCode {
    let result = run(&Arguments::parse());
    exit_code("drill", result.map(|()| ExitCode::SUCCESS))
}
