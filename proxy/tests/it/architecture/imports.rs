//! Which files of a crate import which, with every name followed through re-exports to the file that defines it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use regex::Regex;

/// Re-exports of re-exports that are followed.
const REEXPORTS_MAX: usize = 16;

/// Segments of a path from the root of the crate; a file is the module that it defines.
type ModulePath = Vec<String>;

/// The arrows between the files of one crate.
pub struct Imports {
    /// The files, and for each the files that it imports from, with the names.
    arrows: BTreeMap<ModulePath, BTreeMap<ModulePath, BTreeSet<String>>>,
}

/// A file while its imports are resolved.
struct File<'a> {
    tokens: Vec<&'a str>,
    /// What `use` brings into the file, with the path as it is written, from the root of the crate.
    names: BTreeMap<String, Name>,
}

struct Name {
    path: ModulePath,
    is_reexport: bool,
}

impl Imports {
    /// Reads files by module path (`a::b`, empty for the root of the crate), with their texts.
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

    /// The rings, each with its files in alphabetical order: the strongly connected components of two files or more.
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

    /// What a file imports from the others of a ring, one line for each.
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

    /// Every import of a file from another: the importer, the file that defines the name.
    pub fn arrows(&self) -> impl Iterator<Item = (&[String], &[String])> {
        let arrows = self.arrows.iter();
        arrows.flat_map(|(from, to)| to.keys().map(|to| (&**from, &**to)))
    }

    /// Arrows between the modules of each folder, each module with everything below it.
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

    /// The files that a file imports from, directly or through others.
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

/// Identifiers, `::` and every other character of a text; comments and literals of text are left out.
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

/// The tokens without items that are compiled for tests only.
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

/// The child modules that tokens declare in files of their own.
fn declared_modules<'a>(tokens: &[&'a str]) -> Vec<&'a str> {
    let declarations = tokens.windows(3).filter_map(|window| match window {
        ["mod", name, ";"] => Some(*name),
        _ => None,
    });
    declarations.collect()
}

/// The number of tokens of the attribute that tokens begin with.
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

/// The number of tokens of the item that tokens begin with: to `;`, or to the end of its braces.
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

/// A part of a file outside of visibilities.
enum Part<'t, 'a> {
    /// A `use` item without the word `use`; whether it is a re-export.
    Use(&'t [&'a str], bool),
    /// A path in code, or a single identifier.
    Path(Vec<&'a str>),
}

/// Calls a function with every part of a file, and with the module that it is in: the file's, or one in braces.
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

/// The names that the `use` items of a file bring in from its own crate.
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

/// The paths of a `use` tree, each with the name that it brings in.
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

/// The parts of a group between commas that are not in a group of their own.
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

/// A path as it is written in a module, from the root of the crate; `None` for what another crate or the file defines.
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

/// The paths that a file uses: what it imports and does not only export again, and the paths in its code.
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

/// The file that defines what a path names, and the rest of the path within it; the rest of a module is empty.
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
