//! Requests come first: what sends and answers them runs at normal priority, all else on the same core below it.
//!
//! Otherwise their latency would be how long they wait for that core, which the server and its clients fill.

use std::io;
use std::sync::mpsc;
use std::thread;

use tokio::sync::oneshot;

use crate::compare::failure::{Failure, context};

/// What the rest of the program, and all that it starts, adds to its niceness.
const LOWER: i32 = 10;

type Job = Box<dyn FnOnce() + Send>;

/// Starts threads at normal priority, after its own thread has been lowered.
#[derive(Clone, Debug)]
pub(super) struct Normal {
    jobs: mpsc::Sender<Job>,
}

impl Normal {
    /// Lowers the thread of the caller, and with it the threads and programs that it starts from now on: a thread begins
    /// with the priority of the one that starts it.
    pub(super) fn above_the_rest() -> Result<Normal, Failure> {
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

    /// Runs something in a thread of its own at normal priority.
    pub(super) fn start(&self, job: impl FnOnce() + Send + 'static) -> Result<(), Failure> {
        let sent = self.jobs.send(Box::new(job));
        sent.map_err(context("no more threads"))
    }

    /// The same for something that has a result.
    pub(super) fn run<T: Send + 'static>(
        &self,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Result<oneshot::Receiver<T>, Failure> {
        let (sender, result) = oneshot::channel();
        self.start(move || drop(sender.send(job())))?;
        Ok(result)
    }
}
