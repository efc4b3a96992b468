//! Differences between connections of two versions of a listener, where it does not take them apart into requests.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::names::witness;
use super::report::Report;
use super::side::Side;
use crate::explain::Question;
use crate::snapshot::{Handling, Listener, OpaqueRoutes, Service};

/// Compares the connections for each server name that either knows, for a name that none knows, and those of TCP.
pub(super) fn compare(sides: [&Side<'_>; 2], listeners: [&Arc<Listener>; 2], report: &mut Report) {
    let [old, new] = listeners;
    if old.service.is_same(&new.service) {
        return;
    }
    let kinds = [kind(&old.service), kind(&new.service)];
    if kinds[0] != kinds[1] {
        let text = format!(
            "listener {} speaks {} instead of {}",
            old.key, kinds[1], kinds[0]
        );
        report.note(text, true);
    } else if old.service.admits() != new.service.admits() {
        let text = format!(
            "listener {} takes other connections, in TLS or in plain text",
            old.key
        );
        report.note(text, true);
    }
    let port = old.key.address.port();
    let questions: Vec<String> = match (&old.service, &new.service) {
        (Service::Tls(_), Service::Tls(_)) => {
            let all: BTreeSet<&str> = listeners.into_iter().flat_map(|one| names(one)).collect();
            let names: BTreeSet<String> = all.iter().map(|name| witness(name, &all)).collect();
            let other = witness("*", &all);
            let names = names.into_iter().chain([other]);
            names.map(|name| format!("tls://{name}:{port}")).collect()
        }
        (Service::Opaque(before), Service::Opaque(after)) => {
            let subnets = [before, after]
                .into_iter()
                .flat_map(|routes| addresses(routes));
            let subnets: BTreeSet<String> = subnets.collect();
            let any = old.key.address.ip().map(|address| address.ip().to_string());
            let all = any.into_iter().chain(subnets);
            all.map(|address| format!("tcp://{address}:{port}"))
                .collect()
        }
        _ => return,
    };
    for url in questions {
        let question = Question::parse("CONNECT", &url);
        let Some(mut question) = question.ok().map(Question::outcome_only) else {
            continue;
        };
        let address = old.key.address.ip();
        let chosen = address.map(|address| question.at_listener(&address.to_string()));
        if !matches!(chosen, Some(Ok(()))) {
            continue;
        }
        report.decided += 1;
        let command = || format!("strait explain CONNECT {url}");
        report.compare(sides, &question, command);
    }
}

/// Protocol of a listener in words.
fn kind(service: &Service) -> &'static str {
    match service {
        Service::Captured(_) => "what the workload dials",
        Service::Detected(_) => "a detected protocol",
        Service::Http(_) => "HTTP",
        Service::HttpProxy => "HTTP to a proxy",
        Service::Opaque(_) => "TCP",
        Service::Tls(_) => "TLS",
    }
}

/// Names of the servers of a listener, and of its rules.
fn names(listener: &Listener) -> Vec<&str> {
    let Service::Tls(chains) = &listener.service else {
        return Vec::new();
    };
    let servers = chains.chains.iter().flat_map(|chain| chain.names.iter());
    let of_clusters = chains
        .chains
        .iter()
        .filter_map(|chain| match &chain.handling {
            Handling::AutoPassthrough(routes) => Some(&**routes),
            _ => None,
        });
    let rules = listener
        .all_opaque()
        .chain(of_clusters)
        .flat_map(|routes| routes.table.rules());
    let of_rules = rules.flat_map(|rule| rule.conditions.sni_hosts.iter());
    servers.chain(of_rules).map(|name| &**name).collect()
}

/// An address of each subnet that rules name.
fn addresses(routes: &OpaqueRoutes) -> Vec<String> {
    let rules = routes.table.rules().iter();
    let subnets = rules.flat_map(|rule| rule.conditions.destination_subnets.iter());
    subnets.map(|subnet| subnet.addr().to_string()).collect()
}
