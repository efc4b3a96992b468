//! Findings about providers of traces, and what `strait explain` says about them.

use std::process::Command;

use super::*;
use crate::support::mesh::{documents, service};

/// Runs `strait` with a command on a mesh with a service `collector.test` of port 80, this mesh configuration, and a
/// Telemetry with this entry about traces; returns the output.
fn strait(command: &str, config: &str, entry: &str) -> String {
    let directory = tempfile::tempdir().unwrap();
    let edge: SocketAddr = "127.0.0.1:8080".parse().unwrap();
    let origin = "127.0.0.1:1".parse().unwrap();
    let telemetry = format!(
        "apiVersion: telemetry.istio.io/v1\nkind: Telemetry\n\
         metadata: {{name: all, namespace: istio-system}}\nspec: {{tracing: [{{{entry}}}]}}\n"
    );
    let mesh = documents([
        crate::support::mesh::everything_to_address(edge, Back::H1, origin),
        service("collector", Back::H1, &[(origin, "v1")]),
    ]);
    for (name, text) in [
        ("mesh.yaml", &mesh),
        ("telemetry.yaml", &telemetry),
        ("config.txt", &config.to_owned()),
    ] {
        std::fs::write(directory.path().join(name), text).unwrap();
    }
    let output = Command::new(env!("CARGO_BIN_EXE_strait"))
        .current_dir(directory.path())
        .args(command.split(' '))
        .args(["--config", ".", "--mesh-config", "config.txt"])
        .output()
        .unwrap();
    String::from_utf8([output.stdout, output.stderr].concat()).unwrap()
}

const NAMED: &str = "providers: [{name: p}], randomSamplingPercentage: 20";

#[test]
fn provider_without_a_service_is_a_finding() {
    let of = |service: &str, port: u16| {
        let config = format!(
            "extensionProviders: [{{name: p, zipkin: {{service: {service}, port: {port}}}}}]\n"
        );
        strait("check", &config, NAMED)
    };
    assert!(!of("collector.test", 80).contains("TL01"));
    for (service, port, problem) in [
        ("missing.test", 80, "no resource describes `missing.test`"),
        ("collector.test", 81, "`collector.test` has no port 81"),
        (
            "other/collector.test",
            80,
            "no resource describes `collector.test`",
        ),
    ] {
        let found = of(service, port);
        assert!(
            found.contains("TL012") && found.contains(problem),
            "{found}"
        );
    }
    let found = strait(
        "check",
        "extensionProviders: []\n",
        "randomSamplingPercentage: 20",
    );
    assert!(found.contains("TL007"), "{found}");
    let provider = "extensionProviders: [{name: p, zipkin: {service: collector.test, port: 80}}]\n";
    // a second Telemetry, of a namespace, after the entry of the first one
    let also = |entry: &str, spec: &str| {
        let more = format!(
            "{entry}}}]}}\n---\napiVersion: telemetry.istio.io/v1\nkind: Telemetry\n\
             metadata: {{name: own, namespace: demo}}\nspec: {{{spec}}}\n# "
        );
        strait("check", provider, &more)
    };
    for (entry, spec, expected) in [
        (NAMED, "tracing: [{randomSamplingPercentage: 5}]", None),
        (
            "randomSamplingPercentage: 5",
            "tracing: [{providers: [{name: p}]}]",
            Some("an entry about traces"),
        ),
        (
            NAMED,
            "metrics: [{overrides: [{disabled: true}]}]",
            Some("an entry about metrics"),
        ),
        (
            NAMED,
            "metrics: [{providers: [{name: prometheus}], overrides: [{disabled: true}]}]",
            None,
        ),
    ] {
        let found = also(entry, spec);
        assert_eq!(
            found.contains("TL007"),
            expected.is_some(),
            "{spec}: {found}"
        );
        assert!(expected.is_none_or(|text| found.contains(text)), "{found}");
    }
}

#[test]
fn explain_says_what_is_traced() {
    let config = "extensionProviders: [{name: p, zipkin: {service: collector.test, port: 80}}]\n";
    let text = strait(
        "explain http://a.test:8080/ --labels istio=ingressgateway",
        config,
        NAMED,
    );
    let line = text.lines().find(|line| line.starts_with("tracing"));
    let line = line.unwrap_or_else(|| panic!("{text}"));
    assert!(
        line.contains("20 %, Telemetry/istio-system/all ("),
        "{line}"
    );
    assert!(line.ends_with("provider p"), "{line}");
}
