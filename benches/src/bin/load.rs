//! The program `load`: requests at a constant rate, and how long the responses take.
//!
//! Everything it does is in `benches::load`.

use std::process::ExitCode;

use benches::load::{arguments::Arguments, run};
use clap::Parser as _;

fn main() -> ExitCode {
    run(&Arguments::parse())
}
