//! Configuration of nginx: a `location` per prefix, an upstream keep-alive pool, no buffering on disk; or a `stream`
//! server.

use std::ffi::OsString;
use std::path::Path;

use super::plan::{ConfigFile, Plan, STREAMS_MAX, Work};

const NAME: &str = "nginx.conf";

/// Minimum number of idle connections that nginx keeps to all endpoints together; the other proxies limit them per
/// endpoint.
const IDLE_MIN: u16 = 256;

/// Returns the configuration for this version of nginx.
pub(super) fn file(plan: &Plan, version: &str) -> ConfigFile {
    let text = format!(
        "daemon off;
worker_processes 1;
worker_rlimit_nofile {files};
pid nginx.pid;
error_log error.log;
{modules}events {{ worker_connections {connections}; }}
{servers}",
        files = plan.connections_max * 2 + 1024,
        connections = plan.connections_max + 1024,
        modules = match (plan.work, &plan.nginx_module) {
            (Work::Tcp, Some(path)) => format!("load_module {};\n", path.display()),
            _ => String::new(),
        },
        servers = match plan.work {
            Work::Tcp => stream(plan),
            Work::Http | Work::Grpc => http(plan, version),
        },
    );
    ConfigFile::new(NAME, text)
}

fn http(plan: &Plan, version: &str) -> String {
    let pass = match plan.work {
        Work::Grpc => "grpc_pass grpc",
        Work::Http | Work::Tcp => "proxy_pass http",
    };
    let mut locations = String::new();
    for prefix in &plan.prefixes {
        locations.push_str(&format!("    location {prefix} {{ {pass}://upstream; }}\n"));
    }
    if !plan.takes_everything() {
        locations.push_str("    location / { return 404; }\n");
    }
    let (listen_flag, http2) = match (plan.http2, has_http2_directive(version)) {
        (false, _) => ("", ""),
        (true, true) => ("", "    http2 on;\n"),
        (true, false) => (" http2", ""),
    };
    format!(
        "http {{
  access_log off;
  keepalive_timeout 600s;
  keepalive_requests 1000000000;
  http2_max_concurrent_streams {STREAMS_MAX};
  client_body_temp_path body;
  proxy_temp_path proxy;
  fastcgi_temp_path fastcgi;
  uwsgi_temp_path uwsgi;
  scgi_temp_path scgi;
  proxy_max_temp_file_size 0;
  proxy_http_version 1.1;
  proxy_set_header Connection \"\";
  upstream upstream {{
{servers}    keepalive {idle};
    keepalive_requests 1000000000;
  }}
  server {{
    listen 127.0.0.1:{listen}{ssl}{listen_flag};
{http2}{tls}{locations}  }}
}}
",
        servers = servers(plan),
        idle = IDLE_MIN.max(2 * plan.endpoints),
        listen = plan.listen,
        ssl = if plan.tls.is_some() { " ssl" } else { "" },
        tls = tls(plan),
    )
}

/// The default policy is round robin.
fn servers(plan: &Plan) -> String {
    let port = plan.upstream;
    plan.addresses()
        .map(|address| format!("    server {address}:{port};\n"))
        .collect()
}

/// Tickets are on by default.
fn tls(plan: &Plan) -> String {
    let Some(tls) = &plan.tls else {
        return String::new();
    };
    format!(
        "    ssl_certificate {};\n    ssl_certificate_key {};\n    ssl_protocols TLSv1.3;\n",
        tls.certificate.display(),
        tls.key.display()
    )
}

/// Returns the `stream` server. A half-closed connection continues in the other direction, as in the other proxies.
fn stream(plan: &Plan) -> String {
    format!(
        "stream {{
  server {{
    listen 127.0.0.1:{};
    proxy_pass 127.0.0.1:{};
    proxy_half_close on;
  }}
}}
",
        plan.listen, plan.upstream
    )
}

/// Returns the arguments of nginx; `-e` keeps its startup messages out of the system's log directory.
pub(super) fn arguments(directory: &Path) -> Vec<OsString> {
    vec![
        "-p".into(),
        directory.into(),
        "-e".into(),
        "error.log".into(),
        "-c".into(),
        NAME.into(),
    ]
}

/// Returns the HTTP/2 setting: a directive since nginx 1.25.1, before that a flag of `listen`.
fn has_http2_directive(version: &str) -> bool {
    let mut numbers = version
        .split('.')
        .map(|number| number.parse::<u32>().unwrap_or(0));
    let version = [0; 3].map(|missing: u32| numbers.next().unwrap_or(missing));
    version >= [1, 25, 1]
}

#[cfg(test)]
mod tests {
    use super::has_http2_directive;

    #[test]
    fn http2_became_a_directive_in_1_25_1() {
        assert!(!has_http2_directive("1.22.1"));
        assert!(!has_http2_directive("1.25.0"));
        assert!(has_http2_directive("1.25.1"));
        assert!(has_http2_directive("1.27.0"));
        assert!(!has_http2_directive(""));
    }
}
