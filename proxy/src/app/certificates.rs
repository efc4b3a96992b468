//! Data of the admin page about certificates.

use crate::admin::view::{CertificateFacts, CertificateView, SubjectAltName};
use crate::control::certificates::now;
use crate::tls::material::{UnixSeconds, date};
use crate::tls::{Facts, Name, Problem, Store};

const DAY: UnixSeconds = 24 * 60 * 60;

/// Views of all certificates that servers use, by source.
pub(super) fn views(store: &Store) -> Vec<CertificateView> {
    let now = now();
    let own = store.identities().into_iter().map(|status| {
        let source = status.source.to_string();
        let in_force = status.in_force.iter();
        CertificateView {
            cert_chain: in_force
                .map(|one| facts(&source, &one.facts, now))
                .collect(),
            last_good_version_in_use: status.is_kept,
            errors: problems(&status.problems),
            source,
            ..CertificateView::default()
        }
    });
    let of_clients = store.authorities().into_iter().map(|status| {
        let source = status.source.to_string();
        let in_force = status.in_force.iter().flat_map(|one| &one.facts);
        CertificateView {
            ca_cert: in_force.map(|one| facts(&source, one, now)).collect(),
            last_good_version_in_use: status.is_kept,
            errors: problems(&status.problems),
            source,
            ..CertificateView::default()
        }
    });
    own.chain(of_clients).collect()
}

fn problems(errors: &[Problem]) -> Vec<String> {
    errors.iter().map(ToString::to_string).collect()
}

fn facts(source: &str, facts: &Facts, now: UnixSeconds) -> CertificateFacts {
    let left = facts.not_after.saturating_sub(now).max(0) / DAY;
    CertificateFacts {
        path: source.to_owned(),
        serial_number: facts.serial.to_string(),
        subject: facts.subject.to_string(),
        issuer: facts.issuer.to_string(),
        subject_alt_names: facts.names.iter().map(name).collect(),
        days_until_expiration: left.to_string(),
        valid_from: date(facts.not_before),
        expiration_time: date(facts.not_after),
    }
}

fn name(name: &Name) -> SubjectAltName {
    let text = name.to_string();
    match name {
        Name::Dns(_) => SubjectAltName::Dns(text),
        Name::Email(_) => SubjectAltName::Email(text),
        Name::Ip(_) => SubjectAltName::IpAddress(text),
        Name::Uri(_) => SubjectAltName::Uri(text),
    }
}
