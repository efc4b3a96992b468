//! `instructions`: counts the user-space instructions of a small request.
//!
//! The program is implemented in `benches::instructions`; this file only starts it.

use std::process::ExitCode;

use benches::compare::exit_code;
use benches::instructions::{Arguments, run};
use clap::Parser as _;

fn main() -> ExitCode {
    let result = run(&Arguments::parse());
    exit_code("instructions", result.map(|()| ExitCode::SUCCESS))
}
