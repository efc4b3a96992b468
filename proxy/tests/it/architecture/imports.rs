//! Imports between the files of a crate; each name is followed through re-exports to the file that defines it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use regex::Regex;

/// Maximum number of chained re-exports that are followed.
const REEXPORTS_MAX: usize = 16;

/// Path segments from the root of the crate; a file is identified by the module that it defines.
type ModulePath = Vec<String>;

/// Imports between the files of one crate.
pub struct Imports {
    /// Imported names by importing file and defining file.
    arrows: BTreeMap<ModulePath, BTreeMap<ModulePath, BTreeSet<String>>>,
}

/// Source file during import resolution.
struct File<'a> {
    tokens: Vec<&'a str>,
    /// Names that `use` items bring into the file, with their paths as written, from the root of the crate.
    names: BTreeMap<String, Name>,
}

struct Name {
    path: ModulePath,
    is_reexport: bool,
}

impl Imports {
    /// Parses files by module path (`a::b`, empty for the root of the crate).
    pub fn of<'a>(files: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let mut crate_files: BTreeMap<ModulePath, File<'_>> = BTreeMap::new();
        let mut of_tests = Vec::new();
        for (module, text) in files {
            let path = module.split("::").filter(|segment| !segment.is_empty());
            let path: ModulePath = path.map(str::to_owned).collect();
            let all = tokens(text);
            let kept = without_tests(&all);
            let declared = declared_modules(&kept);
            let left_out = declared_modules(&all).into_iter();
            let left_out = left_out.filter(|child| !declared.contains(child));
            of_tests.extend(left_out.map(|child| [&*path, &[child.to_owned()]].concat()));
            let names = BTreeMap::new();
            crate_files.insert(
                path,
                File {
                    tokens: kept,
                    names,
                },
            );
        }
        crate_files.retain(|path, _| !of_tests.iter().any(|tests| path.starts_with(tests)));
        let modules: BTreeSet<_> = crate_files.keys().cloned().collect();
        for (module, file) in &mut crate_files {
            file.names = imported_names(module, &file.tokens, &modules);
        }
        let arrows = crate_files.iter().map(|(module, file)| {
            let mut to: BTreeMap<ModulePath, BTreeSet<String>> = BTreeMap::new();
            for path in used_paths(module, file, &modules) {
                let (defined_in, name) = definition(path, &crate_files);
                if let Some(name) = name.into_iter().next()
                    && defined_in != *module
                {
                    to.entry(defined_in).or_default().insert(name);
                }
            }
            (module.clone(), to)
        });
        let arrows = arrows.collect();
        Self { arrows }
    }

    /// Returns the import cycles: strongly connected components of two files or more, each in alphabetical order.
    pub fn rings(&self) -> Vec<Vec<String>> {
        let reached: BTreeMap<_, _> = self
            .arrows
            .keys()
            .map(|from| (from, self.reached(from)))
            .collect();
        let mut rings = Vec::new();
        let mut seen = BTreeSet::new();
        for (&from, to) in &reached {
            let ring: Vec<_> = to
                .iter()
                .filter(|other| reached[*other].contains(from))
                .collect();
            if ring.len() > 1 && seen.insert(ring.clone()) {
                rings.push(ring.into_iter().map(|module| module.join("::")).collect());
            }
        }
        rings
    }

    /// Returns the imports between the files of a cycle, one line per pair of files.
    pub fn arrows_within(&self, ring: &[String]) -> Vec<String> {
        let mut lines = Vec::new();
        for (from, to) in &self.arrows {
            let from = from.join("::");
            for (to, names) in to {
                let to = to.join("::");
                if ring.contains(&from) && ring.contains(&to) {
                    let names: Vec<_> = names.iter().map(String::as_str).collect();
                    lines.push(format!("{from} -> {to}: {}", names.join(", ")));
                }
            }
        }
        lines
    }

    /// Returns all imports as pairs of the importing and the defining file.
    pub fn arrows(&self) -> impl Iterator<Item = (&[String], &[String])> {
        let arrows = self.arrows.iter();
        arrows.flat_map(|(from, to)| to.keys().map(|to| (&**from, &**to)))
    }

    /// Returns the imports between sibling modules of each folder, where a module includes everything below it.
    pub fn between_siblings(&self) -> Self {
        let mut arrows: BTreeMap<ModulePath, BTreeMap<ModulePath, BTreeSet<String>>> =
            BTreeMap::new();
        for (from, to) in &self.arrows {
            for (to, names) in to {
                let shared = from
                    .iter()
                    .zip(to)
                    .take_while(|(one, other)| one == other)
                    .count();
                let (Some(from), Some(to)) = (from.get(..=shared), to.get(..=shared)) else {
                    continue; // a module and its folder
                };
                arrows.entry(to.to_vec()).or_default();
                let names = names.iter().cloned();
                let to = arrows
                    .entry(from.to_vec())
                    .or_default()
                    .entry(to.to_vec())
                    .or_default();
                to.extend(names);
            }
        }
        Self { arrows }
    }

    /// Returns the files that a file imports from, directly or indirectly.
    fn reached(&self, from: &ModulePath) -> BTreeSet<&ModulePath> {
        let mut reached = BTreeSet::new();
        let mut open = vec![from];
        while let Some(next) = open.pop() {
            for to in self.arrows[next].keys() {
                if reached.insert(to) {
                    open.push(to);
                }
            }
        }
        reached
    }
}

/// Splits source text into identifiers, `::` and other characters; skips comments and string literals.
fn tokens(text: &str) -> Vec<&str> {
    static TOKEN: LazyLock<Regex> = LazyLock::new(|| {
        let skipped = [
            r"//[^\n]*",
            r"/\*(?s:.*?)\*/",
            r###"\bb?r##"(?s:.*?)"##"###,
            r##"\bb?r#"(?s:.*?)"#"##,
            r#"\bb?r"[^"]*""#,
            r#""(?:\\(?s:.)|[^"\\])*""#,
            r"'(?:\\.[^']*|[^\\'])'",
        ];
        Regex::new(&format!(r"{}|(::|\w+|\S)", skipped.join("|"))).unwrap()
    });
    let found = TOKEN.captures_iter(text);
    found
        .filter_map(|found| Some(found.get(1)?.as_str()))
        .collect()
}

/// Removes items that are compiled for tests only.
fn without_tests<'a>(tokens: &[&'a str]) -> Vec<&'a str> {
    let mut kept = Vec::with_capacity(tokens.len());
    let mut at = 0;
    while at < tokens.len() {
        let Some(end) = attribute_end(&tokens[at..]) else {
            kept.push(tokens[at]);
            at += 1;
            continue;
        };
        let attribute = &tokens[at..at + end];
        at += end;
        let of_tests = attribute.get(2) == Some(&"cfg") && attribute.contains(&"test");
        if of_tests && !attribute.contains(&"not") {
            while let Some(end) = attribute_end(&tokens[at..]) {
                at += end;
            }
            at += item_end(&tokens[at..]);
        }
    }
    kept
}

/// Returns the child modules that are declared in files of their own.
fn declared_modules<'a>(tokens: &[&'a str]) -> Vec<&'a str> {
    let declarations = tokens.windows(3).filter_map(|window| match window {
        ["mod", name, ";"] => Some(*name),
        _ => None,
    });
    declarations.collect()
}

/// Returns the length in tokens of the attribute at the start; `None` if there is none.
fn attribute_end(tokens: &[&str]) -> Option<usize> {
    if !tokens.starts_with(&["#", "["]) {
        return None;
    }
    let mut depth = 0_usize;
    for (index, token) in tokens.iter().enumerate() {
        match *token {
            "[" => depth += 1,
            "]" if depth == 1 => return Some(index + 1),
            "]" => depth -= 1,
            _ => {}
        }
    }
    None
}

/// Returns the length in tokens of the item at the start: up to `;`, or to its closing brace.
fn item_end(tokens: &[&str]) -> usize {
    let mut depth = 0_usize;
    for (index, token) in tokens.iter().enumerate() {
        match *token {
            "{" | "(" | "[" => depth += 1,
            "}" if depth == 1 => return index + 1,
            "}" | ")" | "]" => depth = depth.saturating_sub(1),
            ";" if depth == 0 => return index + 1,
            _ => {}
        }
    }
    tokens.len()
}

/// Part of a file; visibility modifiers are skipped.
enum Part<'t, 'a> {
    /// `use` item without the word `use`, and whether it is a re-export.
    Use(&'t [&'a str], bool),
    /// Path in code, or a single identifier.
    Path(Vec<&'a str>),
}

/// Calls a function with every part of a file and its module: that of the file, or an inline module.
fn visit<'t, 'a>(
    module: &ModulePath,
    tokens: &'t [&'a str],
    mut visit: impl FnMut(&ModulePath, Part<'t, 'a>),
) {
    let mut here = module.clone();
    let mut depth = 0_usize;
    let mut inline_depths = Vec::new();
    let mut is_public = false;
    let mut at = 0;
    while at < tokens.len() {
        let was_public = std::mem::take(&mut is_public);
        match &tokens[at..] {
            ["pub", "(", rest @ ..] => {
                let end = rest.iter().position(|token| *token == ")").unwrap();
                is_public = true;
                at += end + 2;
            }
            ["pub", ..] => is_public = true,
            ["mod", _, ";", ..] => at += 1,
            ["mod", name, "{", ..] => {
                here.push((*name).to_owned());
                depth += 1;
                inline_depths.push(depth);
                at += 2;
            }
            ["{", ..] => depth += 1,
            ["}", ..] => {
                if inline_depths.last() == Some(&depth) {
                    inline_depths.pop();
                    here.pop();
                }
                depth = depth.saturating_sub(1);
            }
            // a field or a method
            [".", name, ..] if is_identifier(name) => at += 1,
            // `use<'a>` is a bound, not an import
            ["use", first, rest @ ..] if *first != "<" => {
                let end = rest.iter().position(|token| *token == ";").unwrap() + 1;
                visit(&here, Part::Use(&tokens[at + 1..=at + end], was_public));
                at += end + 1;
            }
            [first, ..] if is_identifier(first) => {
                let mut path = vec![*first];
                while let ["::", next, ..] = &tokens[at + 1..]
                    && is_identifier(next)
                {
                    path.push(next);
                    at += 2;
                }
                visit(&here, Part::Path(path));
            }
            _ => {}
        }
        at += 1;
    }
}

fn is_identifier(token: &str) -> bool {
    token.starts_with(|first: char| first.is_alphanumeric() || first == '_')
}

/// Returns the names that the `use` items of a file import from its own crate.
fn imported_names(
    module: &ModulePath,
    tokens: &[&str],
    modules: &BTreeSet<ModulePath>,
) -> BTreeMap<String, Name> {
    let mut names = BTreeMap::new();
    visit(module, tokens, |here, part| {
        let Part::Use(tree, is_reexport) = part else {
            return;
        };
        for (path, alias) in leaves(tree, &[]) {
            let last = path.last().copied().unwrap_or_default();
            assert_ne!(last, "*", "{}: `*` is for tests", module.join("::"));
            if let Some(path) = absolute(here, &path, modules, &names) {
                names.insert(alias.to_owned(), Name { path, is_reexport });
            }
        }
    });
    names
}

/// Returns the paths of a `use` tree, each with the imported name.
fn leaves<'a>(tree: &[&'a str], prefix: &[&'a str]) -> Vec<(Vec<&'a str>, &'a str)> {
    let mut path = prefix.to_vec();
    let mut alias = None;
    for (index, token) in tree.iter().enumerate() {
        match *token {
            "::" | ";" => {}
            "as" => alias = Some(tree[index + 1]),
            "{" => {
                let group = &tree[index + 1..index + item_end(&tree[index..]) - 1];
                let branches = branches(group);
                return branches.flat_map(|branch| leaves(branch, &path)).collect();
            }
            _ if alias.is_some() => {}
            name => path.push(name),
        }
    }
    if path.len() > 1 && path.last() == Some(&"self") {
        path.pop();
    }
    let last = path[path.len() - 1];
    vec![(path, alias.unwrap_or(last))]
}

/// Splits a group at its top-level commas.
fn branches<'t, 'a>(group: &'t [&'a str]) -> impl Iterator<Item = &'t [&'a str]> {
    let mut depth = 0_usize;
    let branches = group.split(move |token| {
        match *token {
            "{" => depth += 1,
            "}" => depth -= 1,
            _ => {}
        }
        *token == "," && depth == 0
    });
    branches.filter(|branch| !branch.is_empty())
}

/// Converts a path as written in a module to a path from the root of the crate; `None` if another crate or the file
/// itself defines it.
fn absolute(
    here: &ModulePath,
    path: &[&str],
    modules: &BTreeSet<ModulePath>,
    names: &BTreeMap<String, Name>,
) -> Option<ModulePath> {
    let (first, mut rest) = path.split_first()?;
    let mut from = match *first {
        "crate" => Vec::new(),
        "self" => here.clone(),
        "super" => here[..here.len().checked_sub(1)?].to_vec(),
        name => {
            let child = || [&**here, &[name.to_owned()]].concat();
            match names.get(name) {
                Some(imported) => imported.path.clone(),
                None if !rest.is_empty() && modules.contains(&child()) => child(),
                None => return None,
            }
        }
    };
    while let ["super", after @ ..] = rest {
        from.pop();
        rest = after;
    }
    from.extend(rest.iter().map(|segment| (*segment).to_owned()));
    Some(from)
}

/// Returns the paths that a file uses: imports that are not only re-exported, and paths in code.
fn used_paths(
    module: &ModulePath,
    file: &File<'_>,
    modules: &BTreeSet<ModulePath>,
) -> BTreeSet<ModulePath> {
    let imported = file.names.values().filter(|name| !name.is_reexport);
    let mut paths: BTreeSet<_> = imported.map(|name| name.path.clone()).collect();
    visit(module, &file.tokens, |here, part| {
        if let Part::Path(path) = part {
            paths.extend(absolute(here, &path, modules, &file.names));
        }
    });
    paths
}

/// Returns the file that defines a path, and the rest of the path within that file; empty for a module.
fn definition(
    mut path: ModulePath,
    files: &BTreeMap<ModulePath, File<'_>>,
) -> (ModulePath, ModulePath) {
    for _ in 0..REEXPORTS_MAX {
        let is_file = |length: &usize| files.contains_key(&path[..*length]);
        let length = (0..=path.len()).take_while(|length| *length == 0 || is_file(length));
        let rest = path.split_off(length.last().unwrap_or(0));
        let imported = rest
            .first()
            .and_then(|first| files.get(&path)?.names.get(first));
        let Some(imported) = imported else {
            return (path, rest);
        };
        path.clone_from(&imported.path);
        path.extend_from_slice(&rest[1..]);
    }
    panic!("more than {REEXPORTS_MAX} re-exports: {}", path.join("::"));
}
