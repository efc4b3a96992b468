use std::sync::Arc;

use crate::resource::core::{Secret, SecretType};
use crate::validate::testing;

/// Returns a Secret with the fields `body`, from line 4 on.
fn around(body: &str) -> String {
    format!("apiVersion: v1\nkind: Secret\nmetadata: {{name: s, namespace: ns1}}\n{body}\n")
}

fn secret(body: &str) -> Arc<Secret> {
    let (set, found) = testing::load(&around(body));
    assert_eq!(found, Vec::<String>::new());
    let object = set.secrets.values().next().expect("the secret is good");
    Arc::clone(&object.spec)
}

#[test]
fn string_data_overrides_decoded_data() {
    let secret = secret(
        "immutable: true\ndata: {a: aHVudGVyMg==, b: YQ==, c: null}\nstringData: {b: plain}",
    );
    assert_eq!(secret.secret_type, SecretType::Opaque);
    assert!(secret.immutable);
    assert_eq!(secret.get("a"), Some(&b"hunter2"[..]));
    assert_eq!(secret.get("b"), Some(&b"plain"[..]));
    assert_eq!(secret.get("c"), Some(&b""[..]));
    assert_eq!(secret.get("d"), None);
}

#[test]
fn line_breaks_within_base64_are_skipped() {
    assert_eq!(
        secret("data:\n  a: |\n    aHVu\n    dGVyMg==").get("a"),
        Some(&b"hunter2"[..])
    );
}

#[test]
fn a_tls_secret_has_a_certificate_and_a_key() {
    let certificate = "tls.crt: '-----BEGIN CERTIFICATE-----'";
    let key = "tls.key: '-----BEGIN EC PRIVATE KEY-----'";
    let good = secret(&format!(
        "type: kubernetes.io/tls\nstringData: {{{certificate}, {key}}}"
    ));
    assert_eq!(good.secret_type, SecretType::Tls);
    testing::check(
        around,
        &[
            (
                "type: kubernetes.io/tls\ndata: {tls.crt: LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0t}",
                &["E SEC003 5 data[\"tls.key\"]: Required value"],
            ),
            (
                "type: kubernetes.io/tls",
                &[
                    "E SEC003 1 data: Required value: `tls.crt` is missing",
                    "E SEC003 1 data: Required value: `tls.key` is missing",
                ],
            ),
            (
                "type: kubernetes.io/tls\nstringData:\n  tls.crt: a\n  tls.key: b",
                &[
                    "W SEC006 6 stringData[\"tls.crt\"]: `tls.crt` holds no PEM block `-----BEGIN CERTIFICATE-----`",
                    "W SEC006 7 stringData[\"tls.key\"]: `tls.key` holds no PEM block `PRIVATE KEY-----`",
                ],
            ),
        ],
    );
}

#[test]
fn keys_and_values_are_checked() {
    testing::check(
        around,
        &[
            (
                "data: {a: hunter2!}",
                &["E SEC001 4 data.a: Invalid value: must be base64"],
            ),
            (
                "data: {a: aHVudGVyMg}",
                &["E SEC001 4 data.a: Invalid value: must be base64"],
            ),
            (
                "stringData: {a b: c}",
                &[
                    "E SEC002 4 stringData[\"a b\"]: Invalid value: \"a b\": a valid config key must consist of alphanumeric \
                   characters, '-', '_' or '.'",
                ],
            ),
            ("stringData: {a-b_c.D: c}", &[]),
            (
                "type: helm.sh/release.v1\ndata: {a: YQ==}",
                &["W SEC005 4 type: secrets of type `helm.sh/release.v1` have no effect"],
            ),
            ("dta: {a: YQ==}", &["E CM021 4 dta: unknown field `dta`"]),
        ],
    );
    let large = "a".repeat(1 << 20);
    let (_, found) = testing::load(&around(&format!("stringData: {{a: {large}, b: c}}")));
    assert_eq!(
        found,
        ["E SEC004 4 stringData: Too long: 1048577 bytes: may not be more than 1048576 bytes"]
    );
    let (_, found) = testing::load(&around(&format!("stringData: {{a: {large}}}")));
    assert_eq!(found, Vec::<String>::new());
}

#[test]
fn diagnostics_show_no_secret_value() {
    for body in [
        "data: {a: hunter2!}",
        "data: {a: 98765432}",
        "data: {a: true, b: [hunter2]}",
        "data: {a: {b: hunter2}}",
        "stringData: {a: 98765432}",
        "stringData: hunter2",
        "data:\n  a: hunter2\n  a: hunter2",
        "data: {a: hunter2",
        "data: {a: *hunter2}",
        "data: {a: !hunter2 b}",
        "data: {a: !hunter2 [b]}",
        "stringData:\n  a: &hunter2\n  b: \"hunter2",
        "stringData:\n  a: %hunter2\n  b: @hunter2",
        "type: kubernetes.io/tls\nstringData: {tls.crt: hunter2, tls.key: hunter2}",
    ] {
        let mut diagnostics = crate::Diagnostics::default();
        let set = crate::load_bytes("test.yaml", around(body).as_bytes(), &mut diagnostics);
        assert!(!diagnostics.is_empty(), "{body}");
        for found in diagnostics.iter() {
            let text = format!("{found:?}");
            assert!(
                !text.contains("hunter2") && !text.contains("98765432"),
                "{body}\n{text}"
            );
        }
        assert!(!format!("{set:?}").contains("hunter2"));
    }
}

#[test]
fn raw_secrets_do_not_print_their_values() {
    let raw: crate::raw::core::Secret =
        serde_json::from_str(r#"{"data": {"a": "aHVudGVyMg=="}, "stringData": {"b": "hunter2"}}"#)
            .expect("a secret");
    let text = format!("{raw:?}");
    assert!(
        !text.contains("hunter2") && !text.contains("aHVudGVyMg"),
        "{text}"
    );
}
