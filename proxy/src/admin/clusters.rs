//! `/clusters`: clusters and their endpoints, as text in the shape of Envoy's page or as JSON.

use std::fmt::Write;

use http::StatusCode;

use super::AdminState;
use super::reply::{Query, Reply};
use super::view::{ClusterView, EndpointView};

/// The page.
pub(super) fn show(state: &AdminState, query: Query<'_>) -> Reply {
    let clusters = (state.clusters)();
    if query.wants_json() {
        return Reply::json(&clusters);
    }
    let mut text = String::new();
    for cluster in &clusters {
        describe(&mut text, cluster);
    }
    Reply::text(StatusCode::OK, text)
}

/// One fact per line, `cluster::fact::value` or `cluster::endpoint::fact::value`, made for grep.
fn describe(text: &mut String, cluster: &ClusterView) {
    let ClusterView {
        name,
        balancer,
        sources,
        endpoints,
    } = cluster;
    // Writing to a string cannot fail.
    let _ = writeln!(text, "{name}::balancer::{balancer}");
    for source in sources {
        let _ = writeln!(text, "{name}::source::{source}");
    }
    let _ = writeln!(text, "{name}::endpoints::{}", endpoints.len());
    for endpoint in endpoints {
        let EndpointView {
            address,
            weight,
            priority,
            locality,
            cluster,
            ..
        } = endpoint;
        let EndpointView {
            health,
            active_requests,
            labels,
            ..
        } = endpoint;
        let _ = writeln!(text, "{name}::{address}::health::{}", health.as_str());
        let _ = writeln!(text, "{name}::{address}::rq_active::{active_requests}");
        let _ = writeln!(text, "{name}::{address}::weight::{weight}");
        let _ = writeln!(text, "{name}::{address}::priority::{priority}");
        let _ = writeln!(text, "{name}::{address}::locality::{locality}");
        let _ = writeln!(text, "{name}::{address}::cluster::{cluster}");
        for (label, value) in labels {
            let _ = writeln!(text, "{name}::{address}::label::{label}={value}");
        }
    }
}
