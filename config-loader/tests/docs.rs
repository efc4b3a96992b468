//! Generated reference pages, which must agree with the code.
//!
//! With `UPDATE_DOCS=1` in the environment the pages are written instead of compared.

#[path = "docs/effects.rs"]
mod effects;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use config_loader::Kind;
use config_loader::diagnostic::codes;
use config_loader::kinds::unsupported::UNSUPPORTED;
use config_loader::kinds::{self, Body};
use config_loader::validate::unsupported::{self, When};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn check(file: &str, wanted: &str) {
    let path = root().join(file);
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&path, wanted).expect("the page is written");
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == wanted,
        "{file} is not what the code says: run `UPDATE_DOCS=1 cargo test -p config-loader --test docs`"
    );
}

#[test]
fn every_code_is_in_the_reference() {
    let mut page = String::from(
        "# Diagnostics\n\nLook up a code of `strait check` or of the process log. A code never changes its meaning.\n\n\
         | severity | effect |\n|---|---|\n| error | the object is rejected: its last good version stays in effect, if there is one |\n\
         | warning | the object is used |\n| note | for information |\n\n| code | severity | rule |\n|---|---|---|\n",
    );
    let mut rows: Vec<_> = codes::all().collect();
    rows.sort_by_key(|(code, ..)| {
        let letters = code
            .0
            .trim_end_matches(|letter: char| letter.is_ascii_digit());
        let group = ["YAML", "SRC", "CM"]
            .iter()
            .position(|first| *first == letters)
            .unwrap_or(9);
        (group, letters, code.0)
    });
    for (code, severity, text) in rows {
        let text = text.replace('|', "\\|");
        let _ = writeln!(page, "| {code} | {severity} | {text} |");
    }
    check("docs/diagnostics.md", &page);
}

/// Effect column of fields without a meaning for a data plane.
const FOR_OTHERS: &str = "for others";

/// Whether `path` equals `whole` or is a part of it. Every path is a part of the empty path.
fn is_part(path: &str, whole: &str) -> bool {
    let rest = path.strip_prefix(whole);
    rest.is_some_and(|rest| whole.is_empty() || rest.is_empty() || rest.starts_with(['.', '[']))
}

fn is_unsupported(kind: Kind) -> bool {
    config_loader::kinds::unsupported::of_read(kind).is_some()
}

/// Returns the entry of the effect column: the values of a field that have no effect yet.
fn effect(kind: Kind, path: &str) -> String {
    let mut others = unsupported::FOR_OTHERS.iter();
    if others.any(|(of, paths)| *of == kind && paths.iter().any(|whole| is_part(path, whole))) {
        return FOR_OTHERS.to_owned();
    }
    if is_unsupported(kind) {
        return "not yet".to_owned();
    }
    let covers = |row: &&unsupported::Row| row.kind == kind && is_part(path, &row.path);
    let rows: Vec<&unsupported::Row> = unsupported::rows().iter().filter(covers).collect();
    if rows.iter().any(|row| row.when == When::Written) {
        return "not yet".to_owned();
    }
    let quote = |values: &[&str]| {
        values
            .iter()
            .map(|value| format!("`{value}`"))
            .collect::<Vec<_>>()
            .join(", ")
    };
    let parts = rows.iter().map(|row| match row.when {
        When::Written => "not yet".to_owned(),
        When::Is(values) => {
            let named: Vec<&str> = values
                .iter()
                .copied()
                .filter(|value| !value.is_empty())
                .collect();
            let absent = if named.len() < values.len() {
                " (the default)"
            } else {
                ""
            };
            format!("not yet: {}{absent}", quote(&named))
        }
        When::IsNot(values) => format!("only {} yet", quote(values)),
        When::StartsWith(start) => format!("not yet: `{start}...`"),
    });
    let parts: Vec<String> = parts.collect();
    if parts.is_empty() {
        "yes".to_owned()
    } else {
        parts.join("; ")
    }
}

/// Markers in [`effects::EFFECTS`] for fields without a test of their effect.
const NOT_SHOWN: [&str; 2] = ["accepted", "untested"];

/// Returns the lines of [`effects::EFFECTS`]: kind, group, field, and the test that shows its effect.
fn effect_lines() -> Vec<[&'static str; 4]> {
    let mut lines = Vec::new();
    let mut of = ("", "");
    for line in effects::EFFECTS.lines() {
        if let Some(kind) = line.strip_prefix("# ") {
            of = kind.split_once(' ').expect("a kind has a group");
        } else if !line.is_empty() {
            let (field, test) = line.split_once(' ').expect("a field has a test");
            lines.push([of.0, of.1, field, test]);
        }
    }
    lines
}

fn group(row: &kinds::Row) -> &'static str {
    row.api_versions[0]
        .split_once('/')
        .map_or("core", |(group, _)| group)
}

/// Returns the test that shows the effect of a field, or a marker of [`NOT_SHOWN`].
fn shown_by(row: &kinds::Row, path: &str) -> &'static str {
    let mut path = path.replace("spec.subsets[].trafficPolicy", "spec.trafficPolicy");
    let ports = "spec.trafficPolicy.portLevelSettings[]";
    if !is_part(&path, &format!("{ports}.port")) {
        path = path.replace(ports, "spec.trafficPolicy");
    }
    let kind = row.kind.to_string();
    let lines = effect_lines().into_iter();
    let lines = lines
        .filter(|[of, api, field, _]| *of == kind && *api == group(row) && is_part(&path, field));
    let longest = lines.max_by_key(|[_, _, field, _]| field.len());
    let [.., test] = longest.unwrap_or_else(|| panic!("no test for {kind} {path}"));
    test
}

/// Returns the fields of a kind that have a value, with their effect.
fn fields(row: &kinds::Row) -> Vec<(String, &'static str, String)> {
    let prefix = if row.body == Body::Spec { "spec." } else { "" };
    let all = (row.fields)();
    let holds_others = |path: &str| {
        all.iter().any(|other| {
            other
                .path
                .strip_prefix(path)
                .is_some_and(|rest| rest.starts_with(['.', '[']))
        })
    };
    let values = all.iter().filter(|field| !holds_others(&field.path));
    values
        .map(|field| {
            let path = format!("{prefix}{}", field.path);
            let mut effect = effect(row.kind, &path);
            if has_effect(&effect) && NOT_SHOWN.contains(&shown_by(row, &path)) {
                effect = effect.replacen("yes", "", 1);
                let more = if effect.is_empty() { "" } else { "; " };
                effect = format!("{}{more}{effect}", shown_by(row, &path));
            }
            (path, field.holds, effect)
        })
        .collect()
}

/// Whether a field has an effect, by its entry from [`effect`].
fn has_effect(effect: &str) -> bool {
    effect != FOR_OTHERS && effect != "not yet"
}

/// Whether a test shows the effect of a field, by its entry from [`fields`].
fn is_shown(effect: &str) -> bool {
    has_effect(effect) && !NOT_SHOWN.iter().any(|word| effect.starts_with(word))
}

#[test]
fn every_test_that_shows_an_effect_exists() {
    for [kind, api, field, test] in effect_lines() {
        let mut rows = kinds::rows();
        let row = rows.find(|row| row.kind.to_string() == kind && group(row) == api);
        let row = row.unwrap_or_else(|| panic!("there is no kind {kind} of {api}"));
        let known = fields(row).iter().any(|(path, ..)| is_part(path, field));
        assert!(known, "{kind} has no field {field}");
        if NOT_SHOWN.contains(&test) {
            continue;
        }
        let (module, name) = test.rsplit_once("::").expect("a test is in a module");
        let file = format!("proxy/tests/it/{}.rs", module.replace("::", "/"));
        let text = fs::read_to_string(root().join(&file));
        let text = text.unwrap_or_else(|_| panic!("{field}: there is no {file}"));
        assert!(text.contains(&format!("fn {name}(")), "{field}: no {test}");
    }
}

#[test]
fn every_field_is_in_the_reference() {
    let mut page = String::from(
        "# Fields\n\nFind out whether a field of a resource has an effect. `[]` is any entry of a list, `*` is any key.\n\n\
         | has an effect | meaning |\n|---|---|\n\
         | yes | the named test in `proxy/tests/it` shows the effect on traffic |\n\
         | untested | the field is applied; no test shows its effect on traffic |\n\
         | accepted | the field is read and checked, and changes nothing |\n\
         | not yet | no effect; `strait check` reports it as `not supported yet` |\n\
         | for others | not for a data plane: for people, for controllers, or for the tool that made the object |\n\n\
         Policies of subsets and of ports take the same fields as the policy of the whole DestinationRule; the test \
         `compile::tests::fields` shows that for each field.\n",
    );
    for row in kinds::rows() {
        let _ = write!(
            page,
            "\n## {}\n\n`{}`\n\n",
            row.kind,
            row.api_versions.join("`, `")
        );
        let head = "| field | holds | has an effect | shown by |\n|---|---|---|---|\n";
        page.push_str(head);
        for (path, holds, effect) in fields(row) {
            let test = match is_shown(&effect) {
                true => format!(" `{}` ", shown_by(row, &path)),
                false => " ".to_owned(),
            };
            let _ = writeln!(page, "| `{path}` | {holds} | {effect} |{test}|");
        }
    }
    page.push_str(
        "\n## Kinds that are not supported\n\n`strait check` and `strait run` warn of each (CM036, CM037). Security policies are \
         not enforced: what they forbid is forwarded.\n\n| kind | API | security policy | instead |\n|---|---|---|---|\n",
    );
    for row in UNSUPPORTED {
        let kind = match row.kind {
            "" => "every other kind",
            kind => kind,
        };
        let policy = row.unenforced.unwrap_or("no");
        let _ = writeln!(
            page,
            "| {kind} | `{}` | {policy} | {} |",
            row.group, row.instead
        );
    }
    check("docs/fields.md", &page);
}

/// Returns the fields of a kind without an effect, as text. Fields of a traffic policy are not repeated for its parts.
fn missing(of: &kinds::Row) -> String {
    if is_unsupported(of.kind) {
        return "everything".to_owned();
    }
    let fields = fields(of);
    let rows = unsupported::rows().iter().filter(|row| row.kind == of.kind);
    // versions of a kind need not have the same fields
    let has = |path: &str| fields.iter().any(|(field, ..)| is_part(field, path));
    let rows = rows.filter(|row| has(&row.path)).filter(|row| {
        !row.path.contains("subsets[].trafficPolicy") && !row.path.contains("portLevelSettings")
    });
    let mut groups: Vec<(&str, Vec<&str>)> = Vec::new();
    let mut parts = Vec::new();
    for row in rows {
        let path = row.path.strip_prefix("spec.").unwrap_or(&row.path);
        match row.when {
            When::Written if path.is_empty() => return "everything".to_owned(),
            When::Written => {
                let (parent, name) = path.rsplit_once('.').unwrap_or(("", path));
                match groups.iter_mut().find(|(known, _)| *known == parent) {
                    Some((_, names)) => names.push(name),
                    None => groups.push((parent, vec![name])),
                }
            }
            When::Is(values) => {
                let named: Vec<&str> = values
                    .iter()
                    .copied()
                    .filter(|value| !value.is_empty())
                    .collect();
                parts.push(format!("`{path}: {}`", named.join("`, `")));
            }
            When::IsNot(values) => {
                parts.push(format!("`{path}` other than `{}`", values.join("`, `")))
            }
            When::StartsWith(start) => parts.push(format!("`{path}: {start}...`")),
        }
    }
    let group = |(parent, names): (&str, Vec<&str>)| match (parent, names.as_slice()) {
        ("", names) => format!("`{}`", names.join("`, `")),
        (parent, [name]) => format!("`{parent}.{name}`"),
        (parent, names) => format!("`{parent}.{{{}}}`", names.join(", ")),
    };
    let mut all: Vec<String> = groups.into_iter().map(group).collect();
    all.append(&mut parts);
    if all.is_empty() {
        "nothing".to_owned()
    } else {
        all.join(", ")
    }
}

#[test]
fn readme_lists_unsupported_kinds_and_fields() {
    let (open, close) = ("<!-- fields: kept true by a test -->\n", "<!-- /fields -->");
    let page = fs::read_to_string(root().join("README.md")).expect("there is a README");
    let (before, rest) = page
        .split_once(open)
        .expect("the README has a place for the table");
    let (_, after) = rest.split_once(close).expect("the place ends");
    let mut table = String::from(
        "| kind | API | fields whose effect a test shows | applied, without a test of its own | not yet |\n\
         |---|---|---|---|---|\n",
    );
    for row in kinds::rows() {
        let mut fields = fields(row);
        fields.retain(|(_, _, effect)| effect != FOR_OTHERS && effect != "accepted");
        let working = fields
            .iter()
            .filter(|(_, _, effect)| is_shown(effect))
            .count();
        let untested = fields
            .iter()
            .filter(|(_, _, effect)| effect.starts_with("untested"));
        let untested: Vec<String> = untested.map(|(path, ..)| format!("`{path}`")).collect();
        let untested = match untested.is_empty() {
            true => "none".to_owned(),
            false => untested.join(", "),
        };
        let group = group(row);
        let (kind, all, missing) = (row.kind, fields.len(), missing(row));
        let _ = writeln!(
            table,
            "| {kind} | {group} | {working} of {all} | {untested} | {missing} |"
        );
    }
    check("README.md", &format!("{before}{open}{table}{close}{after}"));
}

#[test]
fn page_about_ingress_nginx_has_the_number_of_annotations_of_each_treatment() {
    use config_loader::ingress::{KNOWN, Treatment};
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/move-from-ingress-nginx.md");
    let page = std::fs::read_to_string(page).unwrap();
    for (treatment, words) in [
        (Treatment::Follows, "followed"),
        (Treatment::Closes, "close their Ingress"),
        (Treatment::Drops, "have no effect"),
    ] {
        let count = KNOWN
            .iter()
            .filter(|(_, known, _)| *known == treatment)
            .count();
        let row = format!("| {words} | {count} |");
        assert!(
            page.contains(&row),
            "docs/move-from-ingress-nginx.md needs {row}"
        );
    }
}

#[test]
fn page_about_versions_has_the_versions_of_each_api() {
    let root = root();
    let text = |path: &str| fs::read_to_string(root.join(path)).expect(path);
    let page = text("docs/versions.md");
    let (_, apis) = page.split_once("## Versions of APIs").expect("the section");
    let mut read: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for version in kinds::rows().flat_map(|row| row.api_versions) {
        if let Some((group, version)) = version.split_once('/') {
            read.entry(group).or_default().insert(version);
        }
    }
    let is_version =
        |word: &&str| word.starts_with('v') && word[1..].starts_with(|c: char| c.is_ascii_digit());
    let mut listed: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for row in apis.lines().filter(|line| line.starts_with("| `")) {
        let columns: Vec<&str> = row.split('|').map(str::trim).collect();
        let versions = columns[2].split([',', ' ']).filter(is_version);
        let versions: BTreeSet<&str> = versions.collect();
        for group in columns[1].split(", ") {
            listed.insert(group.trim_matches('`'), versions.clone());
        }
    }
    assert_eq!(listed, read);
    // what other files say as well
    for (part, path, there) in [
        (
            "| 1.29 | schemas",
            "deploy/charts/strait/Chart.yaml",
            ">=1.29.0",
        ),
        ("3.17.3 and 4.2.3", "tests/charts/helm", "version=4.2.3"),
        ("3.17.3 and 4.2.3", "tests/charts/helm", "version=3.17.3"),
        (
            "schemas of 1.29, 1.32 and 1.37",
            "tests/charts/run",
            "in 1.29 1.32 1.37;",
        ),
        (
            "to build it | 1.90 |",
            "Cargo.toml",
            "rust-version = \"1.90\"",
        ),
    ] {
        assert!(page.contains(part), "docs/versions.md: {part}");
        assert!(text(path).contains(there), "{path}: {there}");
    }
}
