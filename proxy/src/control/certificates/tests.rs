use std::fs;
use std::os::unix::fs::symlink;

use super::file::FILE_BYTES_MAX;
use super::*;
use crate::compile::certificates::Fields;
use crate::tls::ServerSettings;

fn text(path: &Path) -> Arc<str> {
    path.to_str().unwrap().into()
}

#[test]
fn unreadable_files_have_distinct_errors() {
    let directory = tempfile::tempdir().unwrap();
    let huge = directory.path().join("huge");
    fs::write(&huge, vec![b'a'; FILE_BYTES_MAX as usize + 1]).unwrap();
    let pipe = directory.path().join("pipe");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RWXU).unwrap();
    for (path, kind, words) in [
        (
            directory.path().join("lost"),
            ProblemKind::Missing,
            "no such file",
        ),
        (
            directory.path().to_owned(),
            ProblemKind::Unreadable,
            "not a file",
        ),
        (pipe, ProblemKind::Unreadable, "not a file"),
        (huge, ProblemKind::Unreadable, "more than 1048576 bytes"),
    ] {
        let problem = file(&text(&path)).unwrap_err();
        assert_eq!(problem.kind, kind, "{problem}");
        assert!(problem.text.contains(words), "{problem}");
    }
}

#[test]
fn directories_of_symlinks_and_their_targets_are_watched() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().canonicalize().unwrap();
    fs::create_dir(root.join("..data")).unwrap();
    fs::write(root.join("..data/tls.crt"), "").unwrap();
    symlink("..data/tls.crt", root.join("tls.crt")).unwrap();
    let settings = ServerSettings {
        identities: vec![IdentitySource::Files {
            chain: text(&root.join("tls.crt")),
            key: "here.key".into(),
        }],
        ..ServerSettings::default()
    };
    let one = Use {
        object: config_loader::ObjectRef::new(config_loader::Kind::Gateway, "a", "b"),
        file: "a.yaml".into(),
        fields: Fields::default(),
        hosts: Vec::new(),
        settings,
        mode: "SIMPLE",
    };
    let found: Vec<PathBuf> = directories(&Wanted::of(&[one], &[])).into_iter().collect();
    assert_eq!(
        found,
        [root.clone(), root.join("..data"), PathBuf::from(".")]
    );
}
