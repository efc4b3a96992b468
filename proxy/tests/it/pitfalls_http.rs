//! Common pitfalls of VirtualService, on live sockets: each case is one rule and its effect on requests, compared with
//! Istio's behavior.

mod answers;
mod edits;
mod hosts;
mod matching;
mod merging;
mod weights;

use hyper::{HeaderMap, Request, Response};

use crate::support::client::{Client, Front};
use crate::support::mesh::{documents, gateway, routes, service, subsets};
use crate::support::origin::{Back, Origin, empty, full};
use crate::support::proxy::{Proxy, Start};

/// Starts an origin that answers with its name, the path and host of the request, and every value of the header `x`, in
/// order.
fn echo(name: &'static str) -> Origin {
    Origin::start(Back::H1, move |request| async move {
        let lines = |headers: &HeaderMap| {
            let lines = headers.get_all("x").iter();
            let lines: Vec<_> = lines
                .map(|line| line.to_str().unwrap().to_owned())
                .collect();
            lines.join("+")
        };
        let host = request.headers()["host"].to_str().unwrap();
        let mut text = format!("{name} {} {host}", request.uri());
        let lines = lines(request.headers());
        if !lines.is_empty() {
            text.push_str(&format!(" x={lines}"));
        }
        Response::new(full(text))
    })
}

/// Resources and their origins: `one.test` and `two.test`, each with a subset of the same name, and `empty.test`
/// without endpoints.
struct World {
    one: Origin,
    two: Origin,
}

impl World {
    fn new() -> Self {
        Self {
            one: echo("one"),
            two: echo("two"),
        }
    }

    fn services(&self) -> String {
        documents([
            service("one", Back::H1, &[(self.one.address, "one")]),
            subsets("one", &["one"]),
            service("two", Back::H1, &[(self.two.address, "two")]),
            service("empty", Back::H1, &[]),
        ])
    }

    /// Starts a proxy with a Gateway for every host, and these additional documents.
    fn proxy(&self, resources: &[String]) -> Proxy {
        let start = Start::new();
        let text = documents([&[gateway(&[start.edge()]), self.services()], resources].concat());
        start.file("mesh.yaml", text).start()
    }

    /// Sends each request of a rule with a host of its own, and compares the outcomes. Every `HOST` is replaced by the
    /// host.
    async fn check(&self, cases: &[(&str, &[(&str, &str)])]) {
        self.check_made(cases).await;
    }

    /// Checks generated cases like [`Self::check`].
    async fn check_made<'a>(&self, cases: &[(impl AsRef<str>, impl AsRef<[(&'a str, &'a str)]>)]) {
        let host = |case: usize| format!("t{case}.test");
        let rules = cases.iter().enumerate().map(|(case, (rules, _))| {
            let name = format!("t{case}");
            routes(&name, &format!("[{}]", host(case)), rules.as_ref())
        });
        let proxy = self.proxy(&rules.collect::<Vec<_>>());
        for (case, (rules, asked)) in cases.iter().enumerate() {
            let rules = rules.as_ref();
            for (request, expected) in asked.as_ref() {
                let request = request.replace("HOST", &host(case));
                let expected = expected.replace("HOST", &host(case));
                let outcome = ask(&proxy, &request).await;
                assert_eq!(outcome, expected, "{request} by\n{rules}");
            }
        }
    }
}

/// Returns a rule to `one.test` with these additional lines.
fn to_one(lines: &str) -> String {
    let lines = lines.replace('\n', "\n  ");
    format!("- {lines}\n  route: [{{destination: {{host: one.test}}}}]")
}

/// Sends `METHOD HOST/PATH | name: value | ...` (GET by default) and returns the status, and the body or `location`.
async fn ask(proxy: &Proxy, request: &str) -> String {
    let mut parts = request.split('|').map(str::trim);
    let target = parts.next().unwrap();
    let (method, target) = target.split_once(' ').unwrap_or(("GET", target));
    let mut built = Request::builder()
        .method(method)
        .uri(format!("http://{target}"));
    for header in parts {
        let (name, value) = header.split_once(':').unwrap();
        built = built.header(name.trim(), value.trim());
    }
    let mut client = Client::connect(Front::H1, proxy.edge).await;
    let answer = client.call(built.body(empty()).unwrap()).await;
    let location = answer.header("location").unwrap_or_default();
    let text = format!("{} {location}{}", answer.status, answer.text());
    text.trim_end().to_owned()
}
