//! The binary `strait`: parse arguments, call a command, map the result to an exit code.

use std::process::ExitCode;

fn main() -> ExitCode {
    proxy::command::main(std::env::args_os())
}
