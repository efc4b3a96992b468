//! `load`: sends requests at a constant rate, and measures the latency.
//!
//! The program is implemented in `benches::load`.

use std::process::ExitCode;

use benches::load::{arguments::Arguments, run};
use clap::Parser as _;

fn main() -> ExitCode {
    run(&Arguments::parse())
}
