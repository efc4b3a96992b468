//! The binary `strait`: parse arguments, call a command, map the result to an exit code.

use std::process::ExitCode;

use tikv_jemallocator::Jemalloc;

/// Better than the one of glibc at what this program does: many threads that allocate small pieces and free those of
/// others, peaks, and configurations that replace each other. It returns memory to the system by threads of its own.
#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

fn main() -> ExitCode {
    proxy::command::main(std::env::args_os())
}
