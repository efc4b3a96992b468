//! Load of one thread: a dispatcher that detects due requests, and slots that send them.
//!
//! Invariant: every request that was due before the end yields one sample, unless the run was stopped early. Its
//! latency counts from its due time, even if a slot became free only later, so that a server that stalls is charged for
//! all the requests that came due meanwhile (no coordinated omission).

use std::cell::Cell;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::{JoinSet, yield_now};
use tokio::time::{Instant, timeout_at};

use super::dial::Dialer;
use super::http1::Http1;
use super::http2::Http2;
use super::outcome::{Expected, FailureClass, Fault, Reply, Sample};
use super::pacer::Pacer;
use super::protocol::Protocol;
use super::queue::{Job, Order, Queue};
use super::request::Requests;
use super::schedule::Schedule;

/// Maximum number of connections that are opened concurrently before the run.
const OPENED_AT_ONCE: usize = 128;

/// Callback that receives the samples, one after the other.
pub type Sink = Rc<dyn Fn(&Sample)>;

/// Settings of the load of one thread.
pub struct Plan {
    /// Opener of connections.
    pub dialer: Dialer,
    /// Protocol.
    pub protocol: Protocol,
    /// Number of connections of this thread.
    pub connections: usize,
    /// Maximum number of concurrent requests per HTTP/2 connection.
    pub streams: usize,
    /// Timeout of a request, from its due time to its complete response.
    pub timeout: Duration,
    /// Requests to send, in turn.
    pub requests: Requests,
    /// Conditions that a response must meet.
    pub expected: Expected,
    /// Order in which free connections are used.
    pub order: Order,
}

/// Connections of a thread, not necessarily open.
pub struct Engine {
    plan: Rc<Plan>,
    channels: Vec<Channel>,
}

/// Connection that a slot sends on.
enum Channel {
    Http1(Box<Http1>),
    Http2(Rc<Http2>),
}

/// Begin of a run.
pub struct Begin<'a> {
    /// Wakes the run when requests are due.
    pub pacer: &'a Pacer,
    /// Time at which the schedule begins.
    pub start: Instant,
}

/// State at the end of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    /// Number of requests that were due but have no sample, because the run was stopped.
    pub abandoned: u64,
    /// Whether the run was stopped early.
    pub stopped: bool,
}

impl Engine {
    /// Creates an engine without open connections; they are opened when needed.
    pub fn new(plan: Plan) -> Self {
        let plan = Rc::new(plan);
        let channels = if plan.protocol.is_http2() {
            let connections: Vec<_> = (0..plan.connections).map(|_| Rc::default()).collect();
            // Neighbors are on different connections, so that these share the load.
            let slots = plan.connections * plan.streams;
            connections
                .iter()
                .cycle()
                .take(slots)
                .cloned()
                .map(Channel::Http2)
                .collect()
        } else {
            (0..plan.connections)
                .map(|_| Channel::Http1(Box::default()))
                .collect()
        };
        Self { plan, channels }
    }

    /// Opens all connections. Returns the number of failures, and the first failure.
    pub async fn open(&mut self) -> (usize, Option<Fault>) {
        let deadline = Instant::now() + self.plan.timeout;
        let (mut failed, mut reason) = (0, None);
        let connections = self.plan.connections;
        for channels in self.channels[..connections].chunks_mut(OPENED_AT_ONCE) {
            let mut opening = JoinSet::new();
            for (index, channel) in channels.iter_mut().enumerate() {
                let mut taken = std::mem::replace(channel, Channel::Http1(Box::default()));
                let plan = Rc::clone(&self.plan);
                opening.spawn_local(async move {
                    let opened = timeout_at(deadline, taken.open(&plan.dialer)).await;
                    let late = |_| Err(Fault::new(FailureClass::Connect, "timed out"));
                    (index, taken, opened.unwrap_or_else(late))
                });
            }
            while let Some(opened) = opening.join_next().await {
                let Ok((index, channel, opened)) = opened else {
                    continue;
                };
                channels[index] = channel;
                if let Err(fault) = opened {
                    failed += 1;
                    reason.get_or_insert(fault);
                }
            }
        }
        (failed, reason)
    }

    /// Sends all requests of the schedule. Returns when each has a sample, or immediately when stopped.
    ///
    /// Must run on a `LocalSet`.
    ///
    /// # Errors
    /// When the timer fails.
    pub async fn run(
        self,
        begin: Begin<'_>,
        schedule: Schedule,
        mut stop: watch::Receiver<bool>,
        sink: Sink,
    ) -> std::io::Result<End> {
        let Begin { pacer, start } = begin;
        let queue = Rc::new(Queue::new(self.channels.len(), self.plan.order));
        let shared = Shared {
            plan: self.plan,
            queue,
            start,
            sink,
            open: Rc::default(),
        };
        let mut slots = JoinSet::new();
        for (index, channel) in self.channels.into_iter().enumerate() {
            let slot = Slot {
                index,
                channel,
                shared: shared.clone(),
            };
            slots.spawn_local(slot.run());
        }
        let work = async {
            shared.dispatch(pacer, schedule).await?;
            shared.queue.close();
            while slots.join_next().await.is_some() {}
            Ok(())
        };
        let ended = tokio::select! {
            biased;
            ended = work => Some(ended),
            () = stopped(&mut stop) => None,
        };
        slots.shutdown().await;
        let abandoned = shared.open.get();
        match ended {
            Some(ended) => ended.map(|()| End {
                abandoned,
                stopped: false,
            }),
            None => Ok(End {
                abandoned,
                stopped: true,
            }),
        }
    }
}

/// Waits until the run is stopped; forever if the sender of the stop signal is gone.
async fn stopped(stop: &mut watch::Receiver<bool>) {
    if stop.wait_for(|stop| *stop).await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// State that the dispatcher and the slots of a run share.
#[derive(Clone)]
struct Shared {
    plan: Rc<Plan>,
    queue: Rc<Queue>,
    start: Instant,
    sink: Sink,
    /// Number of requests that were due and have no sample yet.
    open: Rc<Cell<u64>>,
}

impl Shared {
    async fn dispatch(&self, pacer: &Pacer, mut schedule: Schedule) -> std::io::Result<()> {
        while let Some(next) = schedule.next_due() {
            pacer.wait_until(self.start + next.at).await?;
            let now = Instant::now();
            while let Some(due) = schedule.take(now.saturating_duration_since(self.start)) {
                let due_at = self.start + due.at;
                let job = Job {
                    number: due.number,
                    due: due_at,
                    noticed: now,
                    waited: false,
                };
                self.open.set(self.open.get() + 1);
                if let Err(job) = self.queue.push(job) {
                    self.finish(&unsent(&job, self.start, now));
                }
            }
            // At high rates the next request is due already; the slots must have their turn.
            yield_now().await;
        }
        Ok(())
    }

    fn finish(&self, sample: &Sample) {
        self.open.set(self.open.get() - 1);
        (self.sink)(sample);
    }
}

/// Returns the sample of a request that was never sent: no slot was free before its timeout, or too many requests
/// waited.
fn unsent(job: &Job, start: Instant, now: Instant) -> Sample {
    Sample {
        due: job.due - start,
        late: job.noticed - job.due,
        waited: now - job.noticed,
        latency: now - job.due,
        reply: None,
        fault: Some(Fault::new(
            FailureClass::NotSent,
            "no connection was free in time",
        )),
    }
}

/// Slot, which sends one request at a time.
struct Slot {
    index: usize,
    channel: Channel,
    shared: Shared,
}

impl Slot {
    /// Sends requests until there are no more.
    async fn run(mut self) {
        while let Some(job) = self.next().await {
            let sample = self.send(&job).await;
            self.shared.finish(&sample);
            self.reopen().await;
        }
    }

    /// Returns the next request. Reopens a connection that is closed meanwhile.
    async fn next(&mut self) -> Option<Job> {
        loop {
            let queue = &self.shared.queue;
            let next = poll_fn(|cx| match queue.poll_next(self.index, cx) {
                Poll::Ready(job) => Poll::Ready(Ok(job)),
                Poll::Pending => self.channel.poll_closed(cx).map(Err),
            });
            match next.await {
                Ok(job) => return job,
                Err(()) => {
                    queue.leave(self.index);
                    self.reopen().await;
                }
            }
        }
    }

    /// Opens the connection before a request needs it, if connections are kept open.
    async fn reopen(&mut self) {
        let plan = &self.shared.plan;
        if plan.order == Order::Fair {
            let deadline = Instant::now() + plan.timeout;
            // A failure is that of the next request, which dials itself.
            let _ = timeout_at(deadline, self.channel.open(&plan.dialer)).await;
        }
    }

    async fn send(&mut self, job: &Job) -> Sample {
        let taken = Instant::now();
        let deadline = job.due + self.shared.plan.timeout;
        if taken >= deadline {
            // Sent now, it could only fail, and would cost a connection.
            return unsent(job, self.shared.start, taken);
        }
        let (head, body) = (
            self.shared.plan.requests.head(job.number),
            self.shared.plan.requests.body(),
        );
        let exchange = self.channel.exchange(&self.shared.plan.dialer, head, body);
        let outcome = timeout_at(deadline, exchange).await;
        let end = Instant::now();
        let (reply, fault) = match outcome {
            Ok(Ok(reply)) => {
                let fault = self.shared.plan.expected.fault(&reply);
                (Some(reply), fault)
            }
            Ok(Err(fault)) => (None, Some(fault)),
            Err(_) => {
                let reason = format!("no complete response after {:?}", self.shared.plan.timeout);
                (None, Some(Fault::new(FailureClass::Timeout, reason)))
            }
        };
        // Without a free slot the wait is the server's; with one it is this program that was late.
        let ready = if job.waited { job.noticed } else { taken };
        Sample {
            due: job.due - self.shared.start,
            late: ready - job.due,
            waited: taken - ready,
            latency: end - job.due,
            reply,
            fault,
        }
    }
}

impl Channel {
    async fn open(&mut self, dialer: &Dialer) -> Result<(), Fault> {
        match self {
            Self::Http1(connection) => connection.open(dialer).await,
            Self::Http2(connection) => connection.open(dialer).await,
        }
    }

    async fn exchange(
        &mut self,
        dialer: &Dialer,
        head: http::Request<()>,
        body: bytes::Bytes,
    ) -> Result<Reply, Fault> {
        match self {
            Self::Http1(connection) => connection.exchange(dialer, head, body).await,
            Self::Http2(connection) => connection.exchange(dialer, head, body).await,
        }
    }

    fn poll_closed(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match self {
            Self::Http1(connection) => connection.poll_closed(cx),
            // Its task notices.
            Self::Http2(_) => Poll::Pending,
        }
    }
}

#[cfg(test)]
mod tests;
