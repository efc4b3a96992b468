use super::*;

fn trie(keys: &[&str]) -> Trie {
    let mut builder = TrieBuilder::default();
    for (number, key) in keys.iter().enumerate() {
        builder.insert(key.as_bytes().into(), number as u32);
    }
    builder.build()
}

fn visited(trie: &Trie, text: &str) -> Vec<(u32, bool)> {
    let mut visited = Vec::new();
    trie.walk(text.as_bytes(), |number, whole| {
        visited.push((number, whole))
    });
    visited
}

#[test]
fn every_prefix_is_visited_shortest_first() {
    let trie = trie(&["/ab", "", "/a", "/abc", "/b", "/abd"]);
    assert_eq!(
        visited(&trie, "/abc"),
        [(1, false), (2, false), (0, false), (3, true)]
    );
    assert_eq!(visited(&trie, "/"), [(1, false)]);
    assert_eq!(visited(&trie, ""), [(1, true)]);
    assert_eq!(visited(&trie, "x"), [(1, false)]);
}

#[test]
fn an_empty_tree_visits_nothing() {
    assert_eq!(visited(&trie(&[]), "/a"), []);
}

#[test]
fn the_first_of_two_equal_keys_wins() {
    assert_eq!(visited(&trie(&["/a", "/a"]), "/a"), [(0, true)]);
}

#[test]
fn case_is_ignored_on_request() {
    let trie = trie(&["/ab", "/ac/d"]);
    let mut found = Vec::new();
    trie.walk_ignoring_case(b"/AC/D", |number, whole| found.push((number, whole)));
    trie.walk_ignoring_case(b"/aB!", |number, whole| found.push((number, whole)));
    assert_eq!(found, [(1, true), (0, false)]);
}

#[test]
fn long_chains_do_not_overflow_the_stack() {
    let keys: Vec<String> = (0..3_000).map(|length| "a".repeat(length)).collect();
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    let trie = trie(&keys);
    assert_eq!(visited(&trie, &"a".repeat(2_999)).len(), 3_000);
    assert_eq!(trie.labels.len(), 2_999);
}
