//! `tls` of a server: settings that its mode requires, and settings that it does not use.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::diagnostic::Code;
use crate::diagnostic::codes::istio::{
    GW208, GW209, GW210, GW211, GW212, GW213, GW214, GW215, GW216, GW217, GW218, GW219, GW220,
    GW221, GW302, GW303, GW304, GW305,
};
use crate::raw::istio::ServerTlsSettings;
use crate::raw::{self, Field};
use crate::resource::istio::{
    Certificates, CipherSuite, FileCertificate, Lined, ServerTls, ServerTlsMode, TlsVersion,
};
use crate::span::Span;
use crate::validate::istio::shared;
use crate::validate::{Check, scalar};

const MODES: [(&str, ServerTlsMode); 6] = [
    ("PASSTHROUGH", ServerTlsMode::Passthrough),
    ("SIMPLE", ServerTlsMode::Simple),
    ("MUTUAL", ServerTlsMode::Mutual),
    ("OPTIONAL_MUTUAL", ServerTlsMode::OptionalMutual),
    ("ISTIO_MUTUAL", ServerTlsMode::IstioMutual),
    ("AUTO_PASSTHROUGH", ServerTlsMode::AutoPassthrough),
];

const VERSIONS: [(&str, TlsVersion); 5] = [
    ("TLS_AUTO", TlsVersion::Auto),
    ("TLSV1_0", TlsVersion::V1_0),
    ("TLSV1_1", TlsVersion::V1_1),
    ("TLSV1_2", TlsVersion::V1_2),
    ("TLSV1_3", TlsVersion::V1_3),
];

/// Returns the TLS settings of a server.
pub(in crate::validate::istio) fn server_tls(
    field: &Field<ServerTlsSettings>,
    check: &mut Check<'_>,
) -> Option<ServerTls> {
    let raw = field.get()?;
    let mode = match raw.mode.get() {
        Some(_) => scalar::enum_of(&raw.mode, &MODES, check),
        None => Some(ServerTlsMode::default()),
    };
    if let Some(mode) = mode {
        let location = shared::location(&raw.mode, field.span());
        certificates_fit(raw, mode, location, check);
    }
    let (version_min, version_max) = versions(raw, check);
    Some(ServerTls {
        mode: mode.unwrap_or_default(),
        certificates: certificates(raw, check),
        ca_certificates: shared::text_arc(&raw.ca_certificates),
        ca_crl: shared::text_arc(&raw.ca_crl),
        ca_credential_name: shared::text_arc(&raw.ca_cert_credential_name),
        subject_alt_names: shared::texts(&raw.subject_alt_names, check),
        verify_spki: spki(&raw.verify_certificate_spki, check),
        verify_hash: hashes(&raw.verify_certificate_hash, check),
        version_min,
        version_max,
        cipher_suites: cipher_suites(&raw.cipher_suites, check),
        ecdh_curves: shared::texts(&raw.ecdh_curves, check),
        insecure_skip_verify: shared::flag(&raw.insecure_skip_verify),
        places: places(raw, check),
        line: check.line(field.span()),
    })
}

/// Returns the lines of the TLS fields that are present, for diagnostics about missing certificates and keys.
fn places(raw: &ServerTlsSettings, check: &Check<'_>) -> Vec<Lined<Arc<str>>> {
    let mut places = Vec::new();
    let mut add = |path: String, field: &Field<String>| {
        if !shared::text_span(field).is_none() {
            places.push(Lined {
                value: Arc::from(path),
                line: check.line(field.span()),
            });
        }
    };
    for (name, field) in [
        ("mode", &raw.mode),
        ("credentialName", &raw.credential_name),
        ("serverCertificate", &raw.server_certificate),
        ("privateKey", &raw.private_key),
        ("caCertificates", &raw.ca_certificates),
        ("caCrl", &raw.ca_crl),
        ("caCertCredentialName", &raw.ca_cert_credential_name),
    ] {
        add(name.to_owned(), field);
    }
    for (name, list) in [
        ("credentialNames", &raw.credential_names),
        ("ecdhCurves", &raw.ecdh_curves),
    ] {
        for (index, field) in list.get().into_iter().flatten().enumerate() {
            add(format!("{name}[{index}]"), field);
        }
    }
    let pairs = raw.tls_certificates.get().into_iter().flatten();
    for (index, pair) in pairs.filter_map(Field::get).enumerate() {
        for (name, field) in [
            ("serverCertificate", &pair.server_certificate),
            ("privateKey", &pair.private_key),
            ("caCertificates", &pair.ca_certificates),
        ] {
            add(format!("tlsCertificates[{index}].{name}"), field);
        }
    }
    places
}

/// Returns the settings that are present, except `httpsRedirect`, with their spans.
pub(super) fn settings(
    raw: &ServerTlsSettings,
) -> impl Iterator<Item = (&'static str, Span)> + use<> {
    let settings = [
        ("mode", shared::text_span(&raw.mode)),
        (
            "serverCertificate",
            shared::text_span(&raw.server_certificate),
        ),
        ("privateKey", shared::text_span(&raw.private_key)),
        ("caCertificates", shared::text_span(&raw.ca_certificates)),
        ("caCrl", shared::text_span(&raw.ca_crl)),
        ("credentialName", shared::text_span(&raw.credential_name)),
        ("credentialNames", shared::list(&raw.credential_names)),
        ("tlsCertificates", shared::list(&raw.tls_certificates)),
        (
            "caCertCredentialName",
            shared::text_span(&raw.ca_cert_credential_name),
        ),
        ("subjectAltNames", shared::list(&raw.subject_alt_names)),
        (
            "verifyCertificateSpki",
            shared::list(&raw.verify_certificate_spki),
        ),
        (
            "verifyCertificateHash",
            shared::list(&raw.verify_certificate_hash),
        ),
        (
            "minProtocolVersion",
            shared::text_span(&raw.min_protocol_version),
        ),
        (
            "maxProtocolVersion",
            shared::text_span(&raw.max_protocol_version),
        ),
        ("cipherSuites", shared::list(&raw.cipher_suites)),
        ("ecdhCurves", shared::list(&raw.ecdh_curves)),
        (
            "insecureSkipVerify",
            shared::block(&raw.insecure_skip_verify),
        ),
    ];
    settings.into_iter().filter(|(_, span)| !span.is_none())
}

/// Returns the possible sources of certificates, each with the span of its field.
fn sources(raw: &ServerTlsSettings) -> [(&'static str, Span); 5] {
    [
        (
            "serverCertificate",
            shared::text_span(&raw.server_certificate),
        ),
        ("privateKey", shared::text_span(&raw.private_key)),
        ("credentialName", shared::text_span(&raw.credential_name)),
        ("credentialNames", shared::list(&raw.credential_names)),
        ("tlsCertificates", shared::list(&raw.tls_certificates)),
    ]
}

/// Checks that the certificates fit the mode at `span`.
fn certificates_fit(
    raw: &ServerTlsSettings,
    mode: ServerTlsMode,
    span: Span,
    check: &mut Check<'_>,
) {
    match mode {
        ServerTlsMode::IstioMutual => istio_mutual(raw, check),
        ServerTlsMode::AutoPassthrough | ServerTlsMode::Passthrough => {
            let authorities = [
                ("caCertificates", shared::text_span(&raw.ca_certificates)),
                (
                    "caCertCredentialName",
                    shared::text_span(&raw.ca_cert_credential_name),
                ),
                ("caCrl", shared::text_span(&raw.ca_crl)),
            ];
            let all = sources(raw).into_iter().chain(authorities);
            for (name, location) in all.filter(|(_, span)| !span.is_none()) {
                let mode = mode.as_str();
                check
                    .warning(
                        GW220,
                        location,
                        format!("`{name}` is ignored in mode {mode}"),
                    )
                    .help("remove it, or terminate TLS here with mode SIMPLE");
            }
        }
        ServerTlsMode::Mutual | ServerTlsMode::OptionalMutual | ServerTlsMode::Simple => {
            one_source(raw, check);
            complete(raw, mode, span, check);
            revocations(raw, mode, check);
        }
    }
}

fn istio_mutual(raw: &ServerTlsSettings, check: &mut Check<'_>) {
    let [certificate, key, name, names, files] = sources(raw);
    let ca = ("caCertificates", shared::text_span(&raw.ca_certificates));
    for ((name, location), code) in [
        (certificate, GW208),
        (key, GW209),
        (ca, GW210),
        (name, GW211),
        (names, GW211),
        (files, GW211),
    ] {
        if !location.is_none() {
            check
                .error(
                    code,
                    location,
                    format!("ISTIO_MUTUAL uses the mesh certificate: `{name}` is not allowed"),
                )
                .help("remove it, or write mode MUTUAL");
        }
    }
}

/// Checks that there is only one source of certificates. As in Istio, files count only if both are present.
fn one_source(raw: &ServerTlsSettings, check: &mut Check<'_>) {
    let [certificate, key, name, names, files] = sources(raw);
    let own = match key.1.is_none() {
        true => key,
        false => certificate,
    };
    one_alone([certificate, key], [name, names, files], check);
    let mut written: Vec<(&str, Span)> = [own, name, names, files]
        .into_iter()
        .filter(|(_, span)| !span.is_none())
        .collect();
    written.sort_by_key(|(_, span)| *span);
    if let [first, second, ..] = written.as_slice() {
        let location = check.location(first.1);
        check
            .error(
                GW212,
                second.1,
                format!(
                    "several sources of certificates: `{}` and `{}`",
                    first.0, second.0
                ),
            )
            .help("keep one of them")
            .related(location, format!("`{}` is set here", first.0));
    }
    for (field, count) in [
        (files, raw.tls_certificates.get().map_or(0, Vec::len)),
        (names, raw.credential_names.get().map_or(0, Vec::len)),
    ] {
        if count > 2 {
            check
                .warning(
                    GW221,
                    field.1,
                    format!("`{}` has {count} entries, of which two are used", field.0),
                )
                .help("an RSA and an ECDSA certificate serve all clients");
        }
    }
}

/// Warns of a certificate without its key, or a key without its certificate, next to another source.
fn one_alone(
    [certificate, key]: [(&'static str, Span); 2],
    others: [(&'static str, Span); 3],
    check: &mut Check<'_>,
) {
    let (lone, missing) = match (certificate.1.is_none(), key.1.is_none()) {
        (false, true) => (certificate, key.0),
        (true, false) => (key, certificate.0),
        _ => return,
    };
    if let Some((other, _)) = others.iter().find(|(_, span)| !span.is_none()) {
        let message = format!(
            "`{}` is ignored: there is no `{missing}`, but `{other}`",
            lone.0
        );
        check.warning(GW305, lone.1, message).help("remove it");
    }
}

/// Checks that all settings that the mode requires are present.
fn complete(raw: &ServerTlsSettings, mode: ServerTlsMode, span: Span, check: &mut Check<'_>) {
    let [certificate, key, name, names, files] = sources(raw);
    let secret = !name.1.is_none() || !names.1.is_none();
    let mode_name = mode.as_str();
    if !secret && files.1.is_none() {
        if certificate.1.is_none() {
            check
                .error(
                    GW213,
                    span,
                    format!("{mode_name} needs a server certificate"),
                )
                .help("write `credentialName`, or `serverCertificate` and `privateKey`");
        }
        if key.1.is_none() && !certificate.1.is_none() {
            check
                .error(GW214, span, format!("{mode_name} needs a private key"))
                .help("write `privateKey`");
        }
    }
    for (entry, pair) in scalar::items(&raw.tls_certificates, check) {
        if shared::text(&pair.server_certificate).is_none() {
            check
                .error(GW213, entry.span(), "the entry has no serverCertificate")
                .help("write the path of a PEM file");
        }
        if shared::text(&pair.private_key).is_none() {
            check
                .error(GW214, entry.span(), "the entry has no privateKey")
                .help("write the path of a PEM file");
        }
    }
    let verifies = matches!(mode, ServerTlsMode::Mutual | ServerTlsMode::OptionalMutual)
        && !shared::flag(&raw.insecure_skip_verify);
    let ca = !shared::text_span(&raw.ca_certificates).is_none()
        || !shared::text_span(&raw.ca_cert_credential_name).is_none()
        || raw
            .tls_certificates
            .get()
            .into_iter()
            .flatten()
            .any(|entry| {
                entry
                    .get()
                    .is_some_and(|pair| shared::text(&pair.ca_certificates).is_some())
            });
    if verifies && !secret && !ca {
        check
            .error(
                GW215,
                span,
                format!("{mode_name} needs a CA to verify clients with"),
            )
            .help("write `caCertificates`, or a `credentialName` whose secret has a CA");
    }
}

fn revocations(raw: &ServerTlsSettings, mode: ServerTlsMode, check: &mut Check<'_>) {
    let crl = shared::text_span(&raw.ca_crl);
    if crl.is_none() {
        return;
    }
    // as in Istio, nothing else is asked of it then
    if !shared::text_span(&raw.credential_name).is_none()
        || !shared::list(&raw.credential_names).is_none()
    {
        // a CA from a file has its list from a file, unlike in Istio
        let is_read = shared::text(&raw.ca_certificates).is_some()
            && shared::text(&raw.ca_cert_credential_name).is_none();
        let message = match is_read {
            true => "Istio ignores caCrl beside credentialName",
            false => "caCrl is ignored beside credentialName: it revokes nothing",
        };
        check
            .warning(GW216, crl, message)
            .help("put the CRL into the secret, under the key `ca.crl`");
        return;
    }
    if mode == ServerTlsMode::Simple {
        check
            .error(
                GW217,
                crl,
                "caCrl in mode SIMPLE, which asks for no client certificates",
            )
            .help("write mode MUTUAL, or remove it");
    }
}

fn certificates(raw: &ServerTlsSettings, check: &mut Check<'_>) -> Certificates {
    if let Some(name) = shared::text_arc(&raw.credential_name) {
        return Certificates::Secrets(vec![name]);
    }
    let names = shared::texts(&raw.credential_names, check);
    if !names.is_empty() {
        return Certificates::Secrets(names);
    }
    let pair = |certificate: &Field<String>, key: &Field<String>| FileCertificate {
        certificate: shared::text_or_empty(certificate),
        private_key: shared::text_or_empty(key),
        ca_certificates: None,
    };
    let several = raw
        .tls_certificates
        .get()
        .into_iter()
        .flatten()
        .filter_map(Field::get);
    let several: Vec<FileCertificate> = several
        .map(|entry: &raw::istio::TlsCertificate| FileCertificate {
            ca_certificates: shared::text_arc(&entry.ca_certificates),
            ..pair(&entry.server_certificate, &entry.private_key)
        })
        .collect();
    if !several.is_empty() {
        return Certificates::Files(several);
    }
    if shared::text(&raw.server_certificate).is_some() {
        return Certificates::Files(vec![pair(&raw.server_certificate, &raw.private_key)]);
    }
    Certificates::None
}

fn versions(raw: &ServerTlsSettings, check: &mut Check<'_>) -> (TlsVersion, TlsVersion) {
    let min = version(&raw.min_protocol_version, check);
    let max = version(&raw.max_protocol_version, check);
    if min != TlsVersion::Auto && max != TlsVersion::Auto && min > max {
        let location = check.location(raw.min_protocol_version.span());
        check
            .error(
                GW302,
                raw.max_protocol_version.span(),
                "the newest TLS version is older than the oldest",
            )
            .related(location, "the oldest is set here");
    }
    let old = |version| matches!(version, TlsVersion::V1_0 | TlsVersion::V1_1);
    if old(min) && shared::list(&raw.cipher_suites).is_none() {
        check
            .warning(
                GW219,
                raw.min_protocol_version.span(),
                "old TLS needs explicit ciphers",
            )
            .help("TLS is spoken from 1.2 on: write `TLSV1_2`, or leave it out");
    } else if old(min) {
        not_spoken(&raw.min_protocol_version, check);
    }
    if old(max) {
        not_spoken(&raw.max_protocol_version, check);
    }
    (min, max)
}

fn version(field: &Field<String>, check: &mut Check<'_>) -> TlsVersion {
    scalar::enum_of(field, &VERSIONS, check).unwrap_or_default()
}

fn not_spoken(field: &Field<String>, check: &mut Check<'_>) {
    check
        .warning(GW304, field.span(), "TLS 1.0 and 1.1 are not spoken")
        .help("clients are served from TLS 1.2 on: write `TLSV1_2`, or leave it out");
}

/// Returns the cipher suites that are known.
pub(in crate::validate::istio) fn cipher_suites(
    field: &Field<Vec<Field<String>>>,
    check: &mut Check<'_>,
) -> Vec<CipherSuite> {
    let mut suites = Vec::new();
    for (entry, name) in scalar::items(field, check) {
        let why = match CipherSuite::from_name(name) {
            Some(suite) if suites.contains(&suite) => "it is listed twice",
            Some(suite) => {
                suites.push(suite);
                if suite.is_modern() {
                    continue;
                }
                "it has no forward secrecy or no authenticated encryption, and is not offered"
            }
            None => "it is unknown",
        };
        check
            .warning(
                GW218,
                entry.span(),
                format!("cipher `{name}` is ignored: {why}"),
            )
            .help("remove it; without `cipherSuites` the safe ones are offered");
    }
    suites
}

fn hashes(field: &Field<Vec<Field<String>>>, check: &mut Check<'_>) -> Vec<Arc<str>> {
    let mut hashes = Vec::new();
    for (entry, text) in scalar::items(field, check) {
        let hex: String = text.chars().filter(|c| *c != ':').collect();
        let valid = hex.len() == 64 && hex.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_hash(valid, text, "64 hexadecimal digits", entry.span(), check);
        hashes.push(Arc::from(hex.to_ascii_lowercase()));
    }
    hashes
}

fn spki(field: &Field<Vec<Field<String>>>, check: &mut Check<'_>) -> Vec<Arc<str>> {
    let mut hashes = Vec::new();
    for (entry, text) in scalar::items(field, check) {
        let valid = STANDARD.decode(text).is_ok_and(|bytes| bytes.len() == 32);
        is_hash(valid, text, "32 bytes in base64", entry.span(), check);
        hashes.push(Arc::from(text.as_str()));
    }
    hashes
}

fn is_hash(valid: bool, text: &str, form: &str, span: Span, check: &mut Check<'_>) {
    const CODE: Code = GW303;
    if !valid {
        check
            .error(CODE, span, format!("`{text}` is not a SHA-256"))
            .help(format!("write {form}"));
    }
}
