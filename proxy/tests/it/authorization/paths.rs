//! Paths that policies compare, and attempts to get around them.

use super::{Edge, of, table, to};

/// Targets, and statuses where the path `/admin` is denied.
pub(super) const ADMIN_PATHS: [(&str, u16); 26] = [
    ("/admin", 403),
    ("/admin/", 200),
    ("//admin", 200),
    ("/ADMIN", 200),
    ("/admin?x", 403),
    ("/admin?", 403),
    ("/x/../admin", 403),
    ("/./admin", 403),
    ("/x/%2e%2e/admin", 403),
    ("/x/.%2E/admin", 403),
    ("/%61dmin", 403),
    ("/%2561dmin", 200),
    ("/x\\..\\admin", 403),
    ("\\admin", 400),
    ("/x/..;/admin", 400),
    ("/admin;v=1", 200),
    ("/x/..%2fadmin", 200),
    ("/%2Fadmin", 200),
    ("/admin%00", 400),
    ("/admin#f", 400),
    ("http://evil.example/admin", 403),
    ("/admin%3fa=b", 200),
    ("/admin%20", 200),
    ("/admin..", 200),
    ("POST /admin", 403),
    ("OPTIONS *", 200),
];

pub(super) fn deny_admin() -> String {
    of("DENY", &to("paths: [/admin]"))
}

#[test]
fn denied_path_is_denied_in_every_spelling_that_reaches_it() {
    let edge = Edge::start(&[]);
    table(&edge, &[(deny_admin(), &ADMIN_PATHS)]);
}

#[test]
fn allowed_paths_admit_no_others() {
    let edge = Edge::start(&[]);
    let allow = |paths: &str| of("ALLOW", &to(&format!("paths: [{paths}]")));
    let rows: [(String, &[(&str, u16)]); 9] = [
        (
            allow("/a/*"),
            &[("/a/b", 200), ("/a/../b", 403), ("/a", 403)],
        ),
        (
            allow("/a*"),
            &[
                ("/a", 200),
                ("/ab", 200),
                ("/a/..", 403),
                ("/a/%2e%2e/secret", 403),
            ],
        ),
        (
            allow("'*.txt'"),
            &[
                ("/x.txt", 200),
                ("/x.txtx", 403),
                ("/secret/x.txt", 200),
                ("/secret?x=.txt", 403),
            ],
        ),
        (
            allow("'/c/{**}'"),
            &[("/c", 403), ("/c/", 200), ("/c/a//b", 200), ("/cx", 403)],
        ),
        (
            allow("'/a/{*}/b'"),
            &[
                ("/a/x/b", 200),
                ("/a//b", 403),
                ("/a/x/y/b", 403),
                ("/a/%2F/b", 200),
            ],
        ),
        (
            allow("'/f/{**}/'"),
            &[("/f/", 403), ("/f//", 200), ("/f/a/", 200), ("/f/a", 403)],
        ),
        (allow("/a%20b"), &[("/a%20b", 200), ("/ab", 403)]),
        (allow("/%61bc"), &[("/abc", 403), ("/%61bc", 403)]),
        (allow("/*"), &[("/", 200), ("OPTIONS *", 403)]),
    ];
    table(&edge, &rows);
    let any = [(allow("'*'"), &[("/", 200), ("OPTIONS *", 403)][..])];
    table(&edge, &any);
    let not_public = of("DENY", &to("notPaths: [/public*]"));
    let rows: [(String, &[(&str, u16)]); 1] =
        [(not_public, &[("/public/a", 200), ("/public/../admin", 403)])];
    table(&edge, &rows);
}
