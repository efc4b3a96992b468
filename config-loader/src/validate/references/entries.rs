//! ServiceEntries of one namespace that contradict each other about a host.

use std::collections::HashMap;

use super::finding::{location, warning};
use crate::catalog::hostname;
use crate::diagnostic::Diagnostic;
use crate::diagnostic::codes::references::X317;
use crate::resource::istio::{Protocol, ServiceEntry, ServiceEntryPort};
use crate::resource::{Object, ResourceSet};

/// A port of a host, by namespace, host and number.
type Key<'a> = (&'a str, String, u16);

/// A port of a host has the protocol that the oldest ServiceEntry of the namespace says.
pub(super) fn check(set: &ResourceSet, found: &mut Vec<Diagnostic>) {
    let mut by_age: Vec<&Object<ServiceEntry>> = set
        .service_entries
        .values()
        .map(|object| &**object)
        .collect();
    by_age.sort_by(|a, b| a.age().cmp(&b.age()));
    let mut first: HashMap<Key<'_>, (&Object<ServiceEntry>, &ServiceEntryPort)> = HashMap::new();
    for object in by_age {
        let mut told: Vec<u16> = Vec::new(); // once for each port, however many hosts have it
        for host in &object.spec.hosts {
            let host = hostname::canonical(&host.value).into_owned();
            for (index, port) in object.spec.ports.iter().enumerate() {
                let key = (&*object.id.namespace, host.clone(), port.number);
                let (owner, known) = *first.entry(key).or_insert((object, port));
                if told.contains(&port.number) || is_one(known.protocol, port.protocol) {
                    continue;
                }
                told.push(port.number);
                found.push(conflict((object, index), &host, (owner, known)));
            }
        }
    }
}

/// Whether a port that has these protocols is served in one way.
fn is_one(a: Protocol, b: Protocol) -> bool {
    a == b
        || [a, b]
            .iter()
            .all(|one| matches!(one, Protocol::Grpc | Protocol::Http2))
}

fn conflict(
    (object, index): (&Object<ServiceEntry>, usize),
    host: &str,
    (owner, known): (&Object<ServiceEntry>, &ServiceEntryPort),
) -> Diagnostic {
    let port = &object.spec.ports[index];
    let message = format!(
        "port {} of `{host}` is {} by {}, not {}",
        port.number,
        written(known.protocol),
        owner.id,
        written(port.protocol)
    );
    let field = format!("spec.ports[{index}].protocol");
    let mut found = warning(object, X317, port.line, field, message);
    found.help("the oldest ServiceEntry decides: write one protocol in all of them");
    found.related(location(owner, known.line), "this one is older and counts");
    found
}

fn written(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::Detect => "detected by its first bytes",
        protocol => protocol.as_str(),
    }
}
