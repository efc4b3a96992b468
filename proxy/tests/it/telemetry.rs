//! Telemetry resources: what is logged, where, and in which format.

mod envoy;

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::eventually;
use crate::support::mesh::everything_to;
use crate::support::origin::{Back, Origin, full};
use crate::support::proxy::{Proxy, Start};
use crate::support::raw::Raw;

/// A gateway to an origin, whose access log resources decide.
struct Edge {
    proxy: Proxy,
    origin: Origin,
    files: tempfile::TempDir,
}

impl Edge {
    /// Starts a proxy; `FILES` in the mesh configuration and the Telemetries is the directory of log files.
    fn start(config: &str, telemetries: &[&str]) -> Self {
        Self::start_with(Start::new().without_log_flags(), config, telemetries)
    }

    fn start_with(start: Start, config: &str, telemetries: &[&str]) -> Self {
        let files = tempfile::tempdir().unwrap();
        let origin = Origin::start(Back::H1, |request| async move {
            if request.uri().path() == "/hold" {
                std::future::pending::<()>().await;
            }
            let status = request.uri().path().trim_matches('/').parse();
            let status = status
                .ok()
                .filter(|status| *status >= 200_u16)
                .unwrap_or(200);
            hyper::Response::builder()
                .status(status)
                .header("x-answer", "42")
                .body(full("hello"))
                .unwrap()
        });
        let path = files.path().join("mesh-config.yaml");
        fs::write(&path, placed(config, files.path())).unwrap();
        let mesh = everything_to(start.edge(), &origin);
        let proxy = start
            .file("mesh.yaml", mesh)
            .file(
                "telemetry.yaml",
                placed(&telemetries.join("\n---\n"), files.path()),
            )
            .args(["--mesh-config", path.to_str().unwrap()])
            .start();
        Self {
            proxy,
            origin,
            files,
        }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.files.path().join(name)
    }

    fn get(&self, path: &str, headers: &str) {
        let request = format!("GET {path} HTTP/1.1\r\nHost: a.test\r\n{headers}\r\n");
        Raw::connect(self.proxy.edge).send(request).reply();
    }

    /// Waits until a file has this many lines.
    #[track_caller]
    fn lines(&self, name: &str, count: usize) -> Vec<String> {
        let file = self.file(name);
        eventually("the lines are there", || lines(&file).len() >= count);
        let lines = lines(&file);
        assert_eq!(lines.len(), count, "{lines:?}");
        lines
    }

    /// Puts other Telemetries into effect.
    fn change(&self, telemetries: &[&str]) {
        let generation = || self.proxy.metric("strait_config_generation", &[]);
        let before = generation();
        let text = placed(&telemetries.join("\n---\n"), self.files.path());
        self.proxy.write("telemetry.yaml", text);
        eventually("the change is in effect", || generation() > before);
    }

    /// Puts another mesh configuration into effect.
    fn configure(&self, config: &str) {
        let generation = || self.proxy.metric("strait_config_generation", &[]);
        let before = generation();
        let text = placed(config, self.files.path());
        fs::write(self.file("mesh-config.yaml"), text).unwrap();
        eventually("the change is in effect", || generation() > before);
    }
}

fn placed(text: &str, files: &Path) -> String {
    text.replace("FILES", files.to_str().unwrap())
}

fn lines(file: &Path) -> Vec<String> {
    let text = fs::read_to_string(file).unwrap_or_default();
    let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
    whole.lines().map(str::to_owned).collect()
}

fn telemetry(name: &str, namespace: &str, spec: &str) -> String {
    format!(
        "apiVersion: telemetry.istio.io/v1\nkind: Telemetry\nmetadata: {{name: {name}, namespace: {namespace}}}\n\
         spec: {spec}\n"
    )
}

const PROVIDERS: &str = "extensionProviders:
- name: text
  envoyFileAccessLog:
    path: FILES/text.log
    logFormat: {text: '%REQ(:METHOD)% %REQ(:PATH)% %RESPONSE_CODE% %REQ(X-TEAM)% %RESP(X-ANSWER)% %BYTES_SENT% %UPSTREAM_HOST%'}
- name: json
  envoyFileAccessLog:
    path: FILES/json.log
    omitEmptyValues: true
    logFormat: {labels: {path: '%REQ(:PATH)%', code: '%RESPONSE_CODE%', team: '%REQ(X-TEAM)%', peer: {app: '%FILTER_STATE(upstream_peer:FIELD:service)%'}}}
";

#[test]
fn metrics_follow_a_telemetry() {
    let spec = "{metrics: [{providers: [{name: prometheus}], overrides: [\
                {match: {metric: REQUEST_COUNT}, tagOverrides: {response_code: {operation: REMOVE}, team: {value: \"'shop'\"}}}, \
                {match: {metric: REQUEST_SIZE}, disabled: true}]}]}";
    let edge = Edge::start("{}\n", &[&telemetry("metrics", "istio-system", spec)]);
    for path in ["/200", "/404"] {
        edge.get(path, "");
    }
    let series = |name: &str| -> Vec<String> {
        let page = edge.proxy.page("/stats/prometheus");
        let of_name = |line: &&str| line.starts_with(name);
        page.lines().filter(of_name).map(str::to_owned).collect()
    };
    // one series for both statuses
    eventually("both are counted", || {
        let counted = series("istio_requests_total{");
        let is_one = |line: &String| {
            line.contains("team=\"shop\"")
                && !line.contains("response_code=")
                && line.ends_with(" 2")
        };
        counted.len() == 1 && counted.iter().all(is_one)
    });
    let of_404 = |line: &String| line.contains("response_code=\"404\"");
    let durations = series("istio_request_duration_milliseconds_count{");
    assert!(durations.iter().any(of_404), "{durations:?}");
    assert!(series("istio_request_bytes").is_empty());
    let warned = "Telemetry/istio-system/traces has settings of traces";
    edge.change(&[&telemetry(
        "traces",
        "istio-system",
        "{tracing: [{randomSamplingPercentage: 100}]}",
    )]);
    edge.proxy.has_logged(warned);
    assert_eq!(
        edge.proxy
            .metric("istio_requests_total", &[("response_code", "404")]),
        1.0
    );
}

#[test]
fn lines_follow_a_telemetry_with_its_format_and_filter() {
    let spec = "{accessLogging: [{providers: [{name: text}], filter: {expression: response.code >= 400}}, \
                {providers: [{name: json}]}]}";
    let edge = Edge::start(PROVIDERS, &[&telemetry("log", "istio-system", spec)]);
    for path in ["/200", "/404", "/503"] {
        edge.get(path, "X-Team: shop\r\n");
    }
    edge.get("/200?q", "");
    let expected = |code: u16| {
        let endpoint = edge.origin.address;
        format!("GET /{code} {code} shop 42 5 {endpoint}")
    };
    // workers have lanes of their own
    let mut failures = edge.lines("text.log", 2);
    failures.sort_unstable();
    assert_eq!(failures, [expected(404), expected(503)]);
    let mut lines = edge.lines("json.log", 4);
    lines.sort_unstable();
    let json: Vec<serde_json::Value> = lines
        .iter()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let of = |path: &str| json.iter().find(|line| line["path"] == path).unwrap();
    assert_eq!(of("/404")["code"], 404);
    assert_eq!(of("/404")["team"], "shop");
    assert_eq!(of("/200?q")["team"], serde_json::Value::Null, "left out");
    let written = |sink: &str| {
        let sink = edge.file(sink);
        let labels = [("sink", sink.to_str().unwrap())];
        edge.proxy.metric("strait_access_log_lines_total", &labels)
    };
    assert_eq!((written("text.log"), written("json.log")), (2.0, 4.0));
}

#[test]
fn changed_telemetry_is_followed_while_the_proxy_serves() {
    let all = telemetry(
        "log",
        "default",
        "{accessLogging: [{providers: [{name: text}]}]}",
    );
    let off = "{accessLogging: [{providers: [{name: text}], disabled: true}]}";
    let off = telemetry("log", "default", off);
    let other = telemetry(
        "log",
        "default",
        "{accessLogging: [{providers: [{name: json}]}]}",
    );
    let edge = Edge::start(PROVIDERS, &[&all]);
    edge.get("/200?1", "");
    edge.lines("text.log", 1);
    edge.change(&[&off]);
    edge.get("/200?2", "");
    edge.change(&[&other]);
    edge.get("/200?3", "");
    edge.lines("json.log", 1);
    edge.change(&[&all]);
    edge.get("/200?4", "");
    let lines = edge.lines("text.log", 2);
    let is_last = |line: &String| line.starts_with("GET /200?4 ");
    assert!(lines.iter().any(is_last), "{lines:?}");
    edge.lines("json.log", 1);
}

#[test]
fn log_of_the_mesh_counts_where_no_provider_results() {
    // an entry about another side, and a provider that does not exist
    let server = "{accessLogging: [{match: {mode: SERVER}, providers: [{name: text}]}]}";
    let unknown = "{accessLogging: [{providers: [{name: unknown}]}]}";
    let config = |format: &str| {
        format!("accessLogFile: FILES/mesh.log\naccessLogFormat: '{format}'\n{PROVIDERS}")
    };
    let edge = Edge::start(
        &config("one %REQ(:PATH)%"),
        &[&telemetry("a", "default", server)],
    );
    edge.get("/1", "");
    assert_eq!(edge.lines("mesh.log", 1), ["one /1"]);
    edge.change(&[&telemetry("a", "default", unknown)]);
    edge.get("/2", "");
    assert_eq!(edge.lines("mesh.log", 2)[1], "one /2");
    edge.configure(&config("two %REQ(:PATH)%"));
    edge.get("/3", "");
    assert_eq!(edge.lines("mesh.log", 3)[2], "two /3");
    edge.configure("{}");
    edge.get("/4", "");
    edge.configure(&config("three %REQ(:PATH)%"));
    edge.get("/5", "");
    assert_eq!(
        edge.lines("mesh.log", 4)[3],
        "three /5",
        "an empty accessLogFile is off"
    );
}

#[test]
fn flags_win_over_the_log_of_the_mesh_but_not_over_providers() {
    let start = Start::new().args([
        "--access-log",
        "flag %REQ(:PATH)% %CEL(response.code < 300)% %REQ(x-team)%",
    ]);
    let edge = Edge::start_with(
        start,
        &format!("accessLogFile: FILES/mesh.log\n{PROVIDERS}"),
        &[],
    );
    let log = edge.proxy.mesh().parent().unwrap().join("access.log");
    edge.get("/1", "x-team: a\r\n");
    eventually("a line", || lines(&log).len() == 1);
    assert_eq!(lines(&log), ["flag /1 true a"]);
    let spec = "{accessLogging: [{providers: [{name: text}]}]}";
    edge.change(&[&telemetry("log", "default", spec)]);
    edge.get("/2", "");
    edge.lines("text.log", 1);
    assert_eq!(lines(&log).len(), 1);
    assert!(!edge.file("mesh.log").exists());
}

#[test]
fn file_that_cannot_be_opened_drops_lines_until_it_can() {
    let config = "extensionProviders: [{name: lost, envoyFileAccessLog: {path: FILES/later/a.log, logFormat: {text: '%PROTOCOL%'}}}]";
    let spec = "{accessLogging: [{providers: [{name: lost}]}]}";
    let edge = Edge::start(config, &[&telemetry("log", "default", spec)]);
    edge.get("/", "");
    edge.proxy.has_logged("the access log cannot be opened");
    let file = edge.file("later/a.log");
    let labels = [("sink", file.to_str().unwrap())];
    eventually("the line is counted as dropped", || {
        edge.proxy
            .metric("strait_access_log_lines_dropped_total", &labels)
            == 1.0
    });
    fs::create_dir(edge.file("later")).unwrap();
    edge.proxy.signal("USR1");
    eventually("the file is opened", || file.exists());
    edge.get("/", "");
    edge.lines("later/a.log", 1);
}

/// Files that are renamed while requests are logged, by a program that sends SIGHUP and by one that does not.
#[test]
fn rotation_loses_and_doubles_no_line_of_any_file() {
    const NAMES: [&str; 3] = ["one", "two", "three"];
    let each = |text: fn(&str) -> String| NAMES.map(text).join(", ");
    let config = each(|name| {
        let format = format!("{{text: '{name} %REQ(:PATH)%'}}");
        format!(
            "{{name: {name}, envoyFileAccessLog: {{path: FILES/{name}.log, logFormat: {format}}}}}"
        )
    });
    let names = each(|name| format!("{{name: {name}}}"));
    let spec = format!("{{accessLogging: [{{providers: [{names}]}}]}}");
    let config = format!("extensionProviders: [{config}]\n");
    let edge = Edge::start(&config, &[&telemetry("log", "default", &spec)]);
    let rename = |to: &str| {
        for name in NAMES {
            let to = edge.file(&format!("{name}.{to}"));
            fs::rename(edge.file(&format!("{name}.log")), to).unwrap();
        }
    };
    for number in 0..300 {
        match number {
            // with lines that have not been written yet
            100 => {
                rename("first");
                edge.proxy.signal("HUP");
            }
            150 => eventually("the files are opened again", || {
                let mut names = NAMES.iter();
                names.all(|name| edge.file(&format!("{name}.log")).exists())
            }),
            200 => rename("second"),
            _ => {}
        }
        edge.get(&format!("/{number}"), "");
    }
    for name in NAMES {
        let mut expected: Vec<String> =
            (0..300).map(|number| format!("{name} /{number}")).collect();
        expected.sort();
        eventually("all lines are written once", || {
            let files = ["first", "second", "log"];
            let files = files.map(|end| edge.file(&format!("{name}.{end}")));
            let mut written: Vec<String> = files.iter().flat_map(|file| lines(file)).collect();
            written.sort();
            written == expected
        });
    }
}
