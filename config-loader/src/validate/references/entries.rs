//! ServiceEntries of one namespace that contradict each other about a host.

use std::collections::HashMap;

use super::finding::{location, warning};
use crate::catalog::hostname;
use crate::diagnostic::Diagnostic;
use crate::diagnostic::codes::references::{X317, X320};
use crate::resource::istio::{Protocol, ServiceEntry, ServiceEntryPort};
use crate::resource::{Object, ResourceSet};
use crate::span::Line;

/// Port of a host: namespace, host and number.
type Key<'a> = (&'a str, String, u16);

/// Warns of conflicting protocols. The oldest ServiceEntry of the namespace determines the protocol of a port.
pub(super) fn check(set: &ResourceSet, found: &mut Vec<Diagnostic>) {
    let mut by_age: Vec<&Object<ServiceEntry>> = set
        .service_entries
        .values()
        .map(|object| &**object)
        .collect();
    by_age.sort_by(|a, b| a.age().cmp(&b.age()));
    check_whole_host(&by_age, found);
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
                found.push(conflict(object, index, &host, owner, known));
            }
        }
    }
}

/// Warns of conflicting addresses and `exportTo`. The oldest ServiceEntry of the namespace determines them for a host.
fn check_whole_host(by_age: &[&Object<ServiceEntry>], found: &mut Vec<Diagnostic>) {
    let mut first: HashMap<(&str, String), &Object<ServiceEntry>> = HashMap::new();
    for object in by_age {
        let hosts = object.spec.hosts.iter();
        let mut owners = hosts.filter_map(|host| {
            let name = hostname::canonical(&host.value).into_owned();
            let owner = *first.entry((&*object.id.namespace, name)).or_insert(object);
            let fields = [
                (
                    "spec.addresses",
                    !object.spec.addresses.is_empty()
                        && owner.spec.addresses != object.spec.addresses,
                ),
                (
                    "spec.exportTo",
                    owner.spec.export_to != object.spec.export_to,
                ),
            ];
            let other = fields.into_iter().find(|(_, differs)| *differs)?;
            Some((host, owner, other.0))
        });
        // once for each object, however many hosts it shares
        if let Some((host, owner, field)) = owners.next() {
            let name = &host.value;
            let message = format!(
                "`{name}` has the {} of {}, not these",
                short(field),
                owner.id
            );
            let mut diagnostic = warning(object, X320, host.line, field.to_owned(), message);
            diagnostic.help("the oldest ServiceEntry decides: write the same in all of them");
            diagnostic.related(location(owner, Line(0)), "this one is older and counts");
            found.push(diagnostic);
        }
    }
}

/// Returns the name of a field without its path.
fn short(field: &str) -> &str {
    field.rsplit('.').next().unwrap_or(field)
}

/// Whether two protocols of a port are handled in the same way.
fn is_one(a: Protocol, b: Protocol) -> bool {
    a == b
        || [a, b]
            .iter()
            .all(|one| matches!(one, Protocol::Grpc | Protocol::Http2))
}

fn conflict(
    object: &Object<ServiceEntry>,
    index: usize,
    host: &str,
    owner: &Object<ServiceEntry>,
    known: &ServiceEntryPort,
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
