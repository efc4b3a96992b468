//! Runs the demo from start to end.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::sync::Arc;

use super::args::DemoArgs;
use super::clusters::Clusters;
use super::failure::Failure;
use super::screen::Screen;
use super::site::{CLUSTERS, DemoCluster, VERSIONS, gateway_identity, key};
use super::{calls, files, load};
use crate::app;
use crate::command::load::Counts;
use crate::listener::socket::refusal;

/// Runs the demo until a signal ends it.
pub(super) fn run(args: &DemoArgs) -> Result<(), Failure> {
    let (edge, admin, sites) = addresses(args.listen, args.serve.admin)?;
    let dir = files::directory(args.keep_files.as_deref())?;
    files::write(&dir, edge, &sites)?;
    let usage = |text: String| Failure {
        text,
        is_usage: true,
    };
    let mut settings = args
        .serve
        .settings(vec![dir.join("edge")], gateway_identity(key("edge")))
        .map_err(usage)?;
    settings.admin = admin;
    if args.requests_per_second > 0 && args.serve.access_log_path.is_none() {
        // its lines would interleave with the table
        settings.access_log = None;
    }
    let screen = Screen::new();
    let logging = screen
        .install_log(&settings.log_level)
        .map_err(|error| usage(format!("--log-level: {error}")))?;
    let listener = TcpListener::bind(args.control)
        .map_err(|error| bind_error("control API", args.control, &error))?;
    let calls = listener.local_addr().unwrap_or(args.control);
    let clusters = Arc::new(Clusters::start(sites, &settings, &dir, &logging)?);
    settings.exports = settings.exports.named("edge");
    let counts = Counts::default();
    calls::spawn(listener, Arc::clone(&clusters), counts.clone())?;
    let introduction = introduction(&dir, edge, calls, admin, args);
    let requests_per_second = args.requests_per_second;
    // the introduction mentions Ctrl-C, which may be pressed at once
    let started = move || {
        screen.say(introduction.as_bytes());
        if requests_per_second > 0
            && let Err(error) = load::spawn(edge, requests_per_second, counts, screen)
        {
            tracing::error!(%error, "the demo sends no requests");
        }
    };
    let ended = app::run_beside(settings, logging, Arc::default(), started);
    clusters.stop_all();
    ended.map_err(|error| error.to_string().into())
}

/// Error text for an address that cannot be bound, with the flag that chooses another one.
fn bind_error(what: &str, at: SocketAddr, error: &io::Error) -> String {
    let why = format!(
        "the demo's {what} cannot listen on {at}: {}",
        refusal(at, error)
    );
    if error.kind() != io::ErrorKind::AddrInUse {
        return why;
    }
    format!(
        "{why}\nAnother demo may be running there. This one takes free ports with:\n  {} demo --listen 127.0.0.1:0 \
         --control 127.0.0.1:0 --admin 127.0.0.1:0",
        program()
    )
}

/// Chooses the addresses of the edge, its admin server and the clusters: fixed ports, or free ones if the edge has port
/// 0.
fn addresses(
    edge: SocketAddr,
    admin: SocketAddr,
) -> Result<(SocketAddr, SocketAddr, Vec<DemoCluster>), String> {
    let ip: IpAddr = match edge.ip() {
        // several demos use different loopback addresses
        IpAddr::V4(ip) if ip.is_loopback() => ip.into(),
        _ => Ipv4Addr::LOCALHOST.into(),
    };
    let free = edge.port() == 0;
    // all stay bound until all are known, so that no two are the same
    let listener =
        TcpListener::bind(admin).map_err(|error| bind_error("admin server", admin, &error))?;
    let admin = listener.local_addr().unwrap_or(admin);
    let mut held = vec![listener];
    let mut take = |what: &str, at: SocketAddr| -> Result<SocketAddr, String> {
        let at = SocketAddr::new(at.ip(), if free { 0 } else { at.port() });
        let failed = |error| bind_error(what, at, &error);
        let listener = TcpListener::bind(at).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        held.push(listener);
        Ok(address)
    };
    let edge = take("gateway", edge)?;
    let mut sites = Vec::new();
    for (number, name) in (1..).zip(CLUSTERS) {
        let base = 9000 + 100 * number;
        let gateway = take(&format!("cluster {name}"), (ip, base).into())?;
        let mut backends = Vec::new();
        for (offset, version) in (1..).zip(VERSIONS) {
            let what = format!("backend {name} {version}");
            backends.push((version, take(&what, (ip, base + offset).into())?));
        }
        sites.push(DemoCluster {
            name,
            gateway,
            backends,
        });
    }
    Ok((edge, admin, sites))
}

fn introduction(
    dir: &Path,
    edge: SocketAddr,
    calls: SocketAddr,
    admin: SocketAddr,
    args: &DemoArgs,
) -> String {
    let policy = dir.join(files::POLICY);
    let sends = match args.requests_per_second {
        0 => String::new(),
        rate => format!(
            "It sends {rate} requests per second (--requests-per-second) and shows which cluster and version answers them.\n"
        ),
    };
    format!(
        "\
Strait demo: a gateway at the edge on http://{edge} and the clusters c1, c2 and c3 behind it, each with a gateway of
its own and two versions of one service. {sends}
Try, in another terminal:
  curl http://{edge}/
      an answer of your own
  curl -X POST http://{calls}/demo/clusters/c2/stop
      c2 is gone: the others share its part, and no request fails
  curl -X POST http://{calls}/demo/clusters/c2/start
      c2 is back, and has its part again
  curl http://{admin}/stats/prometheus | grep strait_cluster
      shares, endpoints and shifts as metrics

Change the weights, or lbType, in {policy}:
the next request follows, and none is dropped. A mistake in the file is reported here and changes nothing.{kept}

Why does a request go where it goes?
  {strait} explain --config {edge_dir} --cluster edge --labels istio=ingressgateway GET http://{edge}/

Ctrl-C ends the demo.

",
        policy = policy.display(),
        kept = match args.keep_files {
            Some(_) => "",
            None => "\nThe files are removed when the demo ends; --keep-files DIR keeps them.",
        },
        edge_dir = dir.join("edge").display(),
        strait = program(),
    )
}

/// Returns the name of this program for commands to copy: its name if the shell finds it, else its path.
fn program() -> String {
    let called = std::env::args().next().unwrap_or_default();
    if !called.contains('/') {
        return "strait".to_owned();
    }
    let path = Path::new(&called);
    let here = std::env::current_dir().unwrap_or_default();
    let path = path.strip_prefix(here).unwrap_or(path);
    path.display().to_string()
}
