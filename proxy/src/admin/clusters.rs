//! `/clusters`: clusters and their endpoints, as text in the format of Envoy's page or as JSON.

use std::fmt::{Display, Write};

use http::StatusCode;

use super::reply::{Query, Reply};
use super::state::AdminState;
use super::view::{ClusterView, EndpointView, MemberView, PriorityView};

/// Renders the page.
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

/// Writes one fact per line, `cluster::fact::value` or `cluster::endpoint::fact::value`, so that grep finds them.
fn describe(text: &mut String, cluster: &ClusterView) {
    let name = &cluster.name;
    let mut fact = |fact: &str, value: &dyn Display| {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{name}::{fact}::{value}");
    };
    fact("load_balancer", &cluster.load_balancer);
    fact("protocol", &cluster.protocol);
    if let Some(check) = &cluster.health_check {
        fact("health_check", check);
    }
    for limit in &cluster.limits {
        match limit.max {
            Some(max) => fact(&limit.name, &format_args!("{}/{max}", limit.active)),
            None => fact(&limit.name, &limit.active),
        }
    }
    if let Some(tls) = &cluster.tls {
        fact("tls", tls);
    }
    for source in &cluster.sources {
        fact("source", source);
    }
    for (number, priority) in cluster.priorities.iter().enumerate() {
        let line = describe_priority(number, priority);
        fact("priority", &line);
    }
    for member in &cluster.member_clusters {
        fact("member_cluster", &describe_member(member));
    }
    if let Some(reason) = &cluster.no_cluster_reason {
        fact("no_cluster_reason", reason);
    }
    fact("endpoints", &cluster.endpoints.len());
    for host in &cluster.unresolved_hosts {
        fact("unresolved_host", host);
    }
    for endpoint in &cluster.endpoints {
        describe_endpoint(text, name, endpoint);
    }
}

fn describe_member(member: &MemberView) -> String {
    let MemberView {
        cluster_key,
        upstream_cluster,
        tier,
        weight,
        share,
        available,
    } = member;
    format!(
        "{cluster_key} tier={tier} weight={weight} share={share:.4} available={available} upstream_cluster={upstream_cluster}"
    )
}

fn describe_priority(number: usize, priority: &PriorityView) -> String {
    let PriorityView {
        load,
        healthy,
        total,
        panic_mode,
        localities,
    } = priority;
    let mut line =
        format!("{number} load={load}% healthy={healthy}/{total} panic_mode={panic_mode}");
    for (locality, weight) in localities {
        let _ = write!(line, " {locality}={weight}");
    }
    line
}

fn describe_endpoint(text: &mut String, cluster: &str, endpoint: &EndpointView) {
    let address = &endpoint.address;
    let mut fact = |fact: &str, value: &dyn Display| {
        let _ = writeln!(text, "{cluster}::{address}::{fact}::{value}");
    };
    fact("rq_active", &endpoint.rq_active);
    fact("rq_total", &endpoint.rq_total);
    fact("weight", &endpoint.weight);
    fact("locality", &endpoint.locality);
    fact("priority", &endpoint.priority);
    fact("share", &format_args!("{:.4}", endpoint.share));
    fact(
        "health",
        &endpoint.unavailable_reason.as_deref().unwrap_or("healthy"),
    );
    if let Some(warmup) = &endpoint.warmup {
        fact("warmup", warmup);
    }
    if let Some(result) = &endpoint.last_health_check {
        fact("last_health_check", result);
    }
    fact("ejections", &endpoint.ejections);
    for (label, value) in &endpoint.labels {
        fact("label", &format_args!("{label}={value}"));
    }
}
