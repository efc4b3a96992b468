//! Worker threads: one current-thread runtime with a local set each.

use std::future::Future;
use std::io;
use std::num::NonZeroUsize;
use std::thread::{Builder, JoinHandle};

use tokio::runtime;
use tokio::task::LocalSet;

/// Default number of workers: the cores that this process may use.
pub fn default_concurrency() -> NonZeroUsize {
    std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN)
}

/// Starts the thread `strait-worker-ID` and runs the future of `make` on it, inside a local set. When that future ends,
/// every remaining task of the thread is dropped.
///
/// # Errors
///
/// Fails when the runtime or the thread cannot be made, for want of memory or file descriptors.
pub fn spawn<F, Fut>(id: usize, make: F) -> io::Result<JoinHandle<()>>
where
    F: FnOnce() -> Fut + Send + 'static,
    Fut: Future<Output = ()>,
{
    // Made here rather than on the thread, so that a failure is returned as an error.
    let runtime = runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    Builder::new()
        .name(format!("strait-worker-{id}"))
        .spawn(move || {
            let local = LocalSet::new();
            local.block_on(&runtime, async { make().await });
        })
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn worker_is_named_and_may_spawn_local_tasks() {
        let (tell, told) = mpsc::channel();
        let thread = spawn(3, move || async move {
            let name = std::thread::current().name().map(str::to_owned);
            tokio::task::spawn_local(async move { tell.send(name).unwrap() })
                .await
                .unwrap();
        });
        thread.unwrap().join().unwrap();
        assert_eq!(told.recv().unwrap().as_deref(), Some("strait-worker-3"));
    }
}
