//! Documents of texts.

use inject::Settings;
use inject::stream::{Action, Done, Format, Rewrite, Rewritten, settings};
use serde_json::Value;

fn rewrite(settings: &Settings, action: Action, format: Format) -> Rewrite<'_> {
    Rewrite {
        settings,
        namespace: "default",
        kubernetes: None,
        kinds: &[],
        action,
        format,
    }
}

fn run(text: &str, action: Action, format: Format) -> Result<Rewritten, Vec<String>> {
    rewrite(&Settings::default(), action, format).text("in.yaml", text)
}

const POD: &str = "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec:\n  containers:\n  - {name: web, image: web}\n";

#[test]
fn documents_that_do_not_change_stay_byte_for_byte() {
    let service =
        "# a service\r\napiVersion: v1\r\nkind: Service   # here\r\nmetadata: {name: web}\r\n";
    let config = "---\nkind: ConfigMap\napiVersion: v1\nmetadata: {name: c}\n# end\n";
    let text =
        format!("# top\n{service}---\n# lost\n{POD}{config}---\n# only a comment\n---\n{POD}...\n");
    let out = run(&text, Action::Inject, Format::AsRead).unwrap();
    assert!(
        out.text
            .starts_with(&format!("# top\n{service}---\napiVersion: v1\nkind: Pod\n")),
        "{}",
        out.text
    );
    assert!(
        out.text.contains(config)
            && out
                .text
                .contains("---\n# only a comment\n---\napiVersion: v1"),
        "{}",
        out.text
    );
    assert!(out.text.ends_with("...\n") && out.loses_comments);
    assert_eq!(out.workloads.len(), 2);
    let again = run(&out.text, Action::Inject, Format::AsRead).unwrap();
    assert_eq!(again.text, out.text);
    assert!(again.workloads.iter().all(|one| one.done == Done::Same));
    let back = run(&out.text, Action::Uninject, Format::AsRead).unwrap();
    assert!(!back.text.contains("strait"), "{}", back.text);
    let nothing = run(service, Action::Uninject, Format::AsRead).unwrap();
    assert_eq!(nothing.text, service);
}

#[test]
fn json_stays_json() {
    let text = r#"{"apiVersion": "v1", "kind": "List", "items": [{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"},
        "spec": {"containers": [{"name": "web"}]}}]}"#;
    let out = run(text, Action::Inject, Format::AsRead).unwrap();
    let list: Value = serde_json::from_str(&out.text).unwrap();
    assert_eq!(
        list["items"][0]["spec"]["initContainers"][0]["name"],
        "strait-init"
    );
    let yaml = run(text, Action::Inject, Format::Yaml).unwrap().text;
    assert!(
        yaml.starts_with("apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n"),
        "{yaml}"
    );
    let json = run(POD, Action::Inject, Format::Json).unwrap().text;
    assert_eq!(serde_json::from_str::<Value>(&json).unwrap()["kind"], "Pod");
}

#[test]
fn patch_and_diff_have_only_what_changes() {
    let text = format!("kind: Service\napiVersion: v1\n---\n{POD}");
    let patch = run(&text, Action::Inject, Format::Patch).unwrap().text;
    let patch: Value = serde_json::from_str(&patch).unwrap();
    assert_eq!(
        (&patch["kind"], &patch["name"]),
        (&"Pod".into(), &"web".into())
    );
    let diff = run(&text, Action::Annotate, Format::Diff).unwrap().text;
    assert_eq!(
        diff,
        "@@ -2,6 +2,8 @@\n kind: Pod\n metadata:\n   name: web\n+  labels:\n+    strait.io/inject: enabled\n spec:\n   containers:\n   - name: web\n"
    );
}

#[test]
fn errors_name_their_location_and_write_nothing() {
    let text = format!(
        "{POD}---\nkind: Pod\napiVersion: v1\nmetadata: {{annotations: {{strait.io/capture: cni}}}}\nspec: {{containers: [{{name: a}}]}}\n---\na: [\n"
    );
    let errors = run(&text, Action::Inject, Format::AsRead).unwrap_err();
    assert_eq!(errors.len(), 2, "{errors:?}");
    assert!(errors[0].starts_with("in.yaml:7: pod/ in default: annotation `strait.io/capture` has the value `cni`; write init"), "{}", errors[0]);
    assert!(errors[1].contains("in.yaml:1"), "{}", errors[1]);
}

#[test]
fn settings_of_a_file_have_locations() {
    let read = settings(
        &Settings::default(),
        "s.yaml",
        "capture: none\nnativeSidecar: true\n",
    )
    .unwrap();
    assert_eq!(
        read,
        Settings::default()
            .with_one("capture=none")
            .unwrap()
            .with_one("nativeSidecar=true")
            .unwrap()
    );
    assert_eq!(settings(&read, "s.yaml", "# nothing\n").unwrap(), read);
    let errors = settings(&read, "s.yaml", "image: a\ncontrol:\n  uri: x\n").unwrap_err();
    assert_eq!(
        errors,
        ["s.yaml:3:3: control.uri: unknown setting; did you mean `url`?"]
    );
}
