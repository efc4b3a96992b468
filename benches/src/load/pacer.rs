//! Precise timer for due times.
//!
//! Tokio's timers have a resolution of 1 ms, which is ten requests at a rate of 10,000; the kernel's have about 50 us.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::time::{Instant, sleep_until};

/// Timer.
#[derive(Debug)]
pub enum Pacer {
    /// Kernel timer.
    Kernel(AsyncFd<OwnedFd>),
    /// Timer of the runtime, whose time may be paused.
    Runtime,
}

impl Pacer {
    /// Creates a kernel timer for use on this runtime.
    ///
    /// # Errors
    /// When the process has no file descriptors left.
    pub fn kernel() -> io::Result<Self> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        #[expect(
            deprecated,
            reason = "its replacement is unsafe, for types that change their descriptor; an OwnedFd does not"
        )]
        let timer = AsyncFd::with_interest(timer, Interest::READABLE)?;
        Ok(Self::Kernel(timer))
    }

    /// Waits until this time, and returns shortly after it. May be dropped and called again.
    ///
    /// # Errors
    /// When the kernel refuses the timer.
    pub async fn wait_until(&self, at: Instant) -> io::Result<()> {
        let timer = match self {
            Self::Kernel(timer) => timer,
            Self::Runtime => {
                sleep_until(at).await;
                return Ok(());
            }
        };
        loop {
            let left = at.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            // Setting the timer forgets that it has expired; each expiry is one event.
            timerfd_settime(timer.get_ref(), TimerfdTimerFlags::empty(), &once(left))?;
            timer.readable().await?.clear_ready();
        }
    }
}

fn once(after: Duration) -> Itimerspec {
    let seconds = i64::try_from(after.as_secs()).unwrap_or(i64::MAX);
    Itimerspec {
        it_interval: Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        },
        it_value: Timespec {
            tv_sec: seconds,
            tv_nsec: i64::from(after.subsec_nanos()),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn timer_never_returns_early_and_can_be_used_again() {
        let pacer = Pacer::kernel().unwrap();
        for micros in [0, 300, 100] {
            let at = Instant::now() + Duration::from_micros(micros);
            pacer.wait_until(at).await.unwrap();
            assert!(Instant::now() >= at);
        }
    }

    #[tokio::test]
    async fn wait_that_was_given_up_does_not_end_the_next_one() {
        let pacer = Pacer::kernel().unwrap();
        let soon = Instant::now() + Duration::from_micros(200);
        tokio::select! {
            biased;
            _ = pacer.wait_until(soon) => panic!("the timer cannot have expired"),
            () = std::future::ready(()) => {}
        }
        let at = Instant::now() + Duration::from_millis(2);
        pacer.wait_until(at).await.unwrap();
        assert!(Instant::now() >= at);
    }
}
