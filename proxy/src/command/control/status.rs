//! `strait control status`: the proxies that follow a config server.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use config_loader::ApiServer;
use config_loader::proxy_state::{REPORT_GROUP, REPORT_PLURAL, REPORT_VERSION};
use config_loader::source::{address_of, connect, in_words};
use serde_json::{Value, json};

use super::super::exit::show;
use crate::command::args::OutputArg;

/// Timeout for the response of the server.
const ANSWER_MAX: Duration = Duration::from_secs(10);

/// Arguments of `strait control status`.
#[derive(Debug, Args)]
#[command(after_help = "\
Exit code: 0 if every proxy is up to date and rejects nothing, 1 otherwise.

Examples:
  strait control status --data /var/lib/strait
  strait control status --kubeconfig admin.kubeconfig -o json")]
pub struct StatusArgs {
    /// Kubeconfig of the config server [default: admin.kubeconfig in the data directory, else KUBECONFIG or ~/.kube/config]
    #[arg(long, value_name = "FILE", env = "STRAIT_CONTROL_KUBECONFIG")]
    pub kubeconfig: Option<PathBuf>,
    /// Data directory of the server
    #[arg(
        long,
        value_name = "DIR",
        env = "STRAIT_CONTROL_DATA",
        default_value = "strait-control"
    )]
    pub data: PathBuf,
    /// Form of the output
    #[arg(
        long,
        short,
        value_name = "FORM",
        default_value = "text",
        env = "STRAIT_OUTPUT"
    )]
    pub output: OutputArg,
}

/// Prints the proxies. Returns whether all of them are up to date and reject nothing.
///
/// # Errors
/// Fails if the server does not respond; the text is for users.
pub(crate) async fn run(args: &StatusArgs) -> Result<bool, String> {
    let own = args.data.join("admin.kubeconfig");
    let kubeconfig = args.kubeconfig.clone().or(own.exists().then_some(own));
    let list = ask(kubeconfig.as_deref(), ANSWER_MAX).await?;
    let proxies = list["items"].as_array().cloned().unwrap_or_default();
    let is_fine = proxies.iter().all(is_fine);
    match args.output {
        OutputArg::Text => show(text(&proxies).trim_end()),
        OutputArg::Json => {
            let proxies: Vec<Value> = proxies.iter().map(flat).collect();
            show(&format!(
                "{:#}",
                json!({"up_to_date": is_fine, "proxies": proxies})
            ));
        }
    }
    Ok(is_fine)
}

/// Requests the list of proxies; `answer_max` is the timeout.
async fn ask(kubeconfig: Option<&Path>, answer_max: Duration) -> Result<Value, String> {
    let server = ApiServer {
        context: String::new(),
        cluster: None,
    };
    let address = address_of(&server, kubeconfig).await;
    let address = address.map_err(|error| format!("cannot ask the config server: {error}"))?;
    let unreachable = |error: &dyn std::fmt::Display| {
        format!("cannot ask the config server at {address}: {error}")
    };
    let client = connect(&server, kubeconfig).await;
    let client = client.map_err(|error| unreachable(&error))?;
    let path = format!("/apis/{REPORT_GROUP}/{REPORT_VERSION}/{REPORT_PLURAL}");
    let request = http::Request::get(path).body(Vec::new());
    let request = request.map_err(|error| unreachable(&error))?;
    let answer = tokio::time::timeout(answer_max, client.request::<Value>(request)).await;
    let late = |_| {
        let why = format!(
            "it does not answer in time ({answer_max:?}); check that it runs, and that this is its address"
        );
        unreachable(&why)
    };
    answer
        .map_err(late)?
        .map_err(|error| unreachable(&in_words(&error)))
}

fn is_current(proxy: &Value) -> bool {
    proxy["status"]["upToDate"] == true
}

fn rejected(proxy: &Value) -> u64 {
    proxy["status"]["rejectedCount"].as_u64().unwrap_or(0)
}

fn is_fine(proxy: &Value) -> bool {
    is_current(proxy) && rejected(proxy) == 0
}

/// Returns a proxy as the JSON output shows it.
fn flat(proxy: &Value) -> Value {
    let (metadata, spec, status) = (&proxy["metadata"], &proxy["spec"], &proxy["status"]);
    let objects = status["rejected"].as_array().into_iter().flatten();
    let objects = objects.map(|one| {
        json!({
            "object": one["object"],
            "last_good_version_in_use": one["lastGoodVersionInUse"],
            "reasons": one["reasons"],
        })
    });
    json!({
        "namespace": metadata["namespace"],
        "name": metadata["name"],
        "cluster": spec["cluster"],
        "mode": spec["mode"],
        "version": spec["version"],
        "revision": status["revision"],
        "newest_revision": status["newestRevision"],
        "up_to_date": is_current(proxy),
        "generation": status["generation"],
        "last_change_seconds": status["lastChangeSeconds"],
        "last_seen": status["lastSeen"],
        "rejected_count": rejected(proxy),
        "rejected": objects.collect::<Vec<_>>(),
    })
}

/// Renders the output for people: a table, the rejected objects, and a summary.
fn text(proxies: &[Value]) -> String {
    if proxies.is_empty() {
        return "no proxy is connected".to_owned();
    }
    let heads = [
        "NAMESPACE",
        "NAME",
        "CLUSTER",
        "MODE",
        "VERSION",
        "REVISION",
        "NEWEST",
        "LAST CHANGE",
        "STATE",
    ];
    let mut rows = vec![heads.map(str::to_owned)];
    rows.extend(proxies.iter().map(row));
    let mut text = table(&rows);
    for proxy in proxies {
        rejections(&mut text, proxy);
    }
    let count = |is_it: fn(&Value) -> bool| proxies.iter().filter(|one| is_it(one)).count();
    let _ = writeln!(
        text,
        "{}: {} up to date, {} behind, {} with rejected resources",
        match proxies.len() {
            1 => "1 proxy".to_owned(),
            count => format!("{count} proxies"),
        },
        count(is_current),
        count(|one| !is_current(one)),
        count(|one| rejected(one) > 0)
    );
    text
}

/// Returns a table with columns as wide as they have to be.
pub(super) fn table<const COLUMNS: usize>(rows: &[[String; COLUMNS]]) -> String {
    let widths: [usize; COLUMNS] = std::array::from_fn(|column| {
        let cells = rows.iter().map(|row| row[column].len());
        cells.max().unwrap_or(0)
    });
    let mut text = String::new();
    for row in rows {
        let cells = row.iter().zip(&widths);
        let cells: Vec<String> = cells
            .map(|(cell, width)| format!("{cell:width$}"))
            .collect();
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{}", cells.join("  ").trim_end());
    }
    text
}

fn row(proxy: &Value) -> [String; 9] {
    let (metadata, spec, status) = (&proxy["metadata"], &proxy["spec"], &proxy["status"]);
    let state = match (is_current(proxy), rejected(proxy)) {
        (true, 0) => "up to date".to_owned(),
        (true, count) => format!("rejects {count}"),
        (false, 0) => "behind".to_owned(),
        (false, count) => format!("behind, rejects {count}"),
    };
    let cells = [
        &metadata["namespace"],
        &metadata["name"],
        &spec["cluster"],
        &spec["mode"],
        &spec["version"],
        &status["revision"],
        &status["newestRevision"],
        &status["lastChange"],
    ];
    let [
        namespace,
        name,
        cluster,
        mode,
        version,
        revision,
        newest,
        change,
    ] = cells.map(|cell| clean(cell.as_str().unwrap_or("-")));
    [
        namespace, name, cluster, mode, version, revision, newest, change, state,
    ]
}

/// Replaces control characters in text that a proxy reported, so that a terminal does not interpret them.
pub(super) fn clean(text: &str) -> String {
    text.replace(char::is_control, "?")
}

fn rejections(text: &mut String, proxy: &Value) {
    let objects = proxy["status"]["rejected"].as_array();
    for object in objects.into_iter().flatten() {
        let effect = match object["lastGoodVersionInUse"] == true {
            true => "its last good version is in effect",
            false => "no version of it was valid",
        };
        let name = clean(proxy["metadata"]["name"].as_str().unwrap_or(""));
        let of = clean(object["object"].as_str().unwrap_or(""));
        let _ = writeln!(text, "{name} rejects {of}: {effect}");
        let reasons = object["reasons"].as_array();
        for reason in reasons.into_iter().flatten().filter_map(Value::as_str) {
            let _ = writeln!(text, "    {}", clean(reason));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn refused_credentials_have_a_fix() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut head = [0; 1_000];
            std::io::Read::read(&mut stream, &mut head).unwrap();
            let status = json!({
                "kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "Unauthorized", "reason": "Unauthorized",
                "code": 401,
            });
            let body = status.to_string();
            let length = body.len();
            let text = format!(
                "HTTP/1.1 401 Unauthorized\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
            );
            std::io::Write::write_all(&mut stream, text.as_bytes()).unwrap();
        });
        let (_directory, file) = kubeconfig(address);
        let error = ask(Some(&file), ANSWER_MAX).await.unwrap_err();
        let expected = format!(
            "cannot ask the config server at http://{address}/: it does not accept the credentials (401); use a kubeconfig"
        );
        assert!(error.starts_with(&expected), "{error}");
    }

    /// Writes a kubeconfig for this address to a file.
    fn kubeconfig(address: std::net::SocketAddr) -> (tempfile::TempDir, PathBuf) {
        let text = format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: a\n\
             clusters: [{{name: a, cluster: {{server: \"http://{address}\"}}}}]\n\
             users: [{{name: a, user: {{}}}}]\n\
             contexts: [{{name: a, context: {{cluster: a, user: a}}}}]\n"
        );
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("kubeconfig");
        std::fs::write(&file, text).unwrap();
        (directory, file)
    }

    #[tokio::test]
    async fn server_that_stalls_is_named_with_the_bound() {
        // It accepts connections and reads nothing.
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (_directory, file) = kubeconfig(address);
        let bound = Duration::from_millis(300);
        let error = ask(Some(&file), bound).await.unwrap_err();
        let expected = format!(
            "cannot ask the config server at http://{address}/: it does not answer in time (300ms)"
        );
        assert!(error.starts_with(&expected), "{error}");
    }

    fn proxy(name: &str, is_current: bool, rejects: bool) -> Value {
        let rejected = json!([{
            "object": "Gateway/shop/x", "lastGoodVersionInUse": true, "reasons": ["GW001 port: missing"],
        }]);
        json!({
            "metadata": {"namespace": "edge", "name": name},
            "spec": {"cluster": "a/b/c/d", "mode": "gateway", "version": "0.1.0"},
            "status": {
                "revision": "7", "newestRevision": if is_current { "7" } else { "9" }, "upToDate": is_current,
                "lastChange": "38ms", "rejectedCount": u8::from(rejects),
                "rejected": if rejects { rejected } else { json!([]) },
            },
        })
    }

    #[test]
    fn table_shows_who_is_behind_and_what_is_rejected() {
        let proxies = [
            proxy("a", true, false),
            proxy("bb", false, false),
            proxy("c", true, true),
        ];
        let expected = "\
NAMESPACE  NAME  CLUSTER  MODE     VERSION  REVISION  NEWEST  LAST CHANGE  STATE
edge       a     a/b/c/d  gateway  0.1.0    7         7       38ms         up to date
edge       bb    a/b/c/d  gateway  0.1.0    7         9       38ms         behind
edge       c     a/b/c/d  gateway  0.1.0    7         7       38ms         rejects 1
c rejects Gateway/shop/x: its last good version is in effect
    GW001 port: missing
3 proxies: 2 up to date, 1 behind, 1 with rejected resources
";
        assert_eq!(text(&proxies), expected);
        assert!(
            text(&proxies[..1])
                .ends_with("\n1 proxy: 1 up to date, 0 behind, 0 with rejected resources\n")
        );
        assert_eq!(
            proxies.iter().map(is_fine).collect::<Vec<_>>(),
            [true, false, false]
        );
        assert_eq!(text(&[]), "no proxy is connected");
        let mut odd = proxy("a", true, true);
        odd["spec"]["version"] = json!("\u{1b}[2Jx\ny");
        odd["status"]["rejected"][0]["reasons"][0] = json!("\u{1b}[31m");
        let odd = text(&[odd]);
        assert!(
            odd.contains("  ?[2Jx?y  ") && odd.contains("    ?[31m\n"),
            "{odd}"
        );
        let flat = flat(&proxies[2]);
        assert_eq!(flat["rejected"][0]["last_good_version_in_use"], true);
        assert_eq!(
            (&flat["revision"], &flat["up_to_date"]),
            (&json!("7"), &json!(true))
        );
    }
}
