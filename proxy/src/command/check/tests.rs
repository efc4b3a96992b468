//! Golden findings of one file with every sort of mistake, in the formats for a person, a program and a pull request.

use super::*;

/// Returns the output of `check` for `proxy/testdata/check/mistakes.yaml`, with shortened paths.
fn findings(output: Output) -> String {
    let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/check/");
    let loaded = config_loader::load_files(
        &[format!("{dir}mistakes.yaml").into()],
        config_loader::LoadOptions::default(),
    );
    let text = render(&loaded, json!([]), output, render::Style::Plain);
    text.replace(dir, "")
}

macro_rules! golden {
    ($($name:ident: $output:expr;)*) => {$(
        #[test]
        fn $name() {
            let mut settings = insta::Settings::clone_current();
            settings.set_snapshot_path("../../../testdata/check");
            settings.set_prepend_module_to_snapshot(false);
            settings.set_omit_expression(true);
            settings.bind(|| insta::assert_snapshot!(stringify!($name), findings($output)));
        }
    )*};
}

golden! {
    mistakes_as_text: Output::Text;
    mistakes_as_json: Output::Json;
    mistakes_for_github: Output::Github;
}

#[test]
fn json_and_annotations_have_all_fields_of_the_text() {
    let text = findings(Output::Text);
    let json: serde_json::Value = serde_json::from_str(&findings(Output::Json)).unwrap();
    let json = json["findings"].as_array().unwrap();
    let annotations = findings(Output::Github);
    assert_eq!(annotations.lines().count(), json.len());
    for (finding, annotation) in json.iter().zip(annotations.lines()) {
        let of = |field: &str| finding[field].as_str().unwrap();
        let head = format!("{}[{}]: {}\n", of("severity"), of("code"), of("message"));
        assert!(text.contains(&head), "{head}");
        let place = format!("line={},col={},", finding["line"], finding["column"]);
        assert!(annotation.contains(&place), "{annotation}");
    }
}

/// Runs a command line and returns the exit code and the output.
fn checked(arguments: &[&str]) -> (usize, String) {
    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        check: CheckArgs,
    }
    let line = <Line as clap::Parser>::parse_from([&["check"], arguments].concat());
    let (mut loaded, _) = load(&line.check).unwrap();
    if !line.check.context.is_empty() {
        leave_out_context(&line.check, &mut loaded);
    }
    let text = render(&loaded, Value::Null, Output::Text, render::Style::Plain);
    (count(&loaded, Severity::Error), text)
}

#[test]
fn rejected_objects_are_counted() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.yaml");
    let route = |name: &str, rule: &str| {
        format!(
            "apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {{name: {name}}}\n\
             spec: {{hosts: [{name}.example], http: [{rule}]}}\n---\n"
        )
    };
    let good = route("good", "{directResponse: {status: 200}}");
    std::fs::write(&path, good.clone() + &route("bad", "{rout: []}")).unwrap();
    let (_, text) = checked(&[path.to_str().unwrap()]);
    assert!(
        text.ends_with("\n2 objects, 1 rejected, 2 errors, 0 warnings\n"),
        "{text}"
    );
    std::fs::write(&path, good).unwrap();
    let (_, text) = checked(&[path.to_str().unwrap()]);
    assert_eq!(text, "1 object, 0 errors, 0 warnings\n");
}

#[test]
fn context_is_read_and_not_reported() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name).display().to_string();
    let write = |name: &str, text: &str| std::fs::write(at(name), text).unwrap();
    let rule = "apiVersion: networking.istio.io/v1\nkind: DestinationRule\nmetadata: {name: web}\nspec: {host: web.internal}\n";
    write("rule.yaml", rule);
    write(
        "entry.yaml",
        "apiVersion: networking.istio.io/v1\nkind: ServiceEntry\nmetadata: {name: web}\nspec:\n  hosts: [web.internal]\n  \
         resolution: DNS\n  ports: [{number: 80, name: http, protocol: HTTP}]\n",
    );
    write("broken.yaml", "kind: Gateway\n");
    let (_, alone) = checked(&[&at("rule.yaml")]);
    assert!(alone.contains("X316"), "{alone}");
    let whole = directory.path().display().to_string();
    let (errors, text) = checked(&[&at("rule.yaml"), "--context", &whole]);
    assert_eq!((errors, text.contains("X316")), (0, false), "{text}");
    let (errors, text) = checked(&[&at("broken.yaml"), "--context", &whole]);
    assert_eq!(errors, 1, "{text}");
}
