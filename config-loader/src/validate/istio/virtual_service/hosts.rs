//! `hosts` of a VirtualService.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::diagnostic::codes::istio::{VS029, VS030, VS031, VS032, VS033};
use crate::raw::Field;
use crate::resource::istio::Lined;
use crate::span::Span;
use crate::validate::{Check, scalar};

/// First label of an SNI that names a cluster: `outbound_.PORT_.SUBSET_.HOST`.
const OUTBOUND: &str = "outbound_.";

/// Checks the hosts, and returns them as written.
pub(super) fn checked(
    field: &Field<Vec<Field<String>>>,
    gateways_only: bool,
    with_tls: bool,
    check: &mut Check<'_>,
) -> Vec<Lined<Arc<str>>> {
    let mut hosts = Vec::new();
    for (entry, text) in scalar::items(field, check) {
        let span = entry.span();
        if text == "*" && !gateways_only {
            check
                .error(VS031, span, "host `*` cannot apply to the mesh")
                .help("name the hosts, or the gateways that the rules are for");
        }
        if text.starts_with(OUTBOUND) {
            outbound(text, span, gateways_only && with_tls, check);
        } else {
            is_host(text, span, check);
        }
        hosts.push(Lined {
            value: Arc::from(text.as_str()),
            line: check.line(span),
        });
    }
    overlaps(field, check);
    hosts.shrink_to_fit();
    hosts
}

fn is_host(text: &str, span: Span, check: &mut Check<'_>) {
    if scalar::is_wildcard_domain(text) || scalar::ip(text).is_some() {
        return;
    }
    if text.rfind('*').is_some_and(|at| at > 0) {
        check
            .error(
                VS030,
                span,
                format!("host `{text}` has a wildcard after its first character"),
            )
            .help("a wildcard can only stand at the start, as in `*.example.com`");
        return;
    }
    let found = check.error(VS029, span, format!("host `{text}` is not a domain name"));
    match text.rsplit_once(':') {
        Some((host, port))
            if !host.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()) =>
        {
            found.help(format!("hosts have no port: write `{host}`"));
        }
        _ if text.contains("://") => {
            found.help("a host is a name, not a URL");
        }
        _ => {
            found.help(
                "write a name such as `reviews` or `www.example.com`, a wildcard or an IP address",
            );
        }
    }
}

/// Checks a host of the form `outbound_.PORT_.SUBSET_.HOST`.
fn outbound(text: &str, span: Span, allowed: bool, check: &mut Check<'_>) {
    if !is_outbound(text) {
        check
            .error(
                VS033,
                span,
                format!("`{text}` is not of the form `outbound_.PORT_.SUBSET_.HOST`"),
            )
            .help("write for example `outbound_.80_._.reviews.default.svc.cluster.local`");
    } else if !allowed {
        check
            .error(
                VS033,
                span,
                format!("host `{text}` is only for tls rules at gateways"),
            )
            .help("write `gateways`, and a tls rule that has this host in its sniHosts");
    }
}

/// Whether `text` has the form `outbound_.PORT_.SUBSET_.HOST`.
pub(super) fn is_outbound(text: &str) -> bool {
    let parts = text.strip_prefix(OUTBOUND).and_then(|rest| {
        let (port, rest) = rest.split_once("_.")?;
        let (subset, host) = rest.split_once("_.")?;
        Some((port, subset, host))
    });
    parts.is_some_and(|(port, subset, host)| {
        port.parse::<u16>().is_ok_and(|port| port > 0)
            && (subset.is_empty() || scalar::is_dns_label(subset))
            && scalar::is_fqdn(host)
    })
}

/// Reports hosts that overlap. Each host looks up its suffixes among the wildcards, instead of being compared with
/// every other host.
fn overlaps(field: &Field<Vec<Field<String>>>, check: &mut Check<'_>) {
    let entries = field.get().into_iter().flatten();
    let hosts: Vec<(String, Span)> = entries
        .filter_map(|entry| Some((entry.get()?.to_ascii_lowercase(), entry.span())))
        // No host is longer than this; what is has been reported.
        .filter(|(host, _)| host.len() <= 255)
        .collect();
    let mut known: HashMap<&str, Span> = HashMap::new();
    for (host, span) in &hosts {
        match known.get(host.as_str()) {
            Some(first) => overlap([(host, *first), (host, *span)], check),
            None => drop(known.insert(host, *span)),
        }
    }
    let wildcards: HashMap<&str, (&str, Span)> = known
        .iter()
        .filter_map(|(host, span)| Some((host.strip_prefix('*')?, (*host, *span))))
        .collect();
    for (host, span) in &hosts {
        // A wildcard matches at least one character, and is not its own overlap. The widest that covers a host
        // is the one that ends last.
        let ends = (1..=host.len()).rev().filter_map(|at| host.get(at..));
        let wider = ends
            .filter_map(|end| wildcards.get(end))
            .find(|(other, _)| other != host);
        if let Some((other, location)) = wider {
            overlap([(other, *location), (host, *span)], check);
        }
    }
}

fn overlap(mut entries: [(&str, Span); 2], check: &mut Check<'_>) {
    entries.sort_by_key(|(_, span)| *span);
    let [first, second] = entries;
    let location = check.location(first.1);
    check
        .error(
            VS032,
            second.1,
            format!("hosts `{}` and `{}` overlap", first.0, second.0),
        )
        .help("keep one of them; a wildcard covers every name that ends alike")
        .related(location, format!("`{}` is here", first.0));
}

/// Whether `text` is a valid SNI match.
pub(super) fn sni_is_valid(text: &str) -> bool {
    scalar::is_wildcard_domain(text) || is_outbound(text)
}

/// Hosts of a VirtualService, indexed to find the ones that cover an SNI.
#[derive(Debug, Default)]
pub(super) struct Covering<'a> {
    /// All hosts.
    names: HashSet<&'a str>,
    /// Suffixes of wildcard hosts, after the `*`.
    suffixes: HashSet<&'a str>,
}

impl<'a> Covering<'a> {
    /// Indexes hosts, which are in lower case.
    pub(super) fn new(hosts: &'a [String]) -> Covering<'a> {
        let suffix = |host: &'a String| host.strip_prefix('*');
        Covering {
            names: hosts.iter().map(String::as_str).collect(),
            suffixes: hosts.iter().filter_map(suffix).collect(),
        }
    }

    /// Whether one of the hosts matches all names that `sni`, in lower case, matches.
    pub(super) fn covers(&self, sni: &str) -> bool {
        // The `*` of a host represents at least one character, which may be that of the SNI.
        let mut ends = (1..=sni.len()).filter_map(|at| sni.get(at..));
        self.names.contains(sni) || ends.any(|end| self.suffixes.contains(end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wildcard_hosts_match_by_suffix() {
        for (host, sni, wanted) in [
            ("a.com", "a.com", true),
            ("*.com", "a.com", true),
            ("*", "a.com", true),
            ("*.a.com", "a.com", false),
            ("*.a.com", "x.a.com", true),
            ("*.com", "*.a.com", true),
            ("*.a.com", "*.a.com", true),
            ("*.a.com", "*.com", false),
            ("a.com", "*.com", false),
            ("*foo.com", "foo.com", false),
            ("*foo.com", "xfoo.com", true),
            ("*", "*", true),
        ] {
            let hosts = [host.to_owned()];
            assert_eq!(Covering::new(&hosts).covers(sni), wanted, "{host} {sni}");
        }
    }
}
