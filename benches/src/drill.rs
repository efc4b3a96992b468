//! Failure drill: a zone or a cluster fails under steady load and recovers, and the result of every request is
//! recorded.
//!
//! | module | contents |
//! |---|---|
//! | `zone` | endpoints that can refuse connections, hang, or answer 503 |
//! | `load` | load generator at a steady mean rate with random send times |
//! | `configure` | equivalent rules for Strait and Envoy, as text |
//! | `timeline` | summary: number of failed requests, time until traffic moved, time until it returned |
//!
//! Zones and load share one thread on one core; the proxy has the other core. Measured times differ from run to run;
//! the send times of requests follow from a seed.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Parser;
use tokio::time::{Instant, sleep, sleep_until};

use crate::compare::Failure;
use crate::compare::client::free_port;
use crate::compare::configure::Proxy;
use crate::compare::failure::context;
use crate::compare::process::{Cancel, CommandLine, Launcher, Process, pin_self, raise_open_files};
use crate::compare::tool::{Tools, Wanted, strait_binary};

mod configure;
mod load;
mod timeline;
mod zone;

use configure::{Policy, Ports, Retries};
use load::Answer;
use timeline::Summary;
use zone::{Mode, Zone};

/// Number of endpoints of a zone.
const ENDPOINTS: usize = 4;

/// Number of gateways of a cluster.
const GATEWAYS: usize = 2;

/// Requests per second.
const RATE: u32 = 1000;

/// Times from the start of the load until the zone fails, until it recovers, and until the load ends.
const TIMES: [Duration; 3] = [
    Duration::from_millis(500),
    Duration::from_millis(2500),
    Duration::from_millis(5000),
];

/// Maximum time from the start of a proxy to its first response.
const START_LIMIT: Duration = Duration::from_secs(20);

/// Makes a zone fail under load, and reports the failures that clients saw.
///
/// The proxy is in the first of two zones with four endpoints each, and prefers it. Under 1,000 requests per second the
/// first zone refuses connections, hangs, or answers 503 for two seconds, then recovers. With `--clusters` there are
/// three clusters with two gateways each, of which the first one refuses connections, answers 500, or becomes slow.
/// Build the proxy first: `cargo build --release -p proxy`.
#[derive(Clone, Debug, Parser)]
#[command(name = "drill", version)]
pub struct Arguments {
    /// Run Envoy with the same rules instead of Strait.
    #[arg(long)]
    pub envoy: bool,

    /// Three clusters that share requests by a GlobalTrafficPolicy, instead of two zones.
    #[arg(long, conflicts_with = "envoy")]
    pub clusters: bool,

    /// Seed of the random send times.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,

    /// The binary of Strait. Default: `strait` beside this program.
    #[arg(long, value_name = "PATH")]
    pub strait: Option<PathBuf>,
}

/// Variants with zones: failure mode of the first zone, and retry policy.
const VARIANTS: [(Mode, Retries); 8] = [
    (Mode::Refuse, Retries::Default),
    (Mode::Refuse, Retries::None),
    (Mode::Unavailable, Retries::Default),
    (Mode::Unavailable, Retries::None),
    (Mode::Unavailable, Retries::ShortAttempts),
    (Mode::Hang, Retries::Default),
    (Mode::Hang, Retries::None),
    (Mode::Hang, Retries::ShortAttempts),
];

/// Variants with clusters: failure mode of the first cluster, load distribution, and retry policy.
const CLUSTERS: [(Mode, Policy, Retries); 6] = [
    (Mode::Refuse, Policy::ActiveActive, Retries::Default),
    (Mode::Refuse, Policy::FailOver, Retries::Default),
    (Mode::Broken, Policy::ActiveActive, Retries::Default),
    (Mode::Broken, Policy::FailOver, Retries::Default),
    (Mode::Slow, Policy::ActiveActive, Retries::ShortAttempts),
    (Mode::Slow, Policy::FailOver, Retries::ShortAttempts),
];

/// Runs all variants one after another, and prints a table.
///
/// # Errors
/// When the proxy is missing or does not start, or a socket cannot be opened.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let strait = strait_binary(arguments.strait.as_deref())?;
    let proxy = if arguments.envoy {
        Proxy::Envoy
    } else {
        Proxy::Strait
    };
    let tools = Tools::find(&Wanted {
        strait,
        ..Wanted::default()
    });
    let program = tools
        .get(proxy.tool())
        .ok_or_else(|| Failure::new(format!("{} is not there", proxy.name())))?;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    pin_self(0)?;
    // Endpoints and load are both in this process.
    raise_open_files(2 * load::CONNECTIONS as u64 + 1024)?;
    let directory = tempfile::tempdir().map_err(context("no temporary directory"))?;
    let launcher = Launcher::new(directory.path().to_owned(), Cancel::default());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(context("cannot start a runtime"))?;
    let seed = arguments.seed;
    let mut table = format!("{} {}, seed {seed}\n\n", proxy.name(), program.version);
    let drill = |number| Drill {
        proxy,
        program: &program.path,
        launcher: &launcher,
        core: cores - 1,
        number,
    };
    if arguments.clusters {
        table += Summary::CLUSTERS_HEAD;
        for (number, (mode, policy, retries)) in CLUSTERS.into_iter().enumerate() {
            let drill = drill(number);
            let one = drill.clusters(mode, policy, retries, seed);
            let summary = tokio::task::LocalSet::new().block_on(&runtime, one)?;
            let how = format!("{} | {}", policy.name(), retries.name());
            table += &summary.row(mode.name(), &how);
        }
    } else {
        table += Summary::HEAD;
        for (number, (mode, retries)) in VARIANTS.into_iter().enumerate() {
            let drill = drill(number);
            let one = drill.zones(mode, retries, seed);
            let summary = tokio::task::LocalSet::new().block_on(&runtime, one)?;
            table += &summary.row(mode.name(), retries.name());
        }
    }
    write!(std::io::stdout(), "{table}").map_err(context("cannot print the table"))
}

/// Context of one variant for starting its proxy.
struct Drill<'a> {
    proxy: Proxy,
    program: &'a Path,
    launcher: &'a Launcher,
    core: usize,
    number: usize,
}

impl Drill<'_> {
    async fn zones(&self, mode: Mode, retries: Retries, seed: u64) -> Result<Summary, Failure> {
        let write = |ports: &Ports| match self.proxy {
            Proxy::Envoy => configure::envoy(ports, retries),
            _ => configure::strait(ports, retries),
        };
        let answers = self
            .one(opened(&[2, 3], ENDPOINTS).await?, write, mode, seed)
            .await?;
        let [dies, recovers, _] = TIMES;
        Ok(timeline::summarize(&answers, dies, recovers))
    }

    async fn clusters(
        &self,
        mode: Mode,
        policy: Policy,
        retries: Retries,
        seed: u64,
    ) -> Result<Summary, Failure> {
        let write = |ports: &Ports| configure::clusters(ports, policy, retries);
        let answers = self
            .one(opened(&[2, 3, 4], GATEWAYS).await?, write, mode, seed)
            .await?;
        let [dies, recovers, _] = TIMES;
        Ok(timeline::summarize_clusters(&answers, dies, recovers))
    }

    /// Runs the load while the first zone is in a failure mode for a while.
    async fn one(
        &self,
        zones: Vec<Zone>,
        write: impl Fn(&Ports) -> String,
        mode: Mode,
        seed: u64,
    ) -> Result<Vec<Answer>, Failure> {
        let ports = Ports {
            listen: free_port()?,
            admin: free_port()?,
            zones: zones.iter().map(Zone::addresses).collect(),
        };
        let mut process = self.start(&ports, write(&ports))?;
        wait_until_up(&mut process, ports.listen).await?;
        let begin = Instant::now();
        let [dies, recovers, end] = TIMES;
        let events = async {
            sleep_until(begin + dies).await;
            zones[0].set(mode);
            sleep_until(begin + recovers).await;
            zones[0].set(Mode::Well);
        };
        let load = load::run(ports.listen, begin, RATE, end, seed);
        let (answers, ()) = tokio::join!(load, events);
        process.check_alive()?;
        answers
    }

    fn start(&self, ports: &Ports, text: String) -> Result<Process, Failure> {
        let name = format!("{}-{}", self.number, self.proxy.tool().binary());
        let file = self.launcher.directory().join(format!("{name}.yaml"));
        let arguments = match self.proxy {
            Proxy::Envoy => configure::envoy_arguments(&file),
            _ => configure::strait_arguments(&file, ports),
        };
        fs::write(&file, text).map_err(context(file.display()))?;
        let line = CommandLine::new(self.program, arguments);
        self.launcher.start(&name, self.core, &line)
    }
}

/// Opens a zone for each host.
async fn opened(hosts: &[u8], endpoints: usize) -> Result<Vec<Zone>, Failure> {
    let open = context("cannot open the endpoints");
    Zone::open(hosts, endpoints).await.map_err(open)
}

/// Waits until the first zone answers a request, then waits for the proxy to settle.
async fn wait_until_up(process: &mut Process, port: u16) -> Result<(), Failure> {
    let deadline = Instant::now() + START_LIMIT;
    loop {
        process.check_alive()?;
        if load::once(port).await?.zone == Some(0) {
            sleep(Duration::from_millis(200)).await;
            return Ok(());
        }
        if Instant::now() > deadline {
            return Err(Failure::new(format!("no answer: {}", process.output())));
        }
        sleep(Duration::from_millis(20)).await;
    }
}
