//! Imports between the files of a crate have no cycles.

use std::fs;

use super::imports::Imports;
use super::{PACKAGES, root, rust_files};

/// Returns the imports of a crate, except those of its tests and binaries.
pub(super) fn imports(package: &str) -> Imports {
    let base = root().join(package).join("src");
    let mut paths = Vec::new();
    rust_files(&base, &mut paths);
    let files = paths.into_iter().filter_map(|path| {
        let inside = path.strip_prefix(&base).unwrap().with_extension("");
        let segments: Vec<_> = inside
            .iter()
            .map(|segment| segment.to_str().unwrap())
            .collect();
        if segments[0] == "bin" || segments == ["main"] {
            return None;
        }
        let module = if segments == ["lib"] {
            String::new()
        } else {
            segments.join("::")
        };
        Some((module, fs::read_to_string(&path).unwrap()))
    });
    let files: Vec<_> = files.collect();
    Imports::of(files.iter().map(|(module, text)| (&**module, &**text)))
}

#[test]
fn imports_between_files_run_one_way() {
    let mut violations = Vec::new();
    for package in PACKAGES {
        let imports = imports(package);
        for ring in imports.rings() {
            let arrows = imports.arrows_within(&ring).join("\n    ");
            let files = ring.join(" ");
            violations.push(format!(
                "{package}: these files form a ring: {files}\n    {arrows}"
            ));
        }
    }
    assert!(
        violations.is_empty(),
        "see ARCHITECTURE.md\n{}",
        violations.join("\n")
    );
}

/// Known cycles between the modules of a folder whose files form no cycle. A cycle that is removed leaves this list.
const RINGS_BETWEEN_FOLDERS: [&str; 6] = [
    "proxy: command::args command::control command::iptables",
    "proxy: exchange::select exchange::worker",
    "proxy: tls::chain tls::material",
    "config-loader: validate::annotations validate::check validate::scalar",
    "traffic: cluster::affinity cluster::check cluster::compiled cluster::federation cluster::live cluster::parts",
    "benches: compare::arguments compare::bench compare::generator compare::load compare::scenario compare::steady",
];

#[test]
fn imports_between_the_modules_of_a_folder_run_one_way() {
    let mut found = Vec::new();
    for package in PACKAGES {
        let rings = imports(package).between_siblings().rings();
        found.extend(
            rings
                .iter()
                .map(|ring| format!("{package}: {}", ring.join(" "))),
        );
    }
    assert_eq!(found, RINGS_BETWEEN_FOLDERS, "see ARCHITECTURE.md");
}

/// Returns the cycles of synthetic files, one line per cycle.
fn rings(files: &[(&str, &str)]) -> Vec<String> {
    let imports = Imports::of(files.iter().copied());
    imports
        .rings()
        .into_iter()
        .map(|ring| ring.join(" "))
        .collect()
}

#[test]
fn two_files_that_import_each_other_form_a_ring() {
    let files = [
        ("", "pub mod a; pub mod b;"),
        ("a", "use crate::b::B; pub struct A(B);"),
        ("b", "pub struct B; fn f(_: &super::a::A) {}"),
    ];
    assert_eq!(rings(&files), ["a b"]);
    let imports = Imports::of(files);
    let ring = ["a".to_owned(), "b".to_owned()];
    assert_eq!(imports.arrows_within(&ring), ["a -> b: B", "b -> a: A"]);
}

#[test]
fn every_way_to_write_an_import_counts() {
    for import in [
        "use crate::b::B;",
        "use super::b::B;",
        "use super::b::{self, B};",
        "use crate::{c::C, b::{B, D}};",
        "use super::b; fn f(_: b::B) {}",
        "use super::b as other; fn f(_: other::B) {}",
        "use super::b::{B as Other};",
        "pub(in crate::c) use super::b::B; fn f(_: B) {}",
        "fn f(_: crate::b::B) {}",
        "fn f() { super::b::g() }",
        "mod inline { fn f(_: super::super::b::B) {} }",
        "#[cfg(not(test))] use super::b::B;",
        "fn f() { let c = \'\"\'; super::b::g(); let d = \'\"\'; }",
    ] {
        let files = [
            ("", ""),
            ("a", import),
            ("b", "use crate::a::A;"),
            ("c", ""),
        ];
        assert_eq!(rings(&files), ["a b"], "{import}");
    }
}

#[test]
fn what_is_no_import_does_not_count() {
    for text in [
        "// use super::b::B;",
        "/* use super::b::B; */",
        "const TEXT: &str = \"super::b::B\";",
        "const TEXT: &str = r#\"super::b::B\"#;",
        "#[cfg(test)] mod tests { use super::b::B; }",
        "#[cfg(test)] #[derive(Debug)] struct S(super::b::B); struct T;",
        "#[cfg(all(test, feature = \"models\"))] mod models { use super::super::b::B; }",
        "pub(in crate::b) struct A;",
        "use super::b;",
        "pub use super::b::B;",
        "use std::b::B;",
        "fn f(b: u8) -> u8 { b.B() }",
    ] {
        let files = [("", ""), ("a", text), ("b", "use crate::a::A;")];
        assert!(rings(&files).is_empty(), "{text}");
    }
}

#[test]
fn a_file_for_tests_only_does_not_count() {
    let files = [
        ("", ""),
        ("a", "#[cfg(test)] mod tests; pub struct A;"),
        ("a::tests", "use super::A; use crate::b::B;"),
        ("b", "use crate::a::tests::helper;"),
    ];
    assert!(rings(&files).is_empty());
}

#[test]
fn a_name_leads_through_reexports_to_the_file_that_defines_it() {
    let parent = (
        "p",
        "mod a; mod b; pub use a::A; pub use self::b::B as Other;",
    );
    let root = ("", "mod p; pub use p::{A, Other};");
    // both children are used through the parent and through the root
    let one_way = [
        root,
        parent,
        ("p::a", "use super::Other;"),
        ("p::b", "pub struct B;"),
    ];
    assert!(rings(&one_way).is_empty());
    let ring = [
        root,
        parent,
        ("p::a", "use crate::Other;"),
        ("p::b", "use super::A;"),
    ];
    assert_eq!(rings(&ring), ["p::a p::b"]);
}

#[test]
fn a_parent_is_in_a_ring_if_it_uses_what_it_exports_again() {
    let child = ("p::a", "use super::Own; pub struct A;");
    let only_exports = [("", ""), ("p", "pub use a::A; pub struct Own;"), child];
    assert!(rings(&only_exports).is_empty());
    let uses = [("", ""), ("p", "pub use a::A; pub struct Own(A);"), child];
    assert_eq!(rings(&uses), ["p p::a"]);
    let calls = [("", ""), ("p", "pub struct Own; fn f() { a::g() }"), child];
    assert_eq!(rings(&calls), ["p p::a"]);
}

#[test]
fn a_ring_over_many_files_is_found_once() {
    let files = [
        ("", ""),
        ("a", "use super::b::B;"),
        ("b", "use super::c::C;"),
        ("c", "use super::a::A;"),
        ("d", "use super::a::A;"),
    ];
    assert_eq!(rings(&files), ["a b c"]);
}

#[test]
fn folders_form_a_ring_that_their_files_do_not() {
    let files = [
        ("", ""),
        ("p", ""),
        ("p::a", ""),
        ("p::a::low", "pub struct Low;"),
        ("p::a::high", "use crate::p::b::B;"),
        ("p::b", "use crate::p::a::low::Low; pub struct B(Low);"),
    ];
    assert!(rings(&files).is_empty());
    let between = Imports::of(files).between_siblings();
    assert_eq!(between.rings(), [["p::a", "p::b"]]);
}

#[test]
fn a_declaration_of_a_module_is_no_use_of_what_has_its_name() {
    let parent = ("p", "mod run; pub use run::run; pub struct Own;");
    let files = [
        ("", ""),
        parent,
        ("p::run", "use super::Own; pub fn run(_: Own) {}"),
    ];
    assert!(rings(&files).is_empty());
}
