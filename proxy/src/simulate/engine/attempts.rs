//! Attempts of a simulation: a connection, the endpoint's work, and what follows.

use std::sync::Arc;

use http::Version;

use super::Engine;
use crate::exchange::simulated::{After, Attempted};
use crate::runtime::clock::Turn;
use crate::simulate::figures::Limit;
use crate::simulate::pools::{Connection, Found, WokenRequest};
use crate::simulate::queue::Event;
use crate::upstream::Protocol;
use traffic::error::Kind;
use traffic::registry::ConnectionPermit;

impl Engine<'_> {
    /// Makes an attempt: finds a connection, and sends the request.
    pub(super) fn attempt(&mut self, at: u32) {
        let flow = self.requests.get(at);
        flow.attempts += 1;
        let picked = flow.request.picked().clone();
        let proxy = &mut self.proxies[usize::from(flow.proxy)];
        flow.endpoint = picked.endpoint().state.id;
        flow.backend = proxy.backend(flow.endpoint);
        let backend = &self.world.backends[flow.backend as usize];
        let (epoch, is_stopped) = (backend.epoch, backend.is_stopped);
        let cluster = picked.cluster();
        if picked.protocol(Version::HTTP_11, false) == Protocol::Http2 {
            // streams share a connection
            match (is_stopped, cluster.pool.limits.admit(&cluster.state)) {
                (true, _) => self.finish(at, Err(Kind::ConnectFailed)),
                (_, Err(_)) => self.refuse(at, Limit::Requests),
                (_, Ok(permit)) => {
                    flow.permit = permit;
                    self.serve(at);
                }
            }
            return;
        }
        let worker = &mut proxy.workers[usize::from(flow.worker)];
        let found = worker
            .pool(flow.endpoint)
            .find(cluster, flow.endpoint, epoch);
        self.go_on(at, found);
    }

    /// Continues an attempt with what was found.
    fn go_on(&mut self, at: u32, found: Found) {
        match found {
            Found::Idle(connection) => self.admit(at, connection),
            Found::Open(permit) => self.open(at, permit),
            Found::Refused(limit) => self.refuse(at, limit),
            Found::Waits(waiting) => {
                let serial = self.requests.serial(at);
                let flow = self.requests.get(at);
                flow.waiting = Some(waiting);
                if let Some(end) = flow.ends {
                    let timeout = Event::Timeout {
                        request: at,
                        serial,
                    };
                    self.queue.push(end, timeout);
                }
                let proxy = &mut self.proxies[usize::from(flow.proxy)];
                proxy.answer(flow.request.picked().cluster());
                self.poll(at);
            }
        }
    }

    /// Looks whether a request that waits may go on.
    fn poll(&mut self, at: u32) {
        let request = (at, self.requests.serial(at));
        let flow = self.requests.get(at);
        let Some(waiting) = &flow.waiting else { return };
        let worker = &mut self.proxies[usize::from(flow.proxy)].workers[usize::from(flow.worker)];
        let wakes = Arc::new(WokenRequest {
            woken: Arc::clone(&self.woken),
            request,
        });
        let pool = worker.pool(flow.endpoint);
        if let Some(found) = pool.poll(waiting, &wakes) {
            pool.leave(waiting);
            flow.waiting = None;
            self.go_on(at, found);
        }
    }

    /// Continues the requests that were given a connection, or room for one.
    pub(super) fn wake(&mut self) {
        for (at, serial) in self.woken.take() {
            if self.requests.is_current(at, serial) {
                let _turn = Turn::at(self.instant());
                self.poll(at);
            }
        }
    }

    fn open(&mut self, at: u32, permit: ConnectionPermit) {
        let flow = self.requests.get(at);
        let backend = &self.world.backends[flow.backend as usize];
        if backend.is_stopped {
            drop(permit);
            return self.finish(at, Err(Kind::ConnectFailed));
        }
        self.admit(at, Connection::open(permit, backend.epoch));
    }

    /// Takes a permit of the request limit for a request that has a connection.
    fn admit(&mut self, at: u32, connection: Connection) {
        let flow = self.requests.get(at);
        let cluster = flow.request.picked().cluster();
        match cluster.pool.limits.admit(&cluster.state) {
            Ok(permit) => {
                flow.permit = permit;
                flow.connection = Some(connection);
                self.serve(at);
            }
            Err(_) => {
                let state = Arc::clone(&cluster.state);
                let worker =
                    &mut self.proxies[usize::from(flow.proxy)].workers[usize::from(flow.worker)];
                worker
                    .pool(flow.endpoint)
                    .park(connection, &state, flow.endpoint);
                self.refuse(at, Limit::Requests);
            }
        }
    }

    fn refuse(&mut self, at: u32, limit: Limit) {
        let begun = self.requests.get(at).begun;
        let position = Limit::ALL.iter().position(|one| *one == limit);
        self.figures.at(begun).refused[position.unwrap_or_default()] += 1;
        self.finish(at, Err(Kind::Overflow));
    }

    /// Hands a request to its endpoint.
    fn serve(&mut self, at: u32) {
        let serial = self.requests.serial(at);
        let flow = self.requests.get(at);
        flow.request.send();
        flow.is_sent = true;
        let end = flow.end_of_attempt(self.now);
        let backend = flow.backend;
        flow.attempt_ends = end;
        if self.world.has_room(backend) {
            return self.start(at);
        }
        self.keep_waiting(at, serial);
    }

    /// Begins the work of an endpoint for a request.
    fn start(&mut self, at: u32) {
        let (request, serial) = (at, self.requests.serial(at));
        let flow = self.requests.get(at);
        let backend = flow.backend;
        let done = self.now + self.world.service_time(backend, &mut self.rng);
        let one = &mut self.world.backends[backend as usize];
        one.busy += 1;
        match flow.attempt_ends {
            // the endpoint works on: it does not learn that the proxy waits no longer
            Some(end) if end < done => {
                let epoch = one.epoch;
                self.queue.push(done, Event::Freed { backend, epoch });
                self.queue.push(end, Event::Timeout { request, serial });
            }
            _ => self.queue.push(done, Event::Done { request, serial }),
        }
    }

    /// Ends the work of an endpoint for a request.
    pub(super) fn done(&mut self, at: u32) {
        let backend = self.requests.get(at).backend;
        let one = &self.world.backends[backend as usize];
        if one.hangs {
            let serial = self.requests.serial(at);
            self.free(backend);
            return self.keep_waiting(at, serial);
        }
        let status = one.answer(&mut self.rng);
        self.free(backend);
        self.finish(at, Ok(status));
    }

    /// Lets a request wait for its endpoint.
    fn keep_waiting(&mut self, at: u32, serial: u32) {
        let flow = self.requests.get(at);
        let (backend, end) = (flow.backend, flow.attempt_ends);
        let waiting = &mut self.world.backends[backend as usize].waiting;
        waiting.push_back((at, serial));
        if let Some(end) = end {
            let request = at;
            self.queue.push(end, Event::Timeout { request, serial });
        }
    }

    /// Gives the room of a request that an endpoint has served to the next one.
    pub(super) fn free(&mut self, backend: u32) {
        self.world.backends[backend as usize].busy -= 1;
        self.serve_waiting(backend);
    }

    /// Begins the work for requests that wait for an endpoint, as long as it has room.
    pub(super) fn serve_waiting(&mut self, backend: u32) {
        while self.world.has_room(backend) {
            let next = self.world.backends[backend as usize].waiting.pop_front();
            let Some((at, serial)) = next else { return };
            if self.requests.is_current(at, serial) {
                self.start(at);
            }
        }
    }

    /// Ends an attempt.
    pub(super) fn finish(&mut self, at: u32, attempted: Attempted) {
        self.requests.end_attempt(at);
        let flow = self.requests.get(at);
        flow.is_sent = false;
        flow.permit = None;
        let proxy = usize::from(flow.proxy);
        let worker = &mut self.proxies[proxy].workers[usize::from(flow.worker)];
        let state = &flow.request.picked().cluster().state;
        if let Some(waiting) = flow.waiting.take() {
            let pool = worker.pool(flow.endpoint);
            if let Some(unused) = pool.leave(&waiting) {
                pool.park(unused, state, flow.endpoint);
            }
        }
        if let Some(connection) = flow.connection.take()
            && attempted.is_ok()
        {
            let pool = worker.pool(flow.endpoint);
            pool.park(connection, state, flow.endpoint);
        }
        let after = flow.request.ended(attempted, &worker.worker);
        if self.proxies[proxy].journal.has_rung() {
            self.sweep(proxy);
        }
        self.follow(at, after);
    }

    pub(super) fn follow(&mut self, at: u32, after: After) {
        match after {
            After::End(result) => self.record(at, result),
            After::Send => self.attempt(at),
            After::Wait(pause) => {
                let serial = self.requests.serial(at);
                let resume = Event::Resume {
                    request: at,
                    serial,
                };
                self.queue.push(self.now + pause.as_nanos() as u64, resume);
            }
        }
    }
}
