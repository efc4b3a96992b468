//! The order of events of a simulation: arrivals, attempts, timeouts, health checks, and the events of the scenario.

mod attempts;
mod checks;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use config_loader::{EventAction, Figure, Scenario, ScenarioTarget};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use tokio::time::Instant;

use super::figures::{Ended, Figures};
use super::inputs::{Inputs, Unknown, target_name};
use super::pools::Woken;
use super::proxy::{Ruling, SimulatedProxy};
use super::queue::{Event, Queue};
use super::report;
use super::report::{Report, Told};
use super::requests::{Flow, Requests};
use super::world::{World, is_cluster};
use crate::control::monitor::TICK;
use crate::exchange::simulated::{Attempted, SimulatedRequest};
use crate::runtime::clock::Turn;
use traffic::error::Kind;

/// A simulation.
pub(super) struct Engine<'a> {
    inputs: &'a Inputs<'a>,
    start: Instant,
    /// Time since the start, in nanoseconds.
    now: u64,
    queue: Queue,
    rng: SmallRng,
    world: World,
    proxies: Vec<SimulatedProxy>,
    requests: Requests,
    woken: Arc<Woken>,
    figures: Figures,
    told: Vec<Told>,
    /// Requests per nanosecond.
    rate: f64,
    is_idempotent: bool,
    /// Priorities in panic mode, by proxy and cluster.
    panics: BTreeSet<(u16, Arc<str>, String)>,
    ejected: u64,
}

/// Runs a scenario.
///
/// # Errors
///
/// Names that no endpoint has.
pub fn run(inputs: &Inputs<'_>) -> Result<Report, Vec<Unknown>> {
    let mut engine = Engine::new(inputs);
    engine.begin();
    engine.check_names()?;
    engine.play();
    Ok(report::of(
        inputs,
        &engine.figures,
        &engine.told,
        engine.notes(),
    ))
}

impl<'a> Engine<'a> {
    fn new(inputs: &'a Inputs<'a>) -> Self {
        let scenario = inputs.scenario;
        let load = &scenario.load;
        let mut rng = SmallRng::seed_from_u64(inputs.seed);
        let start = Instant::now();
        let proxies = (0..load.proxies).map(|number| {
            let _turn = Turn::at(start);
            SimulatedProxy::new(number, load.workers, inputs.identity, rng.random(), start)
        });
        let proxies = proxies.collect();
        let duration = load.duration.as_nanos() as u64;
        Self {
            inputs,
            start,
            now: 0,
            queue: Queue::default(),
            world: World::new(&scenario.endpoints),
            proxies,
            requests: Requests::default(),
            woken: Arc::default(),
            figures: Figures::new(duration, report::cell_width(duration)),
            told: Vec::new(),
            rate: load.rate / 1e9,
            is_idempotent: http::Method::from_bytes(load.method.as_bytes())
                .is_ok_and(|method| method.is_idempotent()),
            panics: BTreeSet::new(),
            ejected: 0,
            rng,
        }
    }

    fn scenario(&self) -> &'a Scenario {
        self.inputs.scenario
    }

    fn instant(&self) -> Instant {
        self.start + Duration::from_nanos(self.now)
    }

    fn begin(&mut self) {
        let _turn = Turn::at(self.start);
        self.configure(self.inputs.resources);
        self.queue.push(0, Event::Tick);
        for (number, event) in (0..).zip(&self.scenario().events) {
            let at = event.at.as_nanos() as u64;
            self.queue.push(at, Event::Scenario(number));
        }
    }

    /// Puts a configuration into effect at all proxies.
    fn configure(&mut self, resources: &Arc<config_loader::ResourceSet>) {
        let now = (self.now, self.instant());
        for proxy in &mut self.proxies {
            let parts = (&mut self.world, &mut self.queue);
            proxy.apply(resources, self.inputs.question, now, parts);
        }
        self.figures.clusters = report::names(&self.world.clusters);
    }

    /// Checks that each target of an event and each cluster of an expectation is there.
    fn check_names(&self) -> Result<(), Vec<Unknown>> {
        // a later configuration may have others
        let changes =
            |event: &config_loader::ScenarioEvent| matches!(event.action, EventAction::Config(_));
        if self.scenario().events.iter().any(changes) {
            return Ok(());
        }
        let events = self.scenario().events.iter().enumerate();
        let lost = events.filter(|(_, event)| {
            !self
                .world
                .backends
                .iter()
                .any(|one| one.is_of(&event.target))
                && event.target != ScenarioTarget::All
        });
        let mut unknown: Vec<Unknown> = lost
            .map(|(at, event)| Unknown {
                at: Ok(at),
                written: target_name(&event.target),
                known: self.world.names_like(&event.target),
            })
            .collect();
        for (at, expected) in self.scenario().expected.iter().enumerate() {
            if let Figure::Share(name) = &expected.figure
                && !self.world.clusters.iter().any(|key| is_cluster(name, key))
            {
                unknown.push(Unknown {
                    at: Err(at),
                    written: format!("cluster {name}"),
                    known: self.figures.clusters.clone(),
                });
            }
        }
        match unknown.is_empty() {
            true => Ok(()),
            false => Err(unknown),
        }
    }

    fn play(&mut self) {
        let end = self.scenario().load.duration.as_nanos() as u64;
        let mut arrival = self.next_arrival();
        loop {
            let next = self.queue.next_at().unwrap_or(u64::MAX);
            if arrival < end && arrival <= next {
                self.now = arrival;
                self.arrive();
                arrival = self.next_arrival();
            } else {
                if arrival >= end
                    && (self.requests.len() == 0 || self.queue.is_idle())
                    && next >= end
                {
                    break;
                }
                let Some((at, event)) = self.queue.pop() else {
                    break;
                };
                self.now = at;
                let rate = self.rate;
                self.happen(event);
                if rate != self.rate {
                    // arrivals have no memory
                    arrival = self.next_arrival();
                }
            }
            self.wake();
        }
        // what no timeout ends
        for at in self.requests.that(|_| true) {
            self.record(at, Err(Kind::RequestTimeout));
        }
    }

    /// Time of the next arrival; arrivals are random and independent of each other.
    fn next_arrival(&mut self) -> u64 {
        let pause = -(1.0 - self.rng.random::<f64>()).ln() / self.rate;
        self.now.saturating_add(pause as u64)
    }

    fn happen(&mut self, event: Event) {
        let _turn = Turn::at(self.instant());
        match event {
            Event::Check {
                proxy,
                endpoint,
                serial,
            } => self.begin_check(proxy, endpoint, serial),
            Event::Checked {
                proxy,
                endpoint,
                serial,
                is_late,
            } => self.end_check(proxy, endpoint, serial, is_late),
            Event::Done { request, serial } => {
                if self.requests.is_current(request, serial) {
                    self.done(request);
                }
            }
            Event::Freed { backend, epoch } => {
                if self.world.backends[backend as usize].epoch == epoch {
                    self.free(backend);
                }
            }
            Event::Resume { request, serial } => {
                if self.requests.is_current(request, serial) {
                    let flow = self.requests.get(request);
                    let (proxy, worker) = (usize::from(flow.proxy), usize::from(flow.worker));
                    let worker = &self.proxies[proxy].workers[worker].worker;
                    let after = flow.request.resume(worker);
                    self.follow(request, after);
                }
            }
            Event::Scenario(number) => self.play_event(number as usize),
            Event::Tick => {
                for proxy in 0..self.proxies.len() {
                    self.sweep(proxy);
                }
                let cell = self.figures.at(self.now);
                cell.ejected = cell.ejected.max(self.ejected);
                cell.panic |= !self.panics.is_empty();
                self.queue
                    .push(self.now + TICK.as_nanos() as u64, Event::Tick);
            }
            Event::Timeout { request, serial } => {
                if self.requests.is_current(request, serial) {
                    let ends = self.requests.get(request).ends;
                    let kind = match ends.is_some_and(|end| end <= self.now) {
                        true => Kind::RequestTimeout,
                        false => Kind::AttemptTimeout,
                    };
                    self.finish(request, Err(kind));
                }
            }
        }
    }

    fn play_event(&mut self, number: usize) {
        let event = &self.scenario().events[number];
        self.told.push(Told::of_scenario(self.now, event));
        match &event.action {
            EventAction::Rate(rate) => self.rate = rate / 1e9,
            EventAction::Config(_) => {
                let inputs = self.inputs;
                if let Some(Some(resources)) = inputs.later.get(number) {
                    self.configure(resources);
                }
            }
            _ => {
                let broken = self.world.apply(event);
                for backend in 0..self.world.backends.len() {
                    self.serve_waiting(backend as u32);
                }
                for proxy in &mut self.proxies {
                    proxy.close_connections(&broken);
                }
                for at in self
                    .requests
                    .that(|flow| flow.is_sent && broken.contains(&flow.backend))
                {
                    let flow = self.requests.get(at);
                    let reused = flow.connection.as_ref().is_none_or(|one| one.is_reused);
                    // an idempotent request is sent once more on a fresh connection, which is refused
                    let kind = match reused && self.is_idempotent {
                        true => Kind::ConnectFailed,
                        false => Kind::UpstreamClosed,
                    };
                    self.finish(at, Err(kind));
                }
            }
        }
    }

    /// Runs the monitor of a proxy, and tells what has happened.
    fn sweep(&mut self, proxy: usize) {
        let now = self.instant();
        let events = self.proxies[proxy].sweep(now);
        if events.is_empty() {
            return;
        }
        for event in events {
            let told = Told::of_journal(proxy as u16, event);
            let priority = (proxy as u16, Arc::clone(&told.cluster), told.panicking());
            match told.kind {
                "panic_mode_entered" => _ = self.panics.insert(priority),
                "panic_mode_left" => _ = self.panics.remove(&priority),
                _ => {}
            }
            self.told.push(told);
        }
        let ejected: BTreeSet<u32> = self
            .proxies
            .iter()
            .flat_map(SimulatedProxy::ejected)
            .collect();
        self.ejected = ejected.len() as u64;
        let cell = self.figures.at(self.now);
        cell.ejected = cell.ejected.max(self.ejected);
        cell.panic |= !self.panics.is_empty();
    }

    fn arrive(&mut self) {
        let _turn = Turn::at(self.instant());
        let proxy = self.rng.random_range(0..self.proxies.len());
        let worker = self.rng.random_range(0..self.proxies[proxy].workers.len());
        let one = &mut self.proxies[proxy];
        let begun = match &one.ruling {
            Ruling::Reply { is_failed, .. } => {
                let is_failed = *is_failed;
                return self.count(is_failed);
            }
            Ruling::Forward(found) => {
                let worker = &one.workers[worker].worker;
                SimulatedRequest::begin(found, self.is_idempotent, worker)
            }
        };
        if one.journal.has_rung() {
            self.sweep(proxy);
        }
        let Ok(mut request) = begun else {
            return self.count(true);
        };
        let times = request.start_times(&self.proxies[proxy].workers[worker].worker);
        let flow = Flow {
            request,
            proxy: proxy as u16,
            worker: worker as u16,
            begun: self.now,
            attempts: 0,
            times,
            ends: times.request.map(|time| self.now + time.as_nanos() as u64),
            attempt_ends: None,
            backend: 0,
            endpoint: 0,
            connection: None,
            permit: None,
            waiting: None,
            is_sent: false,
        };
        let at = self.requests.add(flow);
        self.attempt(at);
    }

    /// Counts a request that has ended.
    fn record(&mut self, at: u32, result: Attempted) {
        let Some(flow) = self.requests.remove(at) else {
            return;
        };
        let cell = self.figures.at(flow.begun);
        cell.refused[2] += u64::from(flow.request.retries_refused);
        let cluster = self.world.backends[flow.backend as usize].cluster;
        let ended = Ended {
            begun: flow.begun,
            nanos: self.now.saturating_sub(flow.begun),
            is_failed: result.is_err() || result.is_ok_and(|status| status >= 500),
            attempts: flow.attempts,
            cluster: Some(cluster),
        };
        self.figures.count(ended);
    }

    /// Counts a request that no endpoint got.
    fn count(&mut self, is_failed: bool) {
        self.figures.count(Ended {
            begun: self.now,
            nanos: 0,
            is_failed,
            attempts: 0,
            cluster: None,
        });
    }

    /// Remarks about what the figures leave out.
    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if let Some(proxy) = self.proxies.first() {
            let left_out = proxy.left_out();
            if !left_out.is_empty() {
                let left_out = left_out.join(", ");
                notes.push(format!("not simulated: {left_out}"));
            }
            if let Ruling::Reply { words, .. } = &proxy.ruling {
                notes.push(words.clone());
            }
        }
        notes
    }
}
