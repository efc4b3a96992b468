//! Running pair of sidecars, with the client's sidecar connected to the service's.

use std::fs;
use std::time::Duration;

use crate::compare::bench::Bench;
use crate::compare::client::{Connection, free_port};
use crate::compare::configure::{Proxy, Work};
use crate::compare::failure::{Failure, context};
use crate::compare::process::{CommandLine, Process};
use crate::compare::sidecars::{Identities, PairPlan, Side, arguments, files};

/// Maximum time from the start of a pair to its first response.
const START_LIMIT: Duration = Duration::from_secs(60);

/// A pair of sidecars.
pub(super) struct Pair {
    pub proxy: Proxy,
    pub tls: bool,
    plan: PairPlan,
    processes: Vec<Process>,
}

impl Pair {
    /// Starts both proxies, and waits until a request succeeds.
    pub(super) fn start(
        bench: &Bench,
        proxy: Proxy,
        tls: bool,
        identities: &Identities,
    ) -> Result<Self, Failure> {
        let Some(program) = bench.tools.get(proxy.tool()) else {
            return Err(Failure::new("not installed"));
        };
        let plan = PairPlan {
            outbound: free_port()?,
            inbound: free_port()?,
            upstream: bench.upstream_port(Work::Http),
            admins: [free_port()?, free_port()?],
            tls,
        };
        let name = format!("pair-{}-{tls}", proxy.tool().binary());
        let directory = bench.launcher.directory().join(&name);
        for file in files(proxy, &plan, identities) {
            let path = directory.join(file.path);
            let parent = path.parent().unwrap_or(&directory);
            fs::create_dir_all(parent).map_err(context(parent.display()))?;
            fs::write(&path, file.text).map_err(context(path.display()))?;
        }
        let start = |side: Side| {
            let arguments = arguments(proxy, &plan, side, identities, &directory);
            let line = CommandLine::new(program.path.as_path(), arguments);
            bench.start_proxy(&format!("{name}-{}", side.name()), &line)
        };
        let processes = Side::ALL.map(start).into_iter().collect::<Result<_, _>>()?;
        let mut pair = Self {
            proxy,
            tls,
            plan,
            processes,
        };
        pair.wait_until_up(bench)?;
        pair.check_security()?;
        Ok(pair)
    }

    /// Returns the port that the client connects to.
    pub(super) fn port(&self) -> u16 {
        self.plan.outbound
    }

    /// Returns both processes.
    pub(super) fn processes(&self) -> impl Iterator<Item = &Process> {
        self.processes.iter()
    }

    fn wait_until_up(&mut self, bench: &Bench) -> Result<(), Failure> {
        let interval = Duration::from_millis(5);
        let (port, processes) = (self.plan.outbound, &mut self.processes);
        bench
            .launcher
            .cancel()
            .poll(interval, START_LIMIT, "the pair does not answer", || {
                for process in processes.iter_mut() {
                    process.check_alive()?;
                }
                let status = Connection::open(port).and_then(|mut open| open.get("/"));
                Ok(matches!(status, Ok(200)).then_some(()))
            })
    }

    /// Checks that the service's sidecar accepts plain text only in the measurement without TLS.
    fn check_security(&self) -> Result<(), Failure> {
        let plain = Connection::open(self.plan.inbound).map_err(context("inbound"))?;
        let is_taken = { plain }.get("/").is_ok_and(|status| status == 200);
        if is_taken == self.tls {
            return Err(Failure::new(format!("plain text is taken: {is_taken}")));
        }
        Ok(())
    }
}
