//! Health checks of a simulation: what endpoints answer to them.

use std::sync::Arc;

use super::Engine;
use crate::simulate::queue::Event;
use traffic::cluster::Probe;

impl Engine<'_> {
    pub(super) fn begin_check(&mut self, proxy: u16, endpoint: u64, serial: u32) {
        let one = &self.proxies[usize::from(proxy)];
        let Some(check) = one.check(endpoint, serial).map(Arc::clone) else {
            return;
        };
        let backend = one.backend(endpoint);
        let state = &self.world.backends[backend as usize];
        let (is_stopped, hangs) = (state.is_stopped, state.hangs);
        let most = check.timeout.as_nanos() as u64;
        let takes = match (is_stopped, hangs, &check.probe) {
            (true, _, _) | (_, _, Probe::Tcp) => 0,
            (_, true, _) => u64::MAX,
            _ => self.world.service_time(backend, &mut self.rng),
        };
        let checked = Event::Checked {
            proxy,
            endpoint,
            serial,
            is_late: takes > most,
        };
        self.queue.push(self.now + takes.min(most), checked);
    }

    pub(super) fn end_check(&mut self, proxy: u16, endpoint: u64, serial: u32, is_late: bool) {
        let now = self.instant();
        let one = &mut self.proxies[usize::from(proxy)];
        let Some(check) = one.check(endpoint, serial).map(Arc::clone) else {
            return;
        };
        let backend = &self.world.backends[one.backend(endpoint) as usize];
        let result = if is_late {
            (false, format!("no answer within {:?}", check.timeout))
        } else if backend.is_stopped {
            (false, "connection refused".to_owned())
        } else {
            match &check.probe {
                Probe::Tcp => (true, "connected".to_owned()),
                Probe::Grpc { .. } => {
                    let status = backend.answer(&mut self.rng);
                    (status < 400, format!("status {status}"))
                }
                Probe::Http { statuses, .. } => {
                    let status = backend.answer(&mut self.rng);
                    let passes = statuses.iter().any(|range| range.contains(&status));
                    (passes, format!("status {status}"))
                }
            }
        };
        let pause = one.checked(endpoint, result, now, &mut self.rng);
        if one.journal.has_rung() {
            self.sweep(proxy.into());
        }
        let check = Event::Check {
            proxy,
            endpoint,
            serial,
        };
        self.queue.push(self.now.saturating_add(pause), check);
    }
}
