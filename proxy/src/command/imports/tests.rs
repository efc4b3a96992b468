//! Arguments of `strait imports`.

use super::*;

#[test]
fn from_arguments_are_clusters_with_paths() {
    let read = |text: &str| source(text).map(|(key, path)| (key, path.display().to_string()));
    let c1 = || "default/default/default/c1".to_owned();
    assert_eq!(read("c1=./a"), Ok((c1(), "./a".to_owned())));
    assert_eq!(read("c1=/x=y/z"), Ok((c1(), "/x=y/z".to_owned())));
    let full = Ok(("eu/a/prod/c1".to_owned(), "a".to_owned()));
    assert_eq!(read("eu/a/prod/c1=a"), full);
    for wrong in ["", "c1", "c1=", "=a", "a/b=c"] {
        assert!(read(wrong).is_err(), "{wrong:?}");
    }
}
