//! The alert rules and the Grafana dashboard in `deploy/`, checked by `promtool` where it is installed (Debian package
//! `prometheus`).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn deploy(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../deploy")
        .join(file)
}

/// Runs `promtool` and checks that it succeeds. Does nothing but print the reason where `promtool` is not installed.
#[track_caller]
#[allow(
    clippy::print_stderr,
    reason = "the reason of a skipped test is printed"
)]
fn promtool(arguments: &[&str], file: &Path) {
    match Command::new("promtool").args(arguments).arg(file).output() {
        Err(error) => eprintln!("skipped: promtool cannot be run: {error}"),
        Ok(output) => {
            let text = [output.stdout, output.stderr].concat();
            let text = String::from_utf8_lossy(&text);
            assert!(output.status.success(), "{}:\n{text}", file.display());
        }
    }
}

#[test]
fn alert_rules_are_valid() {
    promtool(&["check", "rules"], &deploy("prometheus-alerts.yaml"));
}

#[test]
fn alerts_fire_for_their_metrics_only() {
    promtool(&["test", "rules"], &deploy("prometheus-alerts.test.yaml"));
}

#[test]
fn every_alert_has_a_test_that_fires_it() {
    let rules = fs::read_to_string(deploy("prometheus-alerts.yaml")).unwrap();
    let tests = fs::read_to_string(deploy("prometheus-alerts.test.yaml")).unwrap();
    let alerts = rules.lines().filter_map(|line| line.split_once("alert: "));
    let alerts: Vec<&str> = alerts.map(|(_, name)| name.trim()).collect();
    assert!(alerts.len() > 10, "{alerts:?}");
    for alert in alerts {
        let fires = format!("alertname: {alert}\n    exp_alerts:");
        assert!(tests.contains(&fires), "{alert}");
    }
}

/// Prometheus checks rules only, so each query becomes a rule.
#[test]
fn dashboard_queries_are_valid_promql() {
    let dashboard = fs::read_to_string(deploy("grafana-dashboard.json")).unwrap();
    let dashboard: serde_json::Value = serde_json::from_str(&dashboard).unwrap();
    let panels = dashboard["panels"].as_array().unwrap().iter();
    let targets = panels.filter_map(|panel| panel["targets"].as_array());
    let queries = targets
        .flatten()
        .map(|target| target["expr"].as_str().unwrap());
    let mut rules = "groups:\n- name: dashboard\n  rules:\n".to_owned();
    for (number, query) in queries.enumerate() {
        let query = query.replace("$__rate_interval", "5m");
        let query = serde_json::to_string(&query).unwrap();
        rules += &format!("  - {{record: 'query:{number}', expr: {query}}}\n");
    }
    assert!(rules.lines().count() > 15, "{rules}");
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("dashboard.yaml");
    fs::write(&file, rules).unwrap();
    promtool(&["check", "rules"], &file);
}
