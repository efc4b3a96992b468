//! Tests of settings.

use super::*;

#[test]
fn settings_are_read_over_defaults_and_written_back() {
    let written = json!({"capture": "none", "nativeSidecar": true, "control": {"url": "kubernetes://"}, "env": {"A": "b"}});
    let settings = Settings::default().with(&written).unwrap();
    assert_eq!(settings.capture, Capture::None);
    assert_eq!(settings.native_sidecar, Native::True);
    assert_eq!(settings.control.ca, "configmap:strait-ca");
    assert_eq!(
        Settings::default().with(&json!(settings)).unwrap(),
        settings
    );
    assert_ne!(settings.hash(), Settings::default().hash());
    let set = Settings::default()
        .with_one("identity.source=istio-ca")
        .unwrap();
    assert_eq!(set.identity.source, IdentitySource::IstioCa);
    assert_eq!(set.with_one("proxyUid=99").unwrap().proxy_uid, 99);
    let set = set
        .with_one("env.A=1")
        .unwrap()
        .with_one("env.B=2")
        .unwrap();
    assert_eq!(json!(set.env), json!({"A": "1", "B": "2"}));
    assert!(set.with_one("capture").unwrap_err().contains("KEY=VALUE"));
}

#[test]
fn wrong_settings_are_errors_with_their_path() {
    for (written, error) in [
        (
            json!({"captur": "none"}),
            "captur: unknown setting; did you mean `capture`?",
        ),
        (
            json!({"control": {"uri": ""}}),
            "control.uri: unknown setting; did you mean `url`?",
        ),
        (
            json!({"capture": "cni"}),
            "capture: write init, istio-cni or none",
        ),
        (json!({"capture": 1}), "capture: expected a text"),
        (json!({"proxyUid": "1337"}), "proxyUid: expected a number"),
        (
            json!({"proxyUid": 0}),
            "proxyUid: write a user other than 0",
        ),
        (json!({"env": {"A": 1}}), "env: expected texts: quote them"),
        (
            json!({"interceptionMode": "NONE"}),
            "interceptionMode: write REDIRECT or TPROXY; for no capture, write capture: none",
        ),
        (
            json!({"inboundPorts": {"exclude": "http"}}),
            "inboundPorts.exclude: write ports and ranges, such as 80,8000-8999",
        ),
        (
            json!({"outboundRanges": {"include": "10.0.0.0"}}),
            "outboundRanges.include: write `*`, or IP ranges, such as 10.0.0.0/8,fd00::/8",
        ),
        (
            json!({"accessLog": "yes"}),
            "accessLog: write text, json or off",
        ),
        (
            json!({"resources": {"limits": {"cpu": "1x"}}}),
            "resources: write quantities, such as cpu: 100m and memory: 64Mi",
        ),
        (
            json!({"never": ["a in"]}),
            "never: write a label selector, such as app=web,tier!=test",
        ),
        (
            json!({"control": {"ca": "ca.crt"}}),
            "control.ca: write configmap:NAME, configmap:NAME/KEY, or nothing",
        ),
        (json!([]), "expected a mapping"),
    ] {
        let errors = Settings::default().with(&written).unwrap_err();
        assert_eq!(errors[0].to_string(), error, "{written}");
    }
}
