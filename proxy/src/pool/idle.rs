//! Idle HTTP/1 connections: a stack with the last used one on top.

use tokio::time::Instant;

use super::endpoint_pool::{EndpointPool, Idle, Stack, end_of_wait};
use crate::runtime::clock;
use crate::telemetry::{Counter, Gauge};
use crate::upstream::http1::Connection;
use traffic::connection::IDLE_CONNECTIONS_MAX;
use traffic::registry::{IdleMark, Offer};

impl Stack {
    /// Takes the last used connection. Drops closed ones, and those idle for too long, found before it.
    pub(super) fn pop(&self, pool: &EndpointPool) -> Option<Box<Connection>> {
        let counts = &pool.counts;
        let idle_timeout = pool.terms.get().idle_timeout;
        loop {
            let last = self.waiting.borrow_mut().pop_back();
            let Idle {
                connection, since, ..
            } = last?;
            counts.lower(Gauge::PoolIdle);
            let waited = clock::now().saturating_duration_since(since);
            let waited_too_long = waited >= idle_timeout;
            let ended = end_of_wait(connection.is_stale(), false, waited_too_long)
                .or_else(|| pool.end_of_use(&connection));
            let Some(why) = ended else {
                counts.add(Counter::PoolReused, 1);
                return Some(connection);
            };
            counts.add(why, 1);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.borrow().is_empty()
    }

    /// Takes the connection that was assigned to the request with this ticket.
    pub(super) fn take_aside(&self, ticket: u64) -> Option<Box<Connection>> {
        let mut aside = self.aside.borrow_mut();
        let at = aside.iter().position(|(whose, _)| *whose == ticket)?;
        Some(aside.swap_remove(at).1)
    }

    /// Puts a connection on top of the stack.
    fn push(&self, pool: &EndpointPool, idle: Idle) {
        let mut waiting = self.waiting.borrow_mut();
        if waiting.len() < IDLE_CONNECTIONS_MAX {
            waiting.push_back(idle);
            pool.counts.raise(Gauge::PoolIdle);
        } else {
            drop(waiting);
            pool.counts.add(Counter::PoolIdleLimit, 1);
        }
    }

    /// Drops connections that were idle for too long or are closed; all of them if the endpoint is gone. Announces
    /// connections that were parked before their cluster had a limit.
    pub(super) fn sweep(&self, pool: &EndpointPool, now: Instant, gone: bool) {
        let idle_timeout = pool.terms.get().idle_timeout;
        let limited = pool.cluster.connections.max() < usize::MAX;
        self.waiting.borrow_mut().retain_mut(|idle| {
            let waited_too_long = now.saturating_duration_since(idle.since) >= idle_timeout;
            let connection = &idle.connection;
            let end = end_of_wait(connection.is_stale(), gone, waited_too_long);
            let end = end.or_else(|| pool.end_of_use(connection));
            if let Some(why) = end {
                pool.counts.lower(Gauge::PoolIdle);
                pool.counts.add(why, 1);
            } else if limited && idle.mark.is_none() {
                idle.mark = Some(IdleMark::new(&pool.cluster).0);
            }
            end.is_none()
        });
    }

    /// Passes on connections that are needed elsewhere, oldest first.
    pub(super) fn answer(&self, pool: &EndpointPool) {
        loop {
            let first = self.waiting.borrow_mut().pop_front();
            let Some(idle) = first else {
                return;
            };
            let Some(kept) = self.offer(pool, idle) else {
                pool.counts.lower(Gauge::PoolIdle);
                continue;
            };
            self.waiting.borrow_mut().push_front(kept);
            return;
        }
    }

    /// Gives a connection to the first waiting request; returns it if none waits.
    fn offer(&self, pool: &EndpointPool, idle: Idle) -> Option<Idle> {
        let offer = {
            let mut line = self.line.borrow_mut();
            let connections = &pool.cluster.connections;
            connections.offer(pool.endpoint_id, &mut line)
        };
        match offer {
            Offer::Keep => return Some(idle),
            Offer::Close(closing) => {
                pool.counts.add(Counter::PoolConnectionLimit, 1);
                drop(idle.mark);
                idle.connection.mark_closing(closing);
                drop(idle.connection);
            }
            Offer::Give(ticket) => {
                self.aside.borrow_mut().push((ticket, idle.connection));
            }
        }
        None
    }
}

impl EndpointPool {
    fn end_of_use(&self, connection: &Connection) -> Option<Counter> {
        let terms = self.terms.get();
        terms.end_of_use(connection.carried(), connection.made())
    }

    /// Takes back a connection that can carry another request: for a waiting one, or for later.
    pub(super) fn park(&self, mut connection: Box<Connection>) {
        if let Some(why) = self.end_of_use(&connection) {
            self.counts.add(why, 1);
            return;
        }
        connection.rest();
        let since = clock::now();
        let idle = |mark| Idle {
            connection,
            since,
            mark,
        };
        if !self.terms.get().limited {
            self.http1.push(self, idle(None));
            return;
        }
        // announced first: requests queued from now on see it, and requests queued before are found here
        let (mark, crowded) = IdleMark::new(&self.cluster);
        let idle = idle(Some(mark));
        let kept = match crowded {
            true => self.http1.offer(self, idle),
            false => Some(idle),
        };
        if let Some(idle) = kept {
            self.http1.push(self, idle);
        }
    }
}
