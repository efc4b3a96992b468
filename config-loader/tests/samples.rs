//! Third-party configurations load without errors.

use std::path::{Path, PathBuf};

use config_loader::diagnostic::render::{Style, text};
use config_loader::{Diagnostic, Kind, LoadOptions, Severity, load_files};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/samples")
}

/// Each file is loaded alone, because several files define the same object in different ways.
#[test]
fn every_sample_loads_without_errors() {
    let mut files = 0;
    let mut objects = 0;
    let mut errors: Vec<Diagnostic> = Vec::new();
    for entry in ["bookinfo", "gateway-api", "istio"]
        .map(|name| folder().join(name))
        .iter()
        .flat_map(|path| path.read_dir().expect("a folder"))
    {
        let path = entry.expect("an entry").path();
        let loaded = load_files(std::slice::from_ref(&path), LoadOptions::default());
        let found = loaded.diagnostics.into_iter();
        errors.extend(found.filter(|found| found.severity == Severity::Error));
        assert!(!loaded.set.is_empty(), "{}", path.display());
        files += 1;
        objects += loaded.set.len();
    }
    assert!(errors.is_empty(), "{}", text(&errors, Style::Plain));
    assert_eq!(files, 181);
    assert_eq!(objects, 483);
}

#[test]
fn bookinfo_loads_as_a_whole() {
    let names = [
        "bookinfo-gateway.yaml",
        "destination-rule-all.yaml",
        "kube-bookinfo.yaml",
        "virtual-service-all-v1.yaml",
    ];
    let loaded = load_files(
        &names.map(|name| folder().join("bookinfo").join(name)),
        LoadOptions::default(),
    );
    assert_eq!(loaded.set.count(Kind::Service), 4);
    assert_eq!(loaded.set.count(Kind::DestinationRule), 4);
    assert_eq!(loaded.set.count(Kind::VirtualService), 5);
    assert_eq!(loaded.set.count(Kind::Gateway), 1);
    let skipped = loaded
        .diagnostics
        .iter()
        .filter(|found| found.severity == Severity::Note)
        .count();
    let others: Vec<Diagnostic> = loaded
        .diagnostics
        .into_iter()
        .filter(|found| found.severity != Severity::Note)
        .collect();
    assert_eq!(skipped, 10, "Deployments and ServiceAccounts");
    assert!(others.is_empty(), "{}", text(&others, Style::Plain));
}
