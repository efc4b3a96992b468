use super::*;

fn none() -> Redirect {
    Redirect {
        scheme: None,
        ..Redirect::https()
    }
}

/// The location for an http request on a listener with port 8080.
fn location(redirect: &Redirect, authority: &str, target: &str) -> String {
    location_from(redirect, "http", authority, target)
}

fn location_from(redirect: &Redirect, scheme: &str, authority: &str, target: &str) -> String {
    let (path, query) = match target.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (target, None),
    };
    let request = RedirectRequest {
        scheme,
        authority,
        path,
        query,
        listener_port: 8080,
    };
    redirect
        .location(&request)
        .unwrap()
        .to_str()
        .unwrap()
        .to_owned()
}

#[test]
fn uri_replaces_the_whole_path_and_keeps_the_query() {
    let to = |path: &str| Redirect {
        path: PathChange::Whole(path.into()),
        ..none()
    };
    assert_eq!(
        location(&to("/new"), "a.com", "/old/deep?q=1"),
        "http://a.com/new?q=1"
    );
    assert_eq!(
        location(&to("/new?own=1"), "a.com", "/old?q=1"),
        "http://a.com/new?own=1"
    );
    assert_eq!(
        location(&to(".evil.com"), "a.com", "/old"),
        "http://a.com/.evil.com"
    );
}

#[test]
fn prefix_rewrite_replaces_the_matched_prefix() {
    let redirect = |matched| Redirect {
        path: Redirect::prefix_rewrite(matched, "/new"),
        ..none()
    };
    let prefix = redirect(MatchedUri::Prefix("/old".len()));
    assert_eq!(
        location(&prefix, "a.com", "/old/deep?q=1"),
        "http://a.com/new/deep?q=1"
    );
    let whole = redirect(MatchedUri::Whole);
    assert_eq!(location(&whole, "a.com", "/old/deep"), "http://a.com/new");
}

#[test]
fn authority_replaces_the_host_with_its_port() {
    let to = |authority: &str, port| Redirect {
        authority: Some(authority.into()),
        port,
        ..none()
    };
    let unset = RedirectPort::Unset;
    assert_eq!(
        location(&to("b.com", unset), "a.com:81", "/p?q"),
        "http://b.com/p?q"
    );
    assert_eq!(
        location(&to("b.com:82", unset), "a.com:81", "/"),
        "http://b.com:82/"
    );
    assert_eq!(
        location(&to("b.com:82", RedirectPort::Fixed(83)), "a.com", "/"),
        "http://b.com:83/"
    );
}

#[test]
fn default_port_of_the_old_scheme_is_removed() {
    for (host, expected) in [
        ("a.com", "https://a.com/p"),
        ("a.com:80", "https://a.com/p"),
        ("a.com:8080", "https://a.com:8080/p"),
        ("[::1]:80", "https://[::1]/p"),
        ("[::1]", "https://[::1]/p"),
    ] {
        assert_eq!(location(&Redirect::https(), host, "/p"), expected, "{host}");
    }
    let to_http = Redirect {
        scheme: Some(Scheme::Http),
        ..none()
    };
    assert_eq!(
        location_from(&to_http, "https", "a.com:443", "/"),
        "http://a.com/"
    );
    assert_eq!(
        location_from(&to_http, "https", "a.com:80", "/"),
        "http://a.com:80/"
    );
    assert_eq!(
        location_from(&to_http, "http", "a.com:80", "/"),
        "http://a.com:80/"
    );
}

#[test]
fn new_port_replaces_the_old_one_and_default_ports_are_omitted() {
    let with = |scheme, port| Redirect {
        scheme,
        port,
        ..none()
    };
    let https = Some(Scheme::Https);
    for (redirect, host, expected) in [
        (
            with(https, RedirectPort::Fixed(443)),
            "a.com",
            "https://a.com/",
        ),
        (
            with(https, RedirectPort::Fixed(443)),
            "a.com:8080",
            "https://a.com/",
        ),
        (
            with(https, RedirectPort::Fixed(8443)),
            "a.com:8080",
            "https://a.com:8443/",
        ),
        (
            with(None, RedirectPort::Fixed(80)),
            "a.com:8080",
            "http://a.com/",
        ),
        (
            with(None, RedirectPort::Fixed(443)),
            "a.com",
            "http://a.com:443/",
        ),
        (
            with(None, RedirectPort::FromRequest),
            "a.com",
            "http://a.com:8080/",
        ),
        (
            with(https, RedirectPort::FromRequest),
            "a.com:1",
            "https://a.com:8080/",
        ),
    ] {
        assert_eq!(
            location(&redirect, host, "/"),
            expected,
            "{redirect:?} {host}"
        );
    }
}

#[test]
fn path_and_query_are_kept_by_default() {
    assert_eq!(
        location(&none(), "a.com", "/a//b?q=%20"),
        "http://a.com/a//b?q=%20"
    );
    assert_eq!(location(&none(), "a.com", "/a?"), "http://a.com/a?");
    assert_eq!(Redirect::https().code, StatusCode::MOVED_PERMANENTLY);
}

#[test]
fn an_authority_invalid_in_a_header_gives_no_location() {
    let request = RedirectRequest {
        scheme: "http",
        authority: "a\n",
        path: "/",
        query: None,
        listener_port: 80,
    };
    assert_eq!(none().location(&request), None);
}
