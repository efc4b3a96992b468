//! Configuration of HAProxy: one frontend, one backend; many prefixes are looked up in a map, as HAProxy recommends.

use std::ffi::OsString;
use std::path::Path;

use super::plan::{ConfigFile, Plan, STREAMS_MAX, Work};

const NAME: &str = "haproxy.cfg";
const MAP: &str = "routes.map";

/// Returns the configuration, and the map of prefixes unless there is only a catch-all route.
///
/// HAProxy limits idle upstream connections by its limit of open files, so that limit allows for most of them. It
/// starts even if the limit is less than two files per connection, since most connections are idle then.
///
/// A path without a prefix in the map has no backend and gets 503, after the one lookup that every request needs.
pub(super) fn files(plan: &Plan, directory: &Path) -> Vec<ConfigFile> {
    let routing = if plan.takes_everything() {
        "default_backend upstream".to_owned()
    } else {
        format!(
            "use_backend %[path,map_beg({})]",
            directory.join(MAP).display()
        )
    };
    let text = format!(
        "global
  nbthread 1
  maxconn {connections}
  no strict-limits
  tune.pool-low-fd-ratio 90
  tune.pool-high-fd-ratio 95
  tune.h2.max-concurrent-streams {STREAMS_MAX}
defaults
  mode {mode}
  timeout connect 10s
  timeout client 600s
  timeout server 600s
{http}frontend main
  bind 127.0.0.1:{listen}{bind}
  {routing}
backend upstream
  balance roundrobin
{servers}",
        connections = plan.connections_max + 1024,
        listen = plan.listen,
        bind = bind_options(plan),
        mode = match plan.work {
            Work::Tcp => "tcp",
            Work::Http | Work::Grpc => "http",
        },
        http = match plan.work {
            Work::Tcp => "",
            Work::Http | Work::Grpc => "  timeout http-keep-alive 600s\n  http-reuse always\n",
        },
        servers = servers(plan),
    );
    let mut files = vec![ConfigFile::new(NAME, text)];
    if !plan.takes_everything() {
        let map = plan
            .prefixes
            .iter()
            .map(|prefix| format!("{prefix} upstream\n"))
            .collect();
        files.push(ConfigFile::new(MAP, map));
    }
    files
}

fn servers(plan: &Plan) -> String {
    let protocol = match plan.work {
        Work::Grpc => " proto h2",
        Work::Http | Work::Tcp => "",
    };
    let port = plan.upstream;
    plan.addresses()
        .zip(1..)
        .map(|(address, number)| format!("  server s{number} {address}:{port}{protocol}\n"))
        .collect()
}

/// Tickets are on by default.
fn bind_options(plan: &Plan) -> String {
    match &plan.tls {
        None if plan.http2 => " proto h2".to_owned(),
        None => String::new(),
        Some(tls) => format!(
            " ssl crt {} alpn h2,http/1.1 ssl-min-ver TLSv1.3",
            tls.both.display()
        ),
    }
}

/// Returns the arguments of HAProxy; `-db` keeps it in the foreground.
pub(super) fn arguments(directory: &Path) -> Vec<OsString> {
    vec!["-db".into(), "-f".into(), directory.join(NAME).into()]
}
