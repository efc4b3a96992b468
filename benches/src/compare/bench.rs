//! Environment that all scenarios share: the upstream, the cores, and running proxies.

use std::cell::Cell;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use crate::compare::arguments::Arguments;
use crate::compare::client::free_port;
use crate::compare::configure::{self, Feature, Others, Plan, Proxy, Work};
use crate::compare::failure::{Failure, context};
use crate::compare::load::Material;
use crate::compare::probe::{Probe, Verdict};
use crate::compare::process::{Cancel, CommandLine, Launcher, Process, pin_self, raise_open_files};
use crate::compare::report::Report;
use crate::compare::tool::Tools;
use crate::compare::upstream::Ports;
use crate::compare::{accounting, say};

/// Maximum time from the start of a proxy to its first response.
const START_LIMIT: Duration = Duration::from_secs(60);

/// Number of equal memory readings in a row after which memory counts as settled.
const STEADY_LOOKS: u32 = 4;

/// Interval between two memory readings.
const LOOK_INTERVAL: Duration = Duration::from_millis(250);

/// Maximum number of memory readings; memory that has not settled by then is reported as it is.
const LOOKS_MAX: u32 = 60;

/// Environment of one run.
#[derive(Debug)]
pub struct Bench {
    /// Command line arguments.
    pub arguments: Arguments,
    /// Installed programs.
    pub tools: Tools,
    /// Launcher of all programs of the run.
    pub launcher: Launcher,
    /// Files that the load generators read.
    pub material: Material,
    proxy_core: usize,
    load_core: usize,
    upstream: Process,
    upstream_ports: Ports,
    started: Cell<u32>,
}

/// Scenario-specific part of a [`Plan`]; [`Bench::start`] fills in the rest.
#[derive(Clone, Debug)]
pub struct Shape {
    /// Path prefixes that go to the upstream.
    pub prefixes: Vec<String>,
    /// Prefixes per VirtualService.
    pub prefixes_per_object: usize,
    /// Protocol that the proxy forwards.
    pub work: Work,
    /// Whether downstream is HTTP/2.
    pub http2: bool,
    /// Whether downstream is TLS.
    pub tls: bool,
    /// Additional routes that no request matches.
    pub others: Others,
    /// Number of upstream endpoints.
    pub endpoints: u16,
    /// Feature of the route that every request matches.
    pub feature: Option<Feature>,
    /// Maximum number of downstream connections.
    pub connections_max: u32,
    /// Path that must return its full response before the proxy counts as started.
    pub probe: String,
}

impl Shape {
    /// Returns a shape with one catch-all route over HTTP/1.1.
    pub fn catch_all(connections_max: u32) -> Self {
        Self {
            prefixes: vec!["/".to_owned()],
            prefixes_per_object: 1,
            work: Work::Http,
            http2: false,
            tls: false,
            others: Others::None,
            endpoints: 1,
            feature: None,
            connections_max,
            probe: "/".to_owned(),
        }
    }
}

/// Running proxy that has answered its first request.
#[derive(Debug)]
pub struct Running {
    /// Proxy under comparison.
    pub proxy: Proxy,
    /// Configuration plan.
    pub plan: Plan,
    /// Directory of its files.
    pub directory: PathBuf,
    /// Process of the proxy.
    pub process: Process,
    /// Time from the start of the process to the first response.
    pub load_time: Duration,
}

impl Bench {
    /// Picks the cores and starts the upstream. Problems of the setup go into the notes of the report.
    ///
    /// # Errors
    /// When there are not two cores, or the upstream does not start.
    pub fn set_up(
        arguments: Arguments,
        tools: Tools,
        directory: &Path,
        cancel: Cancel,
        report: &mut Report,
    ) -> Result<Self, Failure> {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let proxy_core = arguments.proxy_core.unwrap_or(cores - 1);
        let load_core = arguments.load_core.unwrap_or(0);
        if proxy_core == load_core {
            return Err(Failure::new(
                "the proxies need a core of their own: two cores at least",
            ));
        }
        // Nothing runs beside the proxies: what this program starts inherits the other core.
        pin_self(load_core)?;
        if let Err(failure) = raise_open_files(arguments.open_files()) {
            say(&failure.to_string());
            report.notes.push(failure.to_string());
        }
        let launcher = Launcher::new(directory.to_owned(), cancel);
        let material = Material::make(directory)?;
        let addresses = arguments.upstream_addresses();
        let (upstream, upstream_ports) = start_upstream(&launcher, load_core, addresses)?;
        let started = Cell::new(0);
        Ok(Self {
            arguments,
            tools,
            launcher,
            material,
            proxy_core,
            load_core,
            upstream,
            upstream_ports,
            started,
        })
    }

    /// Returns the port of the upstream, for a row without a proxy.
    pub fn upstream_port(&self, work: Work) -> u16 {
        match work {
            Work::Http => self.upstream_ports.http,
            Work::Grpc => self.upstream_ports.grpc,
            Work::Tcp => self.upstream_ports.bulk,
        }
    }

    /// Returns the process ID of the upstream.
    pub fn upstream_pid(&self) -> u32 {
        self.upstream.pid()
    }

    /// Starts a proxy and waits until it answers. Returns `None` if it is not installed.
    ///
    /// # Errors
    /// When the proxy ends, or does not answer in time.
    pub fn start(&self, proxy: Proxy, shape: &Shape) -> Result<Option<Running>, Failure> {
        let Some(program) = self.tools.get(proxy.tool()) else {
            return Ok(None);
        };
        let plan = Plan {
            listen: free_port()?,
            admin: free_port()?,
            upstream: self.upstream_port(shape.work),
            collector: self.upstream_port(Work::Grpc),
            endpoints: shape.endpoints,
            prefixes: shape.prefixes.clone(),
            prefixes_per_object: shape.prefixes_per_object,
            work: shape.work,
            http2: shape.http2,
            tls: shape.tls.then(|| self.material.credentials.clone()),
            others: shape.others,
            feature: shape.feature,
            nginx_module: self.tools.nginx_module().map(Path::to_owned),
            connections_max: shape.connections_max,
        };
        let name = self.unique(proxy.tool().binary());
        let directory = self.launcher.directory().join(&name);
        for file in configure::files(proxy, program, &plan, &directory) {
            let path = directory.join(file.path);
            let parent = path.parent().unwrap_or(&directory);
            fs::create_dir_all(parent).map_err(context(parent.display()))?;
            fs::write(&path, file.text).map_err(context(path.display()))?;
        }
        let line = configure::command(proxy, program, &plan, &directory);
        let begin = Instant::now();
        let process = self.launcher.start(&name, self.proxy_core, &line)?;
        let mut running = Running {
            proxy,
            plan,
            directory,
            process,
            load_time: Duration::ZERO,
        };
        self.wait_until_up(&mut running, &shape.probe)?;
        running.load_time = begin.elapsed();
        Ok(Some(running))
    }

    /// Starts a program on the core of the proxies. `name` must be unique in the run.
    ///
    /// # Errors
    /// When it does not start.
    pub fn start_proxy(&self, name: &str, line: &CommandLine) -> Result<Process, Failure> {
        self.launcher.start(name, self.proxy_core, line)
    }

    /// Runs a program on the core of the upstream, and returns its output.
    ///
    /// # Errors
    /// When it does not start, or takes longer than `limit`.
    pub fn run_beside(
        &self,
        name: &str,
        line: &CommandLine,
        limit: Duration,
    ) -> Result<String, Failure> {
        self.launcher
            .run(&self.unique(name), self.load_core, line, limit)
    }

    /// Waits until resident memory no longer changes, and returns it in KiB.
    ///
    /// # Errors
    /// When the proxy ends, or the run was cancelled.
    pub fn settled_kib(&self, running: &mut Running) -> Result<u64, Failure> {
        let (mut last, mut steady) = (0, 0);
        for _ in 0..LOOKS_MAX {
            self.launcher.cancel().check()?;
            running.process.check_alive()?;
            let now = accounting::resident_kib(running.process.pid());
            steady = if now == last { steady + 1 } else { 0 };
            last = now;
            if steady == STEADY_LOOKS {
                break;
            }
            thread::sleep(LOOK_INTERVAL);
        }
        Ok(last)
    }

    fn wait_until_up(&self, running: &mut Running, path: &str) -> Result<(), Failure> {
        let probe = Probe::new(&running.plan, path)?;
        let what = format!("{} does not answer", running.proxy.name());
        let (interval, limit) = (Duration::from_millis(1), START_LIMIT);
        let mut last = String::new();
        let up = self.launcher.cancel().poll(interval, limit, &what, || {
            running.process.check_alive()?;
            match probe.ask()? {
                Verdict::Right => Ok(Some(())),
                Verdict::NotYet(reason) => {
                    last = reason;
                    Ok(None)
                }
                Verdict::Wrong(reason) => Err(Failure::new(reason)),
            }
        });
        up.map_err(|failure| match failure {
            Failure::Other(message) if !last.is_empty() => {
                Failure::Other(format!("{message}; last: {last}"))
            }
            failure => failure,
        })
    }

    /// Returns a log file name that is unique in this run.
    fn unique(&self, name: &str) -> String {
        let number = self.started.get() + 1;
        self.started.set(number);
        format!("{number:04}-{name}")
    }
}

/// Starts this program again as the upstream; the first line of its output holds the ports.
fn start_upstream(
    launcher: &Launcher,
    core: usize,
    addresses: u16,
) -> Result<(Process, Ports), Failure> {
    let own = std::env::current_exe().map_err(context("cannot find this program"))?;
    let line = CommandLine::new(&own, ["upstream", &format!("--addresses={addresses}")]);
    let mut process = launcher.start("upstream", core, &line)?;
    let (interval, limit) = (Duration::from_millis(1), START_LIMIT);
    let ports = launcher
        .cancel()
        .poll(interval, limit, "the upstream does not start", || {
            process.check_alive()?;
            Ok(Ports::parse(&process.output()))
        })?;
    Ok((process, ports))
}
