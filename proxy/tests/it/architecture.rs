//! Checks of the rules in ARCHITECTURE.md and of the house rules.

mod import_rings;
mod imports;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use regex::Regex;

/// Rows of modules: name, row number, and the modules of the same row that it may import.
type Rows = &'static [(&'static str, u8, &'static [&'static str])];

/// Rows of each crate; ARCHITECTURE.md describes those of all but the last.
const CRATES: [(&str, Rows); 7] = [
    ("proxy", PROXY),
    ("config-loader", LOADER),
    ("config-server", SERVER),
    ("inject", INJECT),
    ("traffic", TRAFFIC),
    ("wire", WIRE),
    ("benches", BENCHES),
];
const CRATES_DESCRIBED: usize = 6;

/// Crates that the house rules apply to: those with rows, and the fuzz targets, which have no imports between them.
const PACKAGES: [&str; 11] = [
    "proxy",
    "config-loader",
    "config-server",
    "grpc-client",
    "inject",
    "jwt",
    "traffic",
    "web",
    "wire",
    "benches",
    "fuzz",
];

const LOADER: Rows = &[
    ("kind", 0, &[]),
    ("proxy_state", 0, &[]),
    ("re2", 0, &[]),
    ("span", 0, &[]),
    ("diagnostic", 1, &[]),
    ("raw", 1, &[]),
    ("parse", 2, &[]),
    ("resource", 2, &[]),
    ("catalog", 3, &[]),
    ("options", 4, &[]),
    ("validate", 5, &[]),
    ("kinds", 6, &[]),
    ("load", 7, &[]),
    ("store", 8, &[]),
    ("ingress", 8, &[]),
    ("xds_body", 8, &[]),
    ("xds", 9, &[]),
    ("source", 10, &[]),
    ("loader", 11, &[]),
    ("settings_file", 12, &[]),
    ("access_table", 13, &[]),
    ("route_tests", 13, &[]),
    ("scenarios", 13, &[]),
    ("written_proxies", 12, &[]),
    ("clusters", 13, &[]),
    ("mesh_config", 13, &[]),
    ("imports", 14, &[]),
];

const PROXY: Rows = &[
    ("identity", 0, &["runtime"]),
    ("jwks", 0, &[]),
    ("runtime", 0, &[]),
    ("telemetry", 0, &["runtime"]),
    ("tls", 0, &["runtime"]),
    ("pool", 1, &["upstream"]),
    ("upstream", 1, &[]),
    ("snapshot", 2, &[]),
    ("compile", 4, &[]),
    ("exchange", 4, &[]),
    ("admin", 5, &[]),
    ("codec", 5, &[]),
    ("control", 5, &[]),
    ("detect", 5, &["codec"]),
    ("explain", 4, &["compile", "exchange"]),
    ("difference", 4, &["compile", "exchange", "explain"]),
    ("simulate", 5, &["control"]),
    ("listener", 5, &["codec", "detect"]),
    ("worker", 5, &["codec", "detect", "listener"]),
    ("app", 6, &["command", "main"]),
    ("command", 6, &["app", "main"]),
    ("main", 6, &["app", "command"]),
];

const TRAFFIC: Rows = &[
    ("certificate", 0, &[]),
    ("claims", 0, &[]),
    ("dates", 0, &[]),
    ("error", 0, &[]),
    ("pattern", 0, &[]),
    ("provenance", 0, &[]),
    ("sync", 0, &[]),
    ("trace", 0, &[]),
    ("registry", 1, &[]),
    ("telemetry", 1, &[]),
    ("connection", 2, &[]),
    ("balance", 2, &[]),
    ("cluster", 3, &[]),
    ("route", 3, &[]),
    ("authz", 4, &[]),
    ("limit", 4, &[]),
    ("filter", 5, &[]),
];

const WIRE: Rows = &[("fields", 0, &[]), ("http1", 1, &[]), ("http2", 1, &[])];

const SERVER: Rows = &[
    ("clock", 0, &[]),
    ("files", 0, &[]),
    ("lease", 0, &[]),
    ("connections", 0, &[]),
    ("remote", 0, &[]),
    ("resources", 0, &[]),
    ("shared_secret", 0, &[]),
    ("store", 1, &[]),
    ("object", 2, &[]),
    ("status", 2, &[]),
    ("access", 3, &[]),
    ("fields", 3, &[]),
    ("mirror", 3, &[]),
    ("selector", 3, &[]),
    ("api", 4, &[]),
    ("proxies", 4, &[]),
    ("audit", 5, &[]),
    ("conditions", 5, &[]),
    ("grpc", 5, &[]),
    ("metrics", 5, &[]),
    ("transfer", 5, &[]),
    ("identities", 6, &[]),
    ("imports", 6, &[]),
    ("status_for", 6, &[]),
    ("xds", 6, &[]),
    ("server", 7, &[]),
    ("webhook", 7, &[]),
    ("hub", 8, &[]),
    ("setup", 8, &[]),
    ("roles", 9, &[]),
];

const INJECT: Rows = &[
    ("grammar", 0, &[]),
    ("json", 0, &[]),
    ("patch", 0, &[]),
    ("report", 0, &[]),
    ("record", 1, &[]),
    ("selector", 1, &[]),
    ("settings", 2, &[]),
    ("context", 3, &[]),
    ("probes", 3, &[]),
    ("documents", 4, &[]),
    ("selection", 4, &[]),
    ("choices", 5, &[]),
    ("containers", 6, &[]),
    ("injector", 7, &[]),
    ("stream", 8, &[]),
];

const BENCHES: Rows = &[
    ("clusters", 0, &[]),
    ("fleet", 0, &[]),
    ("load", 0, &[]),
    ("compare", 1, &[]),
    ("changes", 2, &[]),
    ("drill", 2, &[]),
    ("instructions", 2, &[]),
    ("stream", 2, &[]),
    ("bin", 3, &[]),
];

const FILE_LINES_MAX: usize = 800;
const FUNCTION_LINES_MAX: usize = 70;

/// Source file without its tests.
struct Source {
    path: PathBuf,
    /// First segment of its module path.
    module: String,
    text: String,
}

fn root() -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.parent().unwrap().to_owned()
}

fn rust_files(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            rust_files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found.sort();
}

/// Returns the source files of a crate without tests: skips modules below `#[cfg(test)]`, and everything after it.
fn sources(package: &str) -> Vec<Source> {
    let base = root().join(package).join("src");
    let mut paths = Vec::new();
    rust_files(&base, &mut paths);
    let declared =
        Regex::new(r"\n#\[cfg\(test\)\]\n(?:pub(?:\([a-z_: ]+\))? )?mod (\w+);").unwrap();
    let mut tests = BTreeSet::new();
    for path in &paths {
        let text = fs::read_to_string(path).unwrap();
        let inside = match path.file_name().is_some_and(|name| name == "lib.rs") {
            true => base.clone(),
            false => path.with_extension(""),
        };
        tests.extend(
            declared
                .captures_iter(&text)
                .map(|name| inside.join(&name[1])),
        );
    }
    let sources = paths.into_iter().filter_map(|path| {
        if path
            .ancestors()
            .any(|above| tests.contains(&above.with_extension("")))
        {
            return None;
        }
        let inside = path.strip_prefix(&base).unwrap().with_extension("");
        let mut segments = inside.iter().map(|segment| segment.to_str().unwrap());
        let module = segments.next().unwrap().to_owned();
        let text = fs::read_to_string(&path).unwrap();
        let text = match text.find("\n#[cfg(test)]\nmod ") {
            Some(end) => text[..=end].to_owned(),
            None => text,
        };
        Some(Source { path, module, text })
    });
    sources.collect()
}

/// Returns the code lines of a text, with their numbers from 1.
fn code(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = text.lines().enumerate();
    lines
        .map(|(index, line)| (index + 1, line))
        .filter(|(_, line)| !line.trim_start().starts_with("//"))
}

fn row(rows: Rows, module: &str) -> Option<&'static (&'static str, u8, &'static [&'static str])> {
    rows.iter().find(|(name, ..)| *name == module)
}

/// Whether a module may import another. Macros, types and functions at the root of a crate are in no row.
fn allows(rows: Rows, user: &str, used: &str) -> bool {
    if user == used {
        return true;
    }
    let (Some((_, high, arrows)), Some((_, low, _))) = (row(rows, user), row(rows, used)) else {
        return false;
    };
    low < high || (low == high && arrows.contains(&used))
}

fn report(violations: BTreeSet<String>) {
    let list: Vec<_> = violations.into_iter().collect();
    assert!(list.is_empty(), "see ARCHITECTURE.md\n{}", list.join("\n"));
}

#[test]
fn modules_import_only_from_lower_rows() {
    let named = Regex::new(r"\bcrate::([a-z_0-9]+)").unwrap();
    let grouped = Regex::new(r"(?s)\bcrate::\{([^;]*)\};").unwrap();
    let inner = Regex::new(r"(?m)(?:^|[,{])\s*([a-z_0-9]+)(?:::|,|\s*\})").unwrap();
    let mut violations = BTreeSet::new();
    let sources = CRATES.map(|(package, rows)| (rows, sources(package)));
    let sources = sources
        .iter()
        .flat_map(|(rows, all)| all.iter().map(|one| (*rows, one)));
    for (rows, source) in sources.filter(|(_, source)| source.module != "lib") {
        let text: Vec<_> = code(&source.text).map(|(_, line)| line).collect();
        let text = text.join("\n");
        let groups = grouped.captures_iter(&text);
        let in_groups = groups.flat_map(|group| {
            let list = group.get(1).unwrap().as_str();
            inner
                .captures_iter(list)
                .map(|name| name.get(1).unwrap().as_str())
        });
        let single = named.captures_iter(&text);
        let single = single.map(|name| name.get(1).unwrap().as_str());
        for used in single.chain(in_groups) {
            if !allows(rows, &source.module, used) {
                let path = source.path.display();
                violations.insert(format!("{path}: {} may not use {used}", source.module));
            }
        }
    }
    report(violations);
}

/// Imports through re-exports count as well, by the file that defines the name.
#[test]
fn names_are_defined_in_lower_rows() {
    let mut violations = BTreeSet::new();
    for (package, rows) in CRATES {
        for (user, used) in import_rings::imports(package).arrows() {
            if let ([user, ..], [used, ..]) = (user, used)
                && !allows(rows, user, used)
            {
                violations.insert(format!("{package}: {user} may not use {used}"));
            }
        }
    }
    report(violations);
}

#[test]
fn every_module_has_a_row() {
    let map = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    for (index, (package, rows)) in CRATES.into_iter().enumerate() {
        let mut modules: BTreeSet<_> = sources(package).into_iter().map(|s| s.module).collect();
        modules.remove("lib");
        let known: BTreeSet<_> = rows.iter().map(|(name, ..)| (*name).to_owned()).collect();
        assert_eq!(modules, known, "{package}");
        for module in known.iter().filter(|_| index < CRATES_DESCRIBED) {
            assert!(
                map.contains(module),
                "ARCHITECTURE.md does not name {module}"
            );
        }
    }
}

/// Returns the modules that may name `config_loader`, as listed in a sentence of ARCHITECTURE.md.
fn modules_that_know_the_loader() -> BTreeSet<String> {
    let map = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let sentence =
        Regex::new(r"only ((?:`\w+`(?:,? and |, | ))+)may\s+name\s+`config_loader`").unwrap();
    let map = map.split_whitespace().collect::<Vec<_>>().join(" ");
    let list = sentence
        .captures(&map)
        .expect("a sentence about config_loader");
    let module = Regex::new(r"`(\w+)`").unwrap();
    let modules = module.captures_iter(&list[1]);
    modules.map(|module| module[1].to_owned()).collect()
}

#[test]
fn only_modules_in_architecture_md_name_the_loader() {
    let may = modules_that_know_the_loader();
    let mut unused = may.clone();
    let mut violations = BTreeSet::new();
    for source in sources("proxy") {
        if !code(&source.text).any(|(_, line)| line.contains("config_loader")) {
            continue;
        }
        unused.remove(&source.module);
        if !may.contains(&source.module) {
            violations.insert(format!("{} names config_loader", source.path.display()));
        }
    }
    let unused = unused.iter();
    violations.extend(unused.map(|module| format!("{module} does not name config_loader")));
    for source in sources("config-loader") {
        if code(&source.text).any(|(_, line)| line.contains("proxy::")) {
            violations.insert(format!("{} names the proxy", source.path.display()));
        }
    }
    report(violations);
}

#[test]
fn decisions_are_pure() {
    let impure = [
        ".await",
        ".block_on(",
        ".join()",
        ".lock(",
        ".read()",
        ".recv(",
        ".recv_timeout(",
        ".turn()",
        ".wait(",
        ".write()",
        "async ",
        "Barrier",
        "Condvar",
        "Instant::now",
        "Mutex",
        "RwLock",
        "SystemTime::now",
        "blocking_",
        "mpsc",
        "rand::rng()",
        "thread::",
        "thread_local!",
        "tokio::",
    ];
    let mut violations = BTreeSet::new();
    let of_proxy = sources("proxy").into_iter().filter(|source| {
        matches!(&*source.module, "compile" | "snapshot")
            || source.path.ends_with("exchange/attempt/machine.rs")
    });
    let others = ["inject", "traffic", "wire"].into_iter().flat_map(sources);
    for source in of_proxy.chain(others) {
        let shared = ["registry", "sync", "telemetry"].contains(&&*source.module);
        // state that is shared has locks, but no clock
        let forbidden = |word: &&&str| !shared || word.ends_with("::now");
        for (number, line) in code(&source.text) {
            let words = impure.iter().filter(forbidden);
            for word in words.filter(|word| line.contains(**word)) {
                let path = source.path.display();
                violations.insert(format!("{path}:{number}: {word}"));
            }
        }
    }
    report(violations);
}

#[test]
fn no_process_wide_mutable_state() {
    let global = Regex::new(
        r"^\s*(pub(\([a-z_: ]+\))? )?static (mut |.*(Mutex|RwLock|Atomic|Cell|ArcSwap))",
    )
    .unwrap();
    let mut violations = BTreeSet::new();
    // thread-local caches of immutable values
    let caches = ["resource/shared_text.rs", "re2/shared.rs"];
    let is_cache = |source: &Source| caches.iter().any(|cache| source.path.ends_with(cache));
    for source in PACKAGES
        .iter()
        .flat_map(|package| sources(package))
        .filter(|source| !is_cache(source))
    {
        for (number, line) in code(&source.text) {
            if global.is_match(line) {
                violations.insert(format!("{}:{number}: {line}", source.path.display()));
            }
        }
    }
    report(violations);
}

#[test]
fn every_file_has_docs_and_stays_short() {
    let mut violations = BTreeSet::new();
    for source in PACKAGES.iter().flat_map(|package| sources(package)) {
        let path = source.path.display();
        if !source.text.starts_with("//!") {
            violations.insert(format!("{path}: does not begin with //!"));
        }
        let lines = source.text.lines().count();
        if lines > FILE_LINES_MAX {
            violations.insert(format!("{path}: {lines} lines"));
        }
        if source.path.ends_with("mod.rs") {
            violations.insert(format!("{path}: modules are name.rs and name/"));
        }
    }
    report(violations);
}

/// Returns the names of the functions of a text, with their lines.
fn functions(text: &str) -> Vec<(String, usize)> {
    let begins = Regex::new(
        r#"^(\s*)(?:pub(?:\([\w: ]+\))? )?(?:(?:const|async|unsafe|extern(?: "[^"]*")?) )*fn (\w+)"#,
    )
    .unwrap();
    let lines: Vec<_> = text.lines().collect();
    let functions = lines.iter().enumerate().filter_map(|(start, line)| {
        let begin = begins.captures(line)?;
        // rustfmt closes a function at the indentation that it began at
        let end = format!("{}}}", &begin[1]);
        let body = lines[start..].iter().position(|line| *line == end);
        let one_line = line.ends_with(['}', ';']);
        let length = if one_line {
            1
        } else {
            body.map_or(1, |end| end + 1)
        };
        Some((begin[2].to_owned(), length))
    });
    functions.collect()
}

#[test]
fn functions_stay_short() {
    let mut violations = BTreeSet::new();
    for source in PACKAGES.iter().flat_map(|package| sources(package)) {
        for (name, length) in functions(&source.text) {
            if length > FUNCTION_LINES_MAX {
                let path = source.path.display();
                violations.insert(format!("{path}: {name} has {length} lines"));
            }
        }
    }
    report(violations);
}

#[test]
fn every_way_to_begin_a_function_counts() {
    for begin in [
        "fn f() {",
        "pub fn f() {",
        "pub(crate) fn f() {",
        "pub(in crate::compile) fn f() {",
        "pub(in crate::codec::http1) async fn f() {",
        "const fn f() {",
        "pub unsafe fn f() {",
        "unsafe extern \"C\" fn f() {",
        "pub extern fn f() {",
    ] {
        let text = format!("    {begin}\n        g();\n    }}\n");
        assert_eq!(functions(&text), [("f".to_owned(), 3)], "{begin}");
    }
}

#[test]
fn row_rule_allows_and_rejects_sample_imports() {
    for (user, used, expected) in [
        ("exchange", "compile", false),
        ("pool", "upstream", true),
        ("upstream", "pool", false),
        ("telemetry", "runtime", true),
        ("runtime", "telemetry", false),
        ("control", "admin", false),
        ("worker", "listener", true),
        ("app", "admin", true),
        ("admin", "app", false),
        ("codec", "unheard_of", false),
    ] {
        assert_eq!(allows(PROXY, user, used), expected, "{user} uses {used}");
    }
}
