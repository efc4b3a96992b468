//! `stream`: measures a config server with many objects, and a proxy that follows it.
//!
//! The program is implemented in `benches::stream`; this file only starts it.

use std::process::ExitCode;

use benches::compare::exit_code;
use benches::stream::{Arguments, run};
use clap::Parser as _;

fn main() -> ExitCode {
    let result = run(&Arguments::parse());
    exit_code("stream", result.map(|()| ExitCode::SUCCESS))
}
