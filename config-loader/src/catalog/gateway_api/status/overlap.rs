//! Condition `OverlappingTLSConfig`: listeners of one port that terminate TLS for some of the same hosts, or have
//! certificates for some of the same names, so that clients may use one connection for both.

use std::collections::{BTreeMap, HashMap};

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::FromDer;

use super::Condition;
use crate::catalog::gateway_api::{ServedGateway, ServedListener};
use crate::resource::core::Secret;

/// Returns the condition of each listener of a Gateway; `None` for one without such another one.
pub(super) fn conditions(gateway: &ServedGateway<'_>) -> Vec<Option<Condition>> {
    let listeners = &gateway.listeners;
    let mut by_port: BTreeMap<u16, Vec<usize>> = BTreeMap::new();
    for (position, served) in listeners.iter().enumerate() {
        if served.termination().is_some() && served.problem.is_none() {
            let port = served.listener.port;
            by_port.entry(port).or_default().push(position);
        }
    }
    let mut found = vec![None; listeners.len()];
    for positions in by_port.into_values().filter(|all| all.len() > 1) {
        let names_of = |names: fn(&ServedListener<'_>) -> Vec<String>| -> Vec<Vec<String>> {
            let served = positions.iter().map(|position| &listeners[*position]);
            served.map(names).collect()
        };
        let hosts = names_of(|served| vec![served.hostname().to_owned()]);
        // a wildcard of a certificate matches one label
        let by_certificates = meeting(&names_of(certificate_names), 1);
        let by_hosts = meeting(&hosts, usize::MAX);
        let by_each = by_certificates.into_iter().zip(by_hosts);
        for (position, others) in positions.iter().zip(by_each) {
            let (other, reason, shared) = match others {
                (Some(other), _) => (other, "OverlappingCertificates", "certificate names"),
                (None, Some(other)) => (other, "OverlappingHostnames", "hosts"),
                (None, None) => continue,
            };
            let other = &listeners[positions[other]].listener.name;
            let message = format!(
                "listener `{other}` shares {shared}: a connection may carry requests for both, which get 421"
            );
            let condition = Condition::new("OverlappingTLSConfig", true, reason);
            found[*position] = Some(condition.because(message));
        }
    }
    found
}

/// Returns for each list of names the position of another one that shares names with it. A wildcard
/// matches at most `labels` first labels of a name; the name `*` matches every name.
fn meeting(lists: &[Vec<String>], labels: usize) -> Vec<Option<usize>> {
    let mut by_name: HashMap<&str, Vec<usize>> = HashMap::new();
    for (index, names) in lists.iter().enumerate() {
        for name in names {
            by_name.entry(name).or_default().push(index);
        }
    }
    let mut found = vec![None; lists.len()];
    for (index, names) in lists.iter().enumerate() {
        for name in names {
            let dots = name.match_indices('.').take(labels);
            let wildcards = dots.map(|(at, _)| format!("*{}", &name[at..]));
            for key in wildcards.chain([name.clone(), "*".to_owned()]) {
                let mut others = by_name.get(&*key).into_iter().flatten();
                if let Some(other) = others.find(|other| **other != index) {
                    found[index].get_or_insert(*other);
                    found[*other].get_or_insert(index);
                }
            }
        }
    }
    found
}

/// Returns the DNS names in the certificates of a listener, in lower case.
fn certificate_names(served: &ServedListener<'_>) -> Vec<String> {
    let secrets = served.certificates.iter().flatten();
    let pem = secrets.filter_map(|secret| secret.spec.get(Secret::TLS_CERTIFICATE));
    pem.flat_map(names).collect()
}

fn names(pem: &[u8]) -> Vec<String> {
    let Ok(der) = CertificateDer::from_pem_slice(pem) else {
        return Vec::new();
    };
    let Ok((_, certificate)) = X509Certificate::from_der(&der) else {
        return Vec::new();
    };
    let extension = certificate.subject_alternative_name().ok().flatten();
    let names = extension.iter().flat_map(|one| &one.value.general_names);
    let dns = names.filter_map(|name| match name {
        GeneralName::DNSName(name) => Some(name.to_ascii_lowercase()),
        _ => None,
    });
    dns.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_meet_if_one_covers_the_other() {
        for (lists, labels, expected) in [
            (&["a.test", "b.test"][..], usize::MAX, [None, None]),
            (&["a.test", "a.test"], 1, [Some(1), Some(0)]),
            (&["*.test", "a.test"], 1, [Some(1), Some(0)]),
            (&["*.test", "b.a.test"], 1, [None, None]),
            (&["b.a.test", "*.test"], usize::MAX, [Some(1), Some(0)]),
            (&["*.test", "*.a.test"], usize::MAX, [Some(1), Some(0)]),
            (&["*", "a.test"], usize::MAX, [Some(1), Some(0)]),
            (&["*.test", "test"], usize::MAX, [None, None]),
        ] {
            let lists: Vec<_> = lists.iter().map(|name| vec![(*name).to_owned()]).collect();
            assert_eq!(meeting(&lists, labels), expected, "{lists:?}");
        }
        let lists = [
            vec![],
            vec!["a.test".to_owned(), "b.test".to_owned()],
            vec!["b.test".to_owned()],
        ];
        assert_eq!(meeting(&lists, 1), [None, Some(2), Some(1)]);
    }
}
