//! Sample applications and what becomes of them: `UPDATE=1 cargo test -p inject` rewrites the files.

use std::fs;
use std::path::Path;

use inject::stream::{Action, Format, Rewrite, settings};
use inject::{Settings, Version};

/// Files with samples, and settings as YAML.
const CASES: [(&str, &str, &str, u32); 5] = [
    ("shop", "native", "", 31),
    (
        "shop",
        "classic",
        "{holdApplication: true, imagePullSecrets: [registry]}",
        28,
    ),
    (
        "shop",
        "istio-cni",
        "{capture: istio-cni, identity: {source: istio-ca}}",
        31,
    ),
    (
        "jobs",
        "native",
        "{capture: none, control: {url: 'kubernetes://'}}",
        31,
    ),
    ("gateway", "native", "{identity: {source: strait-ca}}", 31),
];

#[test]
fn sample_applications_are_injected_as_in_the_files() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    for (sample, variant, written, version) in CASES {
        let read = |name: String| fs::read_to_string(directory.join(name)).unwrap_or_default();
        let settings = settings(&Settings::default(), "settings", written).unwrap();
        let rewrite = |action| Rewrite {
            settings: &settings,
            namespace: "shop",
            kubernetes: Some(Version(version)),
            kinds: &[],
            action,
            format: Format::AsRead,
        };
        let input = read(format!("{sample}.yaml"));
        let out = rewrite(Action::Inject).text(sample, &input).unwrap().text;
        let name = format!("{sample}.{variant}.yaml");
        if std::env::var_os("UPDATE").is_some() {
            fs::write(directory.join(&name), &out).unwrap();
        }
        let expected = read(name.clone());
        assert!(out == expected, "{name} differs; UPDATE=1 rewrites it");
        let again = rewrite(Action::Inject).text(sample, &out).unwrap().text;
        assert!(again == out, "{name}: injecting twice changes it");
    }
}
