//! nginx.conf: a `location` per prefix, a keep-alive pool to the upstream, bodies never on disk.

use std::ffi::OsString;
use std::path::Path;

use super::{ConfigFile, Plan};

const NAME: &str = "nginx.conf";

/// The configuration for this version of nginx.
pub(super) fn file(plan: &Plan, version: &str) -> ConfigFile {
    let mut locations = String::new();
    for prefix in &plan.prefixes {
        locations.push_str(&format!(
            "    location {prefix} {{ proxy_pass http://upstream; }}\n"
        ));
    }
    if !plan.takes_everything() {
        locations.push_str("    location / { return 404; }\n");
    }
    let (listen_flag, http2) = match (plan.http2, has_http2_directive(version)) {
        (false, _) => ("", ""),
        (true, true) => ("", "    http2 on;\n"),
        (true, false) => (" http2", ""),
    };
    let text = format!(
        "daemon off;
worker_processes 1;
worker_rlimit_nofile {files};
pid nginx.pid;
error_log error.log;
events {{ worker_connections {connections}; }}
http {{
  access_log off;
  keepalive_timeout 600s;
  keepalive_requests 1000000000;
  client_body_temp_path body;
  proxy_temp_path proxy;
  fastcgi_temp_path fastcgi;
  uwsgi_temp_path uwsgi;
  scgi_temp_path scgi;
  proxy_max_temp_file_size 0;
  proxy_http_version 1.1;
  proxy_set_header Connection \"\";
  upstream upstream {{
    server 127.0.0.1:{upstream};
    keepalive 256;
    keepalive_requests 1000000000;
  }}
  server {{
    listen 127.0.0.1:{listen}{listen_flag};
{http2}{locations}  }}
}}
",
        files = plan.connections_max * 2 + 1024,
        connections = plan.connections_max + 1024,
        upstream = plan.upstream,
        listen = plan.listen,
    );
    ConfigFile::new(NAME, text)
}

/// `-e` keeps messages of the start away from the system's log directory.
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

/// Since 1.25.1 HTTP/2 is a directive; before, it was a flag of `listen`.
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
