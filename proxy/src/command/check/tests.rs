//! Golden findings: what a person, a program and a pull request see of one file with a mistake of every sort.

use super::*;

/// What `check` writes about `proxy/testdata/check/mistakes.yaml`; paths are shortened.
fn findings(output: Output) -> String {
    let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/check/");
    let loaded = config_loader::load_files(&[format!("{dir}mistakes.yaml").into()]);
    let text = render(&loaded, output, render::Style::Plain);
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
    let json = json.as_array().unwrap();
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
