//! Threads of a run, each with its own event loop, connections, and part of the schedule.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use tokio::sync::watch;
use tokio::task::LocalSet;

use super::dial::Dialer;
use super::engine::{Begin, End, Engine, Plan};
use super::error::Error;
use super::outcome::{Fault, Sample};
use super::pacer::Pacer;
use super::progress::Interval;
use super::queue::Order;
use super::record::Record;
use super::schedule::{Part, Schedule};
use super::settings::Settings;

/// Interval between reports of a thread to the main thread.
const TELL_INTERVAL: Duration = Duration::from_millis(200);

/// Interval between progress lines.
const LINE_INTERVAL: Duration = Duration::from_secs(1);

/// Maximum number of unread messages of threads; counts beyond that are sent with a later message.
const MESSAGES_MAX: usize = 1024;

/// Number of tasks that run before sockets and the timer are polled again; tokio's default of 61 delays due requests.
const EVENT_INTERVAL: u32 = 8;

/// Result of a run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Counts of all threads.
    pub record: Record,
    /// Time from the first counted request to the last response.
    pub elapsed: Duration,
    /// Number of requests in flight or waiting when the run was stopped.
    pub abandoned: u64,
    /// Whether the run was stopped early.
    pub stopped: bool,
    /// Number of connections that could not be opened before the run, and the first failure.
    pub unopened: Option<(usize, Fault)>,
}

enum Message {
    Opened(usize, Option<Fault>),
    Interval(Interval),
}

/// Result of one thread.
struct Done {
    record: Record,
    last: Duration,
    end: End,
}

/// Channels between a thread and the main thread, and the index of the thread.
struct Link {
    index: u32,
    messages: SyncSender<Message>,
    /// Start time of the run; closed if the run does not start.
    start: watch::Receiver<Option<Instant>>,
    stop: watch::Receiver<bool>,
}

/// Opens the connections, sends the requests and waits for the responses. Prints progress lines.
///
/// # Errors
/// When no connection can be opened, or the operating system refuses threads or timers.
pub fn run(
    settings: &Settings,
    stop: &watch::Receiver<bool>,
    show: &mut dyn FnMut(&str),
) -> Result<Outcome, Error> {
    let (messages, received) = sync_channel(MESSAGES_MAX);
    let (start, started) = watch::channel(None);
    thread::scope(|scope| {
        let link = |index| Link {
            index,
            messages: messages.clone(),
            start: started.clone(),
            stop: stop.clone(),
        };
        let threads: Vec<_> = (0..settings.threads)
            .map(|index| {
                let link = link(index);
                scope.spawn(move || one_thread(settings, link))
            })
            .collect();
        drop(messages);
        let unopened = opened(settings, &received);
        let unopened = match unopened {
            Ok(unopened) => unopened,
            Err(error) => {
                drop(start);
                return Err(error);
            }
        };
        let begin = Instant::now();
        start.send_replace(Some(begin));
        follow(&received, begin, settings.length(), show);
        let mut outcome = Outcome {
            record: Record::new(settings.counted.clone()),
            elapsed: Duration::ZERO,
            abandoned: 0,
            stopped: false,
            unopened,
        };
        for thread in threads {
            let done = thread
                .join()
                .map_err(|_| Error::Start("a thread panicked".to_owned()))??;
            outcome.record.merge(&done.record);
            outcome.elapsed = outcome
                .elapsed
                .max(done.last.saturating_sub(settings.warm_up));
            outcome.abandoned += done.end.abandoned;
            outcome.stopped |= done.end.stopped;
        }
        Ok(outcome)
    })
}

/// Waits until every thread has opened its connections. Failure of some connections is no error.
fn opened(
    settings: &Settings,
    received: &Receiver<Message>,
) -> Result<Option<(usize, Fault)>, Error> {
    let (mut failed, mut first) = (0, None);
    let mut missing = settings.threads;
    while missing > 0 {
        match received.recv() {
            Ok(Message::Opened(more, fault)) => {
                failed += more;
                first = first.or(fault);
                missing -= 1;
            }
            Ok(Message::Interval(_)) => {}
            // A thread ended before; its error is found when it is joined.
            Err(_) => break,
        }
    }
    let Some(fault) = first else { return Ok(None) };
    if failed < settings.connections as usize {
        return Ok(Some((failed, fault)));
    }
    Err(Error::Start(format!(
        "cannot connect to {} ({}): {}: {}; start the proxy, or give the URL of another one",
        settings.address.url(),
        settings.resolved,
        fault.class.name(),
        fault.reason
    )))
}

/// Shows progress lines until all threads have ended.
fn follow(
    received: &Receiver<Message>,
    begin: Instant,
    length: Duration,
    show: &mut dyn FnMut(&str),
) {
    let mut interval = Interval::default();
    let (mut last, mut next) = (begin, begin + LINE_INTERVAL);
    loop {
        match received.recv_timeout(next.saturating_duration_since(Instant::now())) {
            Ok(Message::Interval(more)) => interval.merge(&more),
            Ok(Message::Opened(..)) => {}
            Err(RecvTimeoutError::Disconnected) => return,
            Err(RecvTimeoutError::Timeout) => {
                let now = Instant::now();
                show(&interval.line(now - begin, length, now - last));
                interval.clear();
                (last, next) = (now, next + LINE_INTERVAL);
            }
        }
    }
}

fn one_thread(settings: &Settings, link: Link) -> Result<Done, Error> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .event_interval(EVENT_INTERVAL)
        .enable_all()
        .build();
    let failed = |error| Error::Start(format!("the load generator cannot run: {error}"));
    let runtime = runtime.map_err(failed)?;
    LocalSet::new()
        .block_on(&runtime, work(settings, link))
        .map_err(failed)
}

/// Returns the part of `all` for one of several threads.
fn share(all: u32, index: u32, threads: u32) -> usize {
    (all / threads + u32::from(index < all % threads)) as usize
}

async fn work(settings: &Settings, mut link: Link) -> std::io::Result<Done> {
    let mut engine = Engine::new(Plan {
        dialer: Dialer::Network {
            address: settings.resolved,
            tls: settings.tls.clone(),
        },
        protocol: settings.protocol,
        connections: share(settings.connections, link.index, settings.threads),
        streams: settings.streams as usize,
        timeout: settings.timeout,
        requests: settings.requests.clone(),
        expected: settings.expected.clone(),
        order: Order::Fair,
    });
    let pacer = Pacer::kernel()?;
    let (failed, fault) = engine.open().await;
    let _ = link.messages.send(Message::Opened(failed, fault));
    let tally = Rc::new(RefCell::new(Tally::new(settings, link.messages)));
    let start = link
        .start
        .wait_for(Option::is_some)
        .await
        .ok()
        .and_then(|start| *start);
    let Some(start) = start else {
        let end = End {
            abandoned: 0,
            stopped: true,
        };
        return Ok(Done {
            record: Record::new(None),
            last: Duration::ZERO,
            end,
        });
    };
    let part = Part {
        index: u64::from(link.index),
        of: u64::from(settings.threads),
    };
    let schedule = Schedule::new(settings.rate, settings.length(), settings.arrivals, part);
    let sink = Rc::clone(&tally);
    let sink = Rc::new(move |sample: &Sample| sink.borrow_mut().add(sample));
    let begin = Begin {
        pacer: &pacer,
        start: start.into(),
    };
    let end = engine.run(begin, schedule, link.stop, sink).await?;
    let tally = tally.borrow();
    Ok(Done {
        record: tally.record.clone(),
        last: tally.last,
        end,
    })
}

/// Counts of one thread.
struct Tally {
    record: Record,
    warm_up: Duration,
    /// Time of the last outcome, from the start of the run.
    last: Duration,
    interval: Interval,
    told: Duration,
    messages: SyncSender<Message>,
}

impl Tally {
    fn new(settings: &Settings, messages: SyncSender<Message>) -> Self {
        Self {
            record: Record::new(settings.counted.clone()),
            warm_up: settings.warm_up,
            last: Duration::ZERO,
            interval: Interval::default(),
            told: Duration::ZERO,
            messages,
        }
    }

    fn add(&mut self, sample: &Sample) {
        self.last = self.last.max(sample.due + sample.latency);
        if sample.due >= self.warm_up {
            self.record.add(sample);
        }
        self.interval.add(sample);
        if self.last > self.told + TELL_INTERVAL {
            self.told = self.last;
            // What cannot be told now is told with the next interval.
            if self
                .messages
                .try_send(Message::Interval(self.interval.clone()))
                .is_ok()
            {
                self.interval.clear();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_share_everything() {
        for (all, threads) in [(64, 1), (64, 3), (7, 4), (3, 3)] {
            let shares: Vec<_> = (0..threads)
                .map(|index| share(all, index, threads))
                .collect();
            assert_eq!(shares.iter().sum::<usize>(), all as usize);
            assert!(shares.iter().max().unwrap() - shares.iter().min().unwrap() <= 1);
        }
    }
}
