use crate::{Diagnostic, Diagnostics, Severity, load_bytes};

#[test]
fn export_of_the_old_group_that_says_something_else_is_reported() {
    let export = |group: &str, spec: &str| {
        format!(
            "---\napiVersion: {group}/v1alpha1\nkind: ServiceExport\nmetadata: {{name: a}}\nspec: {{{spec}}}\n"
        )
    };
    let old = |spec: &str| export("flomesh.io", spec);
    let new = |spec: &str| export("multicluster.flomesh.io", spec);
    let ports =
        |number: u16| format!("rules: [{{portNumber: {number}, path: /a, pathType: Prefix}}]");
    let targets = "targetClusters: [a/b/c/d]";
    let rewrite = "pathRewrite: {from: /a, to: /b}";
    for (ruling, other, findings) in [
        (ports(80), ports(80), vec![]),
        (ports(80), ports(81), vec!["SX010"]),
        (
            ports(80),
            format!("{}, sessionSticky: true", ports(80)),
            vec!["SX010"],
        ),
        (
            format!("{}, {targets}", ports(80)),
            ports(80),
            vec!["SX010"],
        ),
        (
            ports(80),
            format!("{}, {rewrite}", ports(80)),
            vec!["SX010"],
        ),
        (
            ports(80),
            format!("{}, loadBalancer: LeastWorkLoadBalancer", ports(80)),
            vec!["SX010"],
        ),
        (
            ports(80),
            format!("{}, serviceAccountName: a", ports(80)),
            vec!["SX010"],
        ),
    ] {
        for old_first in [true, false] {
            let mut found = Diagnostics::default();
            let (text, line) = match old_first {
                true => (old(&other) + &new(&ruling), 2),
                false => (new(&ruling) + &old(&other), 7),
            };
            let set = load_bytes("a.yaml", text.as_bytes(), &mut found);
            let exports: Vec<&str> = set
                .service_exports
                .values()
                .map(|export| export.id.group)
                .collect();
            assert_eq!(exports, ["multicluster.flomesh.io"], "{text}");
            let found = found.into_sorted();
            let found: Vec<&Diagnostic> = found
                .iter()
                .filter(|found| !["CM024", "X299"].contains(&found.code.0))
                .collect();
            let codes: Vec<&str> = found.iter().map(|found| found.code.0).collect();
            assert_eq!(codes, findings, "{text}{found:#?}");
            for found in found {
                assert_eq!(found.severity, Severity::Warning);
                assert!(found.message.starts_with("ShadowedByGroup: "), "{found:#?}");
                assert_eq!((found.location.line, &*found.field), (line, "apiVersion"));
                assert!(
                    found.help.is_some() && found.related.len() == 1,
                    "{found:#?}"
                );
            }
        }
    }
}
