//! Scheduling priority: threads that send and answer requests run at normal priority, all others on the same core below
//! it.
//!
//! Otherwise the measured latency would include the wait for that core, which the server and its clients keep busy.

use std::io;
use std::sync::mpsc;
use std::thread;

use tokio::sync::oneshot;

use crate::compare::failure::{Failure, context};

/// Increase of niceness for the rest of the program, and for all programs that it starts.
const LOWER: i32 = 10;

type Job = Box<dyn FnOnce() + Send>;

/// Starter of threads at normal priority, even though its caller has been lowered.
#[derive(Clone, Debug)]
pub(super) struct Normal {
    jobs: mpsc::Sender<Job>,
}

impl Normal {
    /// Lowers the priority of the calling thread, and thereby of the threads and programs that it starts from now on,
    /// which inherit it.
    pub(super) fn lower_thread_priority() -> Result<Normal, Failure> {
        let (jobs, waiting) = mpsc::channel::<Job>();
        thread::spawn(move || {
            for job in waiting {
                thread::spawn(job);
            }
        });
        let lowered = rustix::process::nice(LOWER).map_err(io::Error::from);
        lowered.map_err(context("cannot lower the priority"))?;
        Ok(Normal { jobs })
    }

    /// Runs a job in a thread of its own at normal priority.
    pub(super) fn start(&self, job: impl FnOnce() + Send + 'static) -> Result<(), Failure> {
        let sent = self.jobs.send(Box::new(job));
        sent.map_err(context("no more threads"))
    }

    /// Runs a job with a result in a thread of its own at normal priority.
    pub(super) fn run<T: Send + 'static>(
        &self,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Result<oneshot::Receiver<T>, Failure> {
        let (sender, result) = oneshot::channel();
        self.start(move || drop(sender.send(job())))?;
        Ok(result)
    }
}
