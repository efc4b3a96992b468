//! Faults and CORS of a rule in words, and their effect on a request.

use http::Request;

use super::answer::{Action, Outcome};
use super::duration::duration;
use traffic::filter::cors::{Listed, OriginHost, OriginMatch, WebOrigin};
use traffic::filter::fault::Share;
use traffic::filter::{Cors, CorsVerdict, Early, Fault, Preflights};

/// Writes both into `action`, and returns the outcome of the request if they respond to it.
pub(super) fn of(early: &Early, action: &mut Action, request: &Request<()>) -> Option<Outcome> {
    (action.faults, action.cors) = words(early);
    let abort = early.fault.and_then(|fault| fault.abort);
    if let Some((abort, _)) = abort.filter(|(_, share)| share.is_all()) {
        let status = abort.status.as_u16();
        return Some(Outcome::DirectResponse { status });
    }
    let cors = early.cors.as_ref()?;
    let (verdict, outcome) = match cors.judge(request.method(), request.headers()) {
        CorsVerdict::Answer(_) => (
            "this request is a preflight; the proxy answers it",
            Some(Outcome::DirectResponse { status: 200 }),
        ),
        CorsVerdict::Share(_) => ("the response allows the request's origin", None),
        CorsVerdict::Pass => return None,
    };
    action.cors.push(verdict.to_owned());
    outcome
}

/// Describes the faults and the CORS policy, one line each.
pub fn words(early: &Early) -> (Vec<String>, Vec<String>) {
    let faults = early.fault.as_ref().map_or_else(Vec::new, faults);
    let cors = early.cors.as_ref().map_or_else(Vec::new, cors);
    (faults, cors)
}

fn faults(fault: &Fault) -> Vec<String> {
    let delay = fault
        .delay
        .map(|(time, share)| format!("delay of {} for {}", duration(time), requests(share)));
    let abort = fault.abort.map(|(abort, share)| {
        let with = match abort.grpc {
            Some(status) => format!("gRPC status {status}"),
            None => abort.status.as_u16().to_string(),
        };
        format!("abort with {with} for {}", requests(share))
    });
    delay.into_iter().chain(abort).collect()
}

fn requests(share: Share) -> String {
    format!("{}% of requests", share.percent())
}

fn cors(cors: &Cors) -> Vec<String> {
    let origins: Vec<String> = cors.origins.iter().map(origin).collect();
    let mut lines = vec![if origins.is_empty() {
        "allows no origin".to_owned()
    } else {
        format!("allows {}", origins.join(", "))
    }];
    for (what, listed) in [("methods", &cors.methods), ("headers", &cors.headers)] {
        match listed {
            Listed::Nothing => (),
            Listed::Requested => lines.push(format!("{what}: any that the preflight requests")),
            Listed::These(names) => lines.push(format!("{what}: {}", lossy(names))),
        }
    }
    match &cors.expose {
        Listed::Nothing => (),
        Listed::Requested => lines.push("exposes the headers of each response".to_owned()),
        Listed::These(names) => lines.push(format!("exposes {}", lossy(names))),
    }
    if let Some(age) = &cors.max_age {
        lines.push(format!("clients may cache preflights for {} s", lossy(age)));
    }
    if cors.credentials {
        lines.push("allows credentials".to_owned());
    }
    if cors.preflights != Preflights::ForwardUnmatched {
        lines.push("also answers preflights of origins that are not allowed".to_owned());
    }
    lines
}

fn origin(wanted: &OriginMatch) -> String {
    match wanted {
        OriginMatch::Any => "every origin".to_owned(),
        OriginMatch::Exact(value) => value.to_string(),
        OriginMatch::Prefix(value) => format!("{value}..."),
        OriginMatch::Web(origin) => web_origin(origin),
        OriginMatch::Regex(regex) => {
            format!("origins that match {}", regex.written())
        }
    }
}

fn web_origin(origin: &WebOrigin) -> String {
    let scheme = origin.scheme.as_str();
    let host = match &origin.host {
        OriginHost::Any => "*".to_owned(),
        OriginHost::Exact(host) => host.to_string(),
        OriginHost::Under(suffix) => format!("*{suffix}"),
    };
    match origin.port {
        port if port == origin.scheme.default_port() => format!("{scheme}://{host}"),
        port => format!("{scheme}://{host}:{port}"),
    }
}

fn lossy(value: &http::HeaderValue) -> String {
    String::from_utf8_lossy(value.as_bytes()).into_owned()
}
