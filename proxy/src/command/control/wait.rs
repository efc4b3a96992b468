//! Runtime of short commands.

use tokio::runtime;

/// Runs a short command to its end.
pub(in crate::command) fn block_on<T>(
    work: impl Future<Output = Result<T, String>>,
) -> Result<T, String> {
    let runtime = runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| format!("cannot start threads: {error}"))?;
    runtime.block_on(work)
}
