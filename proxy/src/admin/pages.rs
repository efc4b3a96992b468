//! List of pages, and the lookup of the page of a request.

use http::{Method, StatusCode};

use super::page::{Page, PageSet, get, post};
use super::reply::{Query, Reply};
use super::state::AdminState;
use super::{
    certs, clusters, config_dump, drain, events, explain, findings, health, home, listeners, live,
    logging, stats, tap, ui,
};

/// All pages, in the order in which `/` lists them.
pub(super) const PAGES: &[Page] = &[
    get("/", "the live page in a browser, else /pages", live_page),
    get("/pages", "this list", home),
    get(
        "/healthz/ready",
        "200 when traffic may come, else 503",
        health::ready,
    ),
    get(
        "/healthz/live",
        "200 while the process answers",
        health::live,
    ),
    get("/stats/prometheus", "metrics", stats::show),
    get(
        "/metrics",
        "the same, at the default path of scrapers",
        stats::show,
    ),
    get(
        "/config_dump",
        "the applied configuration, without secrets (JSON)",
        config_dump::show,
    ),
    get(
        "/clusters",
        "clusters and their endpoints (?format=json)",
        clusters::show,
    ),
    get(
        "/events",
        "changes of the health of endpoints: ejections, health checks, panic mode (?format=json)",
        events::show,
    ),
    get(
        "/certs",
        "certificates and their expiry, without keys (JSON)",
        certs::show,
    ),
    get(
        "/findings",
        "findings about the newest configuration, as `strait check` prints them (?format=json)",
        findings::show,
    ),
    get("/listeners", "listeners (?format=json)", listeners::show),
    get(
        "/explain",
        "how a request is routed, and why: ?url=http://host/path",
        explain::show,
    ),
    get(
        "/live",
        "what the live page shows, once per second: ?view=destination (server-sent events)",
        live::show,
    ),
    get(
        "/activity",
        "counts of requests by rule, destination and endpoint, from which `strait top` makes rates (JSON)",
        live::counts,
    ),
    get(
        "/tap",
        "finished requests as they end: ?all, ?host=shop.example&status=5xx (&format=json)",
        tap::show,
    ),
    get("/logging", "the level of the process log", logging::show),
    post(
        "/logging",
        "change the log level: ?level=debug, ?level=info,proxy::pool=trace",
        logging::set,
    ),
    post(
        "/drain",
        "drain: no new connections; in-flight requests finish (?announce: serve, and tell clients to go elsewhere)",
        drain::drain,
    ),
    post("/quitquitquit", "drain, then exit", drain::quit),
];

/// The live page, for a client that reads HTML.
fn live_page(state: &AdminState, query: Query<'_>) -> Reply {
    match query.accepts.html {
        true => ui::page(),
        false => home(state, query),
    }
}

fn home(state: &AdminState, _: Query<'_>) -> Reply {
    home::show(state, PAGES)
}

/// Responds to a request.
pub(super) fn answer(
    state: &AdminState,
    offer: PageSet,
    method: &Method,
    path: &str,
    query: Query<'_>,
) -> Reply {
    let offered = PAGES.iter().filter(|page| offer.has(page));
    let mut rows = offered.filter(|page| page.path == path).peekable();
    if rows.peek().is_none() {
        let asset = ui::find(path).filter(|_| offer == PageSet::All && *method == Method::GET);
        return asset.unwrap_or_else(|| not_found(offer, path));
    }
    let wanted = if method == Method::HEAD {
        &Method::GET
    } else {
        method
    };
    match rows.clone().find(|page| page.method == *wanted) {
        Some(page) => (page.answer)(state, query),
        None => {
            let methods: Vec<&str> = rows.map(|page| page.method.as_str()).collect();
            Reply::method_not_allowed(&methods.join(", "))
        }
    }
}

fn not_found(offer: PageSet, path: &str) -> Reply {
    let mut body = format!("no page {path}; there are:\n");
    for page in PAGES.iter().filter(|page| offer.has(page)) {
        body.push_str(&format!(
            "  {:4} {:18} {}\n",
            page.method.as_str(),
            page.path,
            page.help
        ));
    }
    Reply::text(StatusCode::NOT_FOUND, body)
}
