//! Checks of the documents: every YAML block passes `strait check`, every `strait` command prints the lines below it,
//! and every link has a target.
//!
//! The word after `yaml` in the first line of a block states its content: complete resources (no word), a part that
//! cannot be checked alone (`fragment`), resources with a finding (`mistake`), a remote clusters file (`clusters`), a mesh
//! configuration (`mesh-config`), or decisions by the resources in the first block of the page (`access`).

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::support::client::{Client, Front};
use crate::support::mesh::documents;
use crate::support::origin::{Back, Origin};
use crate::support::pki::Authority;
use crate::support::proxy::Start;
use crate::support::tls::{files, secret};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Returns the paths of all user documents from the root.
fn pages() -> Vec<String> {
    let outside = [
        "ARCHITECTURE.md",
        "CHANGELOG.md",
        "CONTRIBUTING.md",
        "README.md",
        "RELEASE.md",
        "SECURITY.md",
        "benches/README.md",
        "fuzz/README.md",
    ];
    let mut pages: Vec<String> = outside.map(str::to_owned).into();
    for directory in ["docs", "examples", "deploy"] {
        let Ok(entries) = fs::read_dir(root().join(directory)) else {
            continue;
        };
        for entry in entries {
            let name = entry.unwrap().file_name().into_string().unwrap();
            pages.push(format!("{directory}/{name}"));
            pages.push(format!("{directory}/{name}/README.md"));
        }
    }
    pages.retain(|page| page.ends_with(".md") && root().join(page).is_file());
    pages.sort();
    pages
}

fn read(page: &str) -> String {
    fs::read_to_string(root().join(page)).unwrap()
}

/// Fenced block of a page: the words after the fence, and its text.
struct Block {
    info: String,
    text: String,
}

fn blocks(page: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut inside = false;
    for line in read(page).lines() {
        match line.strip_prefix("```") {
            Some("") if inside => inside = false,
            Some(info) => {
                assert!(!inside, "{page}: a block is not closed before ```{info}");
                let (info, text) = (info.to_owned(), String::new());
                blocks.push(Block { info, text });
                inside = true;
            }
            None if inside => {
                let text = &mut blocks.last_mut().unwrap().text;
                text.push_str(line);
                text.push('\n');
            }
            None => (),
        }
    }
    assert!(!inside, "{page}: the last block is not closed");
    blocks
}

/// Returns a Secret for every `credentialName` of a text, since documents leave Secrets to their readers.
fn secrets(text: &str) -> String {
    let ca = Authority::new("ca");
    let names = text.split("credentialName: ").skip(1);
    let names: HashSet<&str> = names
        .filter_map(|rest| rest.split([',', '}', '\n']).next())
        .collect();
    documents(names.into_iter().map(|name| {
        let pair = ca.server(&[&format!("{name}.example")]);
        let values = [
            ("tls.crt", &*pair.chain),
            ("tls.key", &pair.key),
            ("ca.crt", &ca.pem()),
        ];
        secret(name, &values)
    }))
}

/// Writes the files of a page into a directory: its first complete configuration is `mesh.yaml`.
fn files_of(page: &str) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(directory.path().join(name), text).unwrap();
    for block in blocks(page).iter().rev() {
        match block.info.as_str() {
            "yaml" => {
                write("mesh.yaml", &block.text);
                write("secrets.yaml", &secrets(&block.text));
            }
            "yaml mistake" => write("mistake.yaml", &block.text),
            "yaml clusters" => write("clusters.yaml", &with_certificates(&block.text, &directory)),
            _ => (),
        }
    }
    directory
}

/// Returns a remote clusters file with certificates in `directory` instead of `/etc/strait`.
fn with_certificates(text: &str, directory: &tempfile::TempDir) -> String {
    let ca = Authority::new("ca");
    let pair = ca.server(&["c1.example"]);
    let all = [
        ("c2-ca.pem", &*ca.pem()),
        ("c1.pem", &pair.chain),
        ("c1.key", &pair.key),
    ];
    files(directory.path(), &all);
    text.replace("/etc/strait", directory.path().to_str().unwrap())
}

fn strait(directory: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_strait"))
        .current_dir(directory)
        .args(arguments)
        .output()
        .unwrap()
}

fn has_findings(directory: &Path, arguments: &[&str]) -> Option<String> {
    let output = strait(directory, arguments);
    let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    let clean = output.status.success() && text.contains(" 0 errors, 0 warnings");
    (!clean).then_some(text)
}

#[test]
fn every_yaml_block_checks_as_its_page_says() {
    let mut checked = 0;
    for page in pages() {
        let mut configs = blocks(&page).into_iter();
        let mesh_config = configs.find(|block| block.info == "yaml mesh-config");
        let mesh_config = mesh_config.map(|block| block.text);
        for Block { info, text } in blocks(&page) {
            let directory = tempfile::tempdir().unwrap();
            let here = directory.path();
            fs::write(here.join("mesh.yaml"), &text).unwrap();
            fs::write(here.join("secrets.yaml"), secrets(&text)).unwrap();
            if let Some(config) = &mesh_config {
                fs::write(here.join("mesh-config.txt"), config).unwrap();
            }
            let with_config = ["check", "mesh.yaml", "--mesh-config", "mesh-config.txt"];
            let found = match info.as_str() {
                "yaml" if text.contains("credentialName") => has_findings(here, &["check", "."]),
                "yaml" if here.join("mesh-config.txt").exists() => has_findings(here, &with_config),
                "yaml" => has_findings(here, &["check", "mesh.yaml"]),
                "yaml mesh-config" => {
                    fs::write(here.join("mesh.yaml"), "").unwrap();
                    has_findings(here, &with_config)
                }
                "yaml mistake" => {
                    let found = has_findings(here, &["check", "mesh.yaml"]);
                    assert!(found.is_some(), "{page}: no finding in\n{text}");
                    None
                }
                "yaml clusters" => {
                    let file = with_certificates(&text, &directory);
                    fs::write(here.join("mesh.yaml"), "").unwrap();
                    fs::write(here.join("clusters.txt"), file).unwrap();
                    has_findings(here, &["check", "mesh.yaml", "--clusters", "clusters.txt"])
                }
                "yaml access" => {
                    let mut all = blocks(&page).into_iter();
                    let first = all.find(|block| block.info == "yaml").expect("resources");
                    fs::write(here.join("mesh.yaml"), first.text).unwrap();
                    fs::write(here.join("access.txt"), &text).unwrap();
                    has_findings(here, &["check", "mesh.yaml", "--access", "access.txt"])
                }
                "yaml fragment" | "yaml prometheus" | "console" | "json" | "mermaid" | "text" => {
                    continue;
                }
                other => panic!("{page}: a block has the unknown kind `{other}`"),
            };
            assert_eq!(found, None, "{page}\n{text}");
            checked += 1;
        }
    }
    assert!(checked >= 8, "only {checked} blocks were found");
}

/// Returns the commands of `console` blocks with their expected output lines.
fn commands(page: &str) -> Vec<(String, Vec<String>)> {
    let mut commands: Vec<(String, Vec<String>)> = Vec::new();
    for block in blocks(page) {
        if block.info != "console" {
            continue;
        }
        for line in block.text.lines() {
            match line.strip_prefix("$ ") {
                Some(command) => commands.push((command.to_owned(), Vec::new())),
                None => commands.last_mut().unwrap().1.push(line.to_owned()),
            }
        }
    }
    commands
}

#[test]
fn every_console_command_prints_what_its_page_says() {
    let mut run = 0;
    for page in pages() {
        let directory = files_of(&page);
        for (command, lines) in commands(&page) {
            let words = crate::examples::words(&command);
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            assert_eq!(words[0], "strait", "{page}: {command}");
            let output = strait(directory.path(), &words[1..]);
            let output = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
            let printed = crate::examples::prints(&output, &lines, false);
            assert!(printed && !lines.is_empty(), "{page}: {command}\n{output}");
            run += 1;
        }
    }
    assert!(run >= 8, "only {run} commands were found");
}

/// Every flag on a page belongs to the command line, or to the load generator, whose page has its help text.
#[test]
fn every_flag_in_the_documents_exists() {
    let of_load = blocks("docs/measure.md").pop().unwrap().text;
    let known = read("docs/cli.md") + &of_load;
    let flag = |text: &str| {
        let end = text.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '-');
        text[..end.unwrap_or(text.len())].to_owned()
    };
    for page in pages().iter().filter(|page| page.starts_with("docs/")) {
        let text = read(page);
        for (at, _) in text.match_indices("`--") {
            let name = flag(&text[at + 1..]);
            if name.trim_matches('-').is_empty() {
                continue;
            }
            assert!(known.contains(&format!(" {name}")), "{page}: `{name}`");
        }
    }
}

/// Returns all metric names in a text: words with the prefixes of the proxy's metrics.
fn metrics(text: &str) -> HashSet<&str> {
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let words = text.split(|letter| !is_part(letter));
    let prefixes = ["strait_", "istio_", "process_"];
    let named = words.filter(|word| prefixes.iter().any(|prefix| word.starts_with(prefix)));
    named.collect()
}

/// Returns the source that names every metric of the config server.
fn metrics_of_config_server() -> String {
    read("config-server/src/metrics.rs")
}

/// The reference page has exactly the metrics of the proxy; a test of `telemetry::names` compares them.
#[test]
fn dashboard_alerts_and_documents_name_metrics_that_exist() {
    let reference = read("docs/metrics.md");
    let rows = reference.lines().filter_map(|row| row.strip_prefix("| `"));
    let known: HashSet<&str> = rows.filter_map(|row| row.split('`').next()).collect();
    assert!(known.len() > 50, "{known:?}");
    let of_server = metrics_of_config_server();
    let is_of_server = |name: &str| of_server.contains(&format!("\"{name}\""));
    let exists = |name: &str| {
        let parts = ["_bucket", "_sum", "_count"].iter();
        let mut histograms = parts.filter_map(|part| name.strip_suffix(part));
        known.contains(name) || histograms.any(|name| known.contains(name))
    };
    let deployed = [
        "deploy/grafana-dashboard.json",
        "deploy/prometheus-alerts.yaml",
        "deploy/prometheus-rules.yaml",
    ];
    for file in deployed {
        let text = read(file);
        let named = metrics(&text);
        assert!(named.len() >= 4, "{file}: {named:?}");
        for name in named {
            assert!(exists(name), "{file}: there is no metric {name}");
        }
    }
    for page in pages().iter().filter(|page| page.starts_with("docs/")) {
        let text = read(page);
        for name in metrics(&text) {
            let is_metric = name.starts_with("strait_") || name.ends_with("_total");
            assert!(
                !is_metric || exists(name) || is_of_server(name),
                "{page}: there is no metric {name}"
            );
        }
    }
}

#[test]
fn dashboard_and_alerts_can_be_parsed() {
    let dashboard = read("deploy/grafana-dashboard.json");
    let dashboard: serde_json::Value = serde_json::from_str(&dashboard).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let targets = panels
        .iter()
        .filter_map(|panel| panel["targets"].as_array());
    assert!(targets.clone().count() > 15);
    for target in targets.flatten() {
        let query = target["expr"].as_str().unwrap();
        assert_eq!(
            query.matches('(').count(),
            query.matches(')').count(),
            "{query}"
        );
    }
    // a kind that `strait check` only parses
    let head = "apiVersion: monitoring.coreos.com/v1\nkind: PrometheusRule\nmetadata: {name: strait}\nspec:\n";
    let rules = read("deploy/prometheus-alerts.yaml");
    let rules: String = rules.lines().map(|line| format!("  {line}\n")).collect();
    let directory = tempfile::tempdir().unwrap();
    fs::write(
        directory.path().join("rules.yaml"),
        format!("{head}{rules}"),
    )
    .unwrap();
    assert_eq!(
        has_findings(directory.path(), &["check", "rules.yaml"]),
        None
    );
}

/// Every alert has a line on the page that states what to do.
#[test]
fn every_alert_is_explained() {
    let page = read("docs/metrics-and-alerts.md");
    let rules = read("deploy/prometheus-alerts.yaml");
    let alerts: Vec<&str> = rules.split("alert: ").skip(1).collect();
    assert!(alerts.len() > 10);
    for alert in alerts {
        let name = alert.lines().next().unwrap();
        assert!(page.contains(&format!("`{name}`")), "{name}");
    }
}

/// Returns the link anchor of a heading, as code hosts generate it.
fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter_map(|letter| match letter {
        ' ' => Some('-'),
        '-' | '_' => Some(letter),
        letter if letter.is_alphanumeric() => Some(letter.to_ascii_lowercase()),
        _ => None,
    });
    kept.collect()
}

#[test]
fn every_link_points_at_an_existing_file_and_heading() {
    for page in pages() {
        let text = read(&page);
        for rest in text.split("](").skip(1) {
            let Some(link) = rest.split(')').next().filter(|link| !link.contains("://")) else {
                continue;
            };
            let (path, heading) = link.split_once('#').unwrap_or((link, ""));
            let target = match path {
                "" => page.clone(),
                path => Path::new(&page)
                    .with_file_name(path)
                    .to_str()
                    .unwrap()
                    .to_owned(),
            };
            assert!(root().join(&target).exists(), "{page}: {link}");
            let headings = || {
                let text = read(&target);
                let lines: Vec<String> = text.lines().map(str::to_owned).collect();
                lines.into_iter().filter(|line| line.starts_with('#'))
            };
            let found = heading.is_empty()
                || headings().any(|line| anchor(line.trim_start_matches('#').trim()) == heading);
            assert!(found, "{page}: {link} leads to no heading");
        }
    }
}

/// The table of ratios in the README has the figures of the benches.
#[test]
fn readme_has_the_measured_ratios() {
    let (readme, benches) = (read("README.md"), read("benches/README.md"));
    let table = readme.split("<!-- ratios").nth(1).unwrap();
    let rows = table.split("<!-- /ratios").next().unwrap();
    let mut compared = 0;
    for row in rows.lines().filter_map(|row| row.strip_prefix("| [")) {
        let (title, cells) = row.split_once(']').unwrap();
        let cells: Vec<&str> = cells.split('|').map(str::trim).collect();
        let [_, envoy, haproxy, ..] = cells[..] else {
            panic!("{row}")
        };
        let section = benches.split(&format!("### {title}\n")).nth(1);
        let section = section.unwrap_or_else(|| panic!("no section {title}"));
        let section = section.split("\n### ").next().unwrap();
        let measured = section.lines().find(|line| line.starts_with("| Strait "));
        let measured = measured.unwrap_or_else(|| panic!("no row of Strait in {title}"));
        let measured: Vec<&str> = measured.split('|').map(str::trim).collect();
        let at = measured.iter().position(|cell| *cell == haproxy);
        let at = at.unwrap_or_else(|| panic!("{title}: {haproxy} to HAProxy is not measured"));
        assert_eq!(measured[at + 1], envoy, "{title}: to Envoy");
        compared += 1;
    }
    assert!(compared >= 5, "only {compared} rows were compared");
}

#[tokio::test]
async fn getting_started_serves_the_responses_it_shows() {
    let origin = Origin::named(Back::H1, "cart");
    let start = Start::new();
    let edge = start.edge();
    let mesh = blocks("docs/getting-started.md")
        .into_iter()
        .find(|block| block.info == "yaml");
    let server = "port: {number: 8080, name: http, protocol: HTTP}";
    let mesh = mesh.unwrap().text;
    assert!(mesh.contains(server), "{mesh}");
    let (ip, port) = (edge.ip(), edge.port());
    let mesh = mesh.replace(
        server,
        &format!(
            "bind: {ip}\n    {}",
            server.replace("8080", &port.to_string())
        ),
    );
    let (ip, port) = (origin.address.ip(), origin.address.port());
    let endpoint = format!("address: {ip}\n    ports: {{http: {port}}}");
    let mesh = mesh.replace("address: 127.0.0.1\n    ports: {http: 9000}", &endpoint);
    let _proxy = start.file("mesh.yaml", mesh).start();
    let mut client = Client::connect(Front::H1, edge).await;
    let get = |path: &str| {
        hyper::Request::get(path)
            .header("host", "shop.example")
            .body(crate::support::origin::empty())
            .unwrap()
    };
    assert_eq!(client.call(get("/cart")).await.text(), "cart");
    let other = client.call(get("/other")).await;
    assert_eq!((other.status, other.text()), (404, "no such page"));
    assert_eq!(origin.only().path(), "/cart");
}
