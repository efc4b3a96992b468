//! The behaviours of VirtualService that people trip over, on live sockets: each case is one rule and what it makes of
//! requests, held against what Istio's users know.

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

/// An origin that tells its name, the path and host that it was asked for, and every line of `x`, in order.
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

/// Resources and the origins that they lead to: `one.test` and `two.test`, each with a subset of its name, and
/// `empty.test` without endpoints.
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

    /// A proxy with a Gateway for every host, and these further documents.
    fn proxy(&self, resources: &[String]) -> Proxy {
        let start = Start::new();
        let text = documents([&[gateway(&[start.edge()]), self.services()], resources].concat());
        start.file("mesh.yaml", text).start()
    }

    /// Asks each request of a rule of its own host, and compares the outcomes. Every `HOST` represents the host.
    async fn check(&self, cases: &[(&str, &[(&str, &str)])]) {
        self.check_made(cases).await;
    }

    /// As [`Self::check`], of cases that were made by a program.
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

/// A rule in front of which these lines stand, and which leads to `one.test`.
fn to_one(lines: &str) -> String {
    let lines = lines.replace('\n', "\n  ");
    format!("- {lines}\n  route: [{{destination: {{host: one.test}}}}]")
}

/// Sends `METHOD HOST/PATH | name: value | ...` (GET unless said) and tells status, and body or `location`.
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
