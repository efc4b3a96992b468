//! ReferenceGrant and BackendTLSPolicy.

use super::*;
use crate::resource::gateway_api::{Authorities, SubjectAltName};

pub(super) const GRANT: &str = "{from: [{group: gateway.networking.k8s.io, kind: HTTPRoute, namespace: a}], to: [{group: '', kind: Service}]}";
pub(super) const POLICY: &str = "{targetRefs: [{group: '', kind: Service, name: a}], \
     validation: {wellKnownCACertificates: System, hostname: a.example}}";

pub(super) const ALL: &[(Kind, Cases)] = &[
    (Kind::ReferenceGrant, GRANTS),
    (Kind::BackendTLSPolicy, POLICIES),
];

const GRANTS: Cases = &[
    (GRANT, &[]),
    ("{}", &["GA102", "GA102"]),
    ("{from: [], to: []}", &["GA102", "GA102"]),
    (
        "{from: [{group: '', kind: A, namespace: a}], to: [{group: '', kind: Service, name: ''}]}",
        &["GA101"],
    ),
    (
        "{from: [{}], to: [{}]}",
        &["GA101", "GA101", "GA101", "GA101", "GA101"],
    ),
    (
        "{from: [{group: A b, kind: 1a, namespace: A}], to: [{group: '', kind: Service, name: a}]}",
        &["GA103", "GA103", "GA103"],
    ),
];

const POLICIES: Cases = &[
    (POLICY, &[]),
    (
        "{targetRefs: [{group: '', kind: Service, name: a, sectionName: b}, {group: '', kind: Service, name: a, \
         sectionName: c}], validation: {caCertificateRefs: [{group: '', kind: ConfigMap, name: a}], hostname: a.example, \
         subjectAltNames: [{type: Hostname, hostname: '*.a.example'}, {type: URI, uri: 'spiffe://a/b'}]}}",
        &[],
    ),
    ("{}", &["GA102", "GA101"]),
    (
        "{targetRefs: [{kind: Service, name: a}], validation: {wellKnownCACertificates: System, hostname: a.example}}",
        &["GA101"],
    ),
    (
        "{targetRefs: [{group: '', kind: Service, name: a}, {group: '', kind: Service, name: a, sectionName: b}], \
         validation: {wellKnownCACertificates: System, hostname: a.example}}",
        &["GA133"],
    ),
    (
        "{targetRefs: [{group: '', kind: Service, name: a}], validation: {hostname: a.example}}",
        &["GA134"],
    ),
    (
        "{targetRefs: [{group: '', kind: Service, name: a}], validation: {hostname: a.example, wellKnownCACertificates: System, \
         caCertificateRefs: [{group: '', kind: ConfigMap, name: a}]}}",
        &["GA134"],
    ),
    (
        "{targetRefs: [{group: '', kind: Service, name: a}], validation: {hostname: a.example, wellKnownCACertificates: Own}}",
        &["CM017"],
    ),
    (
        "{targetRefs: [{group: '', kind: Service, name: a}], validation: {wellKnownCACertificates: System}}",
        &["GA101"],
    ),
    (
        "{targetRefs: [{group: '', kind: Service, name: a}], validation: {wellKnownCACertificates: System, \
         hostname: '*.a.example'}}",
        &["GA104"],
    ),
    (
        "{targetRefs: [{group: '', kind: Service, name: a}], validation: {wellKnownCACertificates: System, \
         hostname: a.example, subjectAltNames: [{type: Hostname}, {type: URI, hostname: a}, {type: URI, uri: a}, {type: IP}]}}",
        &["GA125", "GA125", "GA125", "GA135", "CM017"],
    ),
    (
        "{options: {a: b}, targetRefs: [{group: '', kind: Service, name: a}], validation: {wellKnownCACertificates: System, \
         hostname: a.example}}",
        &["GA061"],
    ),
    (
        "{targetRefs: [{group: '', kind: Service, name: a, namespace: b}], validation: {wellKnownCACertificates: System, \
         hostname: a.example}}",
        &["CM021"],
    ),
];

#[test]
fn grants_and_policies_are_checked() {
    for (kind, cases) in ALL {
        check(*kind, cases);
    }
}

#[test]
fn rejected_policy_denies_its_services() {
    for (spec, targets) in [
        (
            "{targetRefs: [{group: '', kind: Service, name: a}], validation: {hostname: a.example}}",
            1,
        ),
        (
            "{validation: {wellKnownCACertificates: System, hostname: a.example}}",
            0,
        ),
        (
            "{targetRefs: [{group: '', kind: Service, name: a}, {group: '', kind: Service}], validation: \
             {wellKnownCACertificates: System, hostname: a.example}}",
            0,
        ),
        ("[]", 0),
    ] {
        let (set, _) = load("BackendTLSPolicy", spec);
        let policy = &set.backend_tls_policies[&Name::new("ns", "own")].spec;
        assert!(
            matches!(policy.verification, BackendVerification::Denied),
            "{spec}"
        );
        assert_eq!(policy.targets.len(), targets, "{spec}");
    }
    let (set, _) = testing::load(&document("BackendTLSPolicy", POLICY).replace("own", "''"));
    assert_eq!(set.count(Kind::BackendTLSPolicy), 1, "without a name, too");
}

#[test]
fn policy_has_its_authorities_and_names() {
    let spec = "{targetRefs: [{group: '', kind: Service, name: a, sectionName: b}], validation: {caCertificateRefs: [\
         {group: '', kind: ConfigMap, name: c}], hostname: a.example, subjectAltNames: [{type: Hostname, hostname: b.example}, \
         {type: URI, uri: 'spiffe://a/b'}]}}";
    let (set, _) = load("BackendTLSPolicy", spec);
    let policy = &set.backend_tls_policies[&Name::new("ns", "own")].spec;
    let BackendVerification::Tls {
        authorities: Authorities::Objects(authorities),
        hostname,
        subject_alt_names,
        ..
    } = &policy.verification
    else {
        panic!("{policy:?}");
    };
    let [authority] = &**authorities else {
        panic!("{authorities:?}");
    };
    assert!(authority.is("", "ConfigMap") && &*authority.namespace == "ns");
    assert_eq!(&**hostname, "a.example");
    let names = [
        SubjectAltName::Dns("b.example".into()),
        SubjectAltName::Uri("spiffe://a/b".into()),
    ];
    assert_eq!(*subject_alt_names, names);
}

#[test]
fn config_map_has_its_certificates() {
    let text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: own, namespace: ns}\n\
                data: {ca.crt: PEM, other: text}\nbinaryData: {a: b25l}\nimmutable: true\n";
    let (set, found) = testing::load(text);
    assert_eq!(found, [""; 0]);
    let map = &set.config_maps[&Name::new("ns", "own")].spec;
    assert_eq!(map.ca_certificates.as_deref(), Some("PEM"));
}
