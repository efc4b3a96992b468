//! `compare`: compares Strait with nginx, HAProxy and Envoy under the same load, in one run.
//!
//! The program is implemented in `benches::compare`; this file only starts it.

use std::process::ExitCode;

use benches::compare::{arguments, exit_code, run};

fn main() -> ExitCode {
    exit_code("compare", run(arguments::parse()))
}
