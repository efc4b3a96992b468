//! `tls` of connections to endpoints.

use std::sync::Arc;

use crate::diagnostic::codes::istio::{DR181, DR182, DR183, DR184, DR185, DR186};
use crate::raw::{self, Field};
use crate::resource::istio::{ClientTls, ClientTlsMode, Lined};
use crate::span::Span;
use crate::validate::istio::shared;
use crate::validate::{Check, scalar};

const MODES: [(&str, ClientTlsMode); 4] = [
    ("DISABLE", ClientTlsMode::Disable),
    ("SIMPLE", ClientTlsMode::Simple),
    ("MUTUAL", ClientTlsMode::Mutual),
    ("ISTIO_MUTUAL", ClientTlsMode::IstioMutual),
];

/// Prefix of a `credentialName` that refers to a ConfigMap.
const CONFIG_MAP: &str = "configmap://";

/// Returns the TLS settings of connections to endpoints.
pub(super) fn client_tls(
    field: &Field<raw::istio::ClientTlsSettings>,
    check: &mut Check<'_>,
) -> Option<ClientTls> {
    let raw = field.get()?;
    let mode = scalar::enum_of(&raw.mode, &MODES, check).unwrap_or_default();
    if matches!(mode, ClientTlsMode::Mutual | ClientTlsMode::Simple) {
        one_source(raw, check);
        verification(raw, mode, check);
    }
    if mode == ClientTlsMode::Mutual {
        own_certificate(raw, field.span(), check);
    }
    config_map(&raw.credential_name, check);
    Some(ClientTls {
        mode,
        client_certificate: shared::text_arc(&raw.client_certificate),
        private_key: shared::text_arc(&raw.private_key),
        ca_certificates: shared::text_arc(&raw.ca_certificates),
        ca_crl: shared::text_arc(&raw.ca_crl),
        credential_name: shared::text_arc(&raw.credential_name),
        subject_alt_names: shared::texts(&raw.subject_alt_names, check),
        sni: shared::text_arc(&raw.sni),
        insecure_skip_verify: shared::flag(&raw.insecure_skip_verify),
        places: field_lines(raw, check),
        line: check.line(field.span()),
    })
}

/// Returns the lines of the TLS fields that are present, for diagnostics about missing certificates and keys.
fn field_lines(raw: &raw::istio::ClientTlsSettings, check: &Check<'_>) -> Vec<Lined<Arc<str>>> {
    let fields = [
        ("mode", &raw.mode),
        ("credentialName", &raw.credential_name),
        ("clientCertificate", &raw.client_certificate),
        ("privateKey", &raw.private_key),
        ("caCertificates", &raw.ca_certificates),
        ("caCrl", &raw.ca_crl),
        ("sni", &raw.sni),
    ];
    let written = fields
        .into_iter()
        .filter(|(_, field)| !shared::text_span(field).is_none());
    written
        .map(|(name, field)| Lined {
            value: Arc::from(name),
            line: check.line(field.span()),
        })
        .collect()
}

/// Checks that certificates come either from files or from a credential.
fn one_source(raw: &raw::istio::ClientTlsSettings, check: &mut Check<'_>) {
    let credential = ("credentialName", shared::text_span(&raw.credential_name));
    for (name, field) in [
        ("clientCertificate", &raw.client_certificate),
        ("privateKey", &raw.private_key),
        ("caCertificates", &raw.ca_certificates),
        ("caCrl", &raw.ca_crl),
    ] {
        let help = "keep the files, or put them into the secret that credentialName names";
        if shared::exclude(
            [credential, (name, shared::text_span(field))],
            DR181,
            help,
            check,
        ) {
            return;
        }
    }
}

fn own_certificate(raw: &raw::istio::ClientTlsSettings, span: Span, check: &mut Check<'_>) {
    if !shared::text_span(&raw.credential_name).is_none() {
        return;
    }
    for (name, field, code) in [
        (
            "client certificate: write `clientCertificate`",
            &raw.client_certificate,
            DR182,
        ),
        ("private key: write `privateKey`", &raw.private_key, DR183),
    ] {
        if shared::text_span(field).is_none() {
            let (what, help) = name.split_once(": ").unwrap_or((name, ""));
            check
                .error(code, span, format!("MUTUAL needs a {what}"))
                .help(format!("{help}, or `credentialName`"));
        }
    }
}

/// Checks that no settings for verification are present if verification is off.
fn verification(raw: &raw::istio::ClientTlsSettings, mode: ClientTlsMode, check: &mut Check<'_>) {
    if !shared::flag(&raw.insecure_skip_verify) {
        return;
    }
    let simple = mode == ClientTlsMode::Simple;
    let code = if simple { DR184 } else { DR185 };
    for (name, span) in [
        ("caCertificates", shared::text_span(&raw.ca_certificates)),
        (
            "credentialName",
            if simple {
                shared::text_span(&raw.credential_name)
            } else {
                Span::NONE
            },
        ),
        ("subjectAltNames", shared::list(&raw.subject_alt_names)),
    ] {
        if !span.is_none() {
            let location = check.location(raw.insecure_skip_verify.span());
            check
                .error(
                    code,
                    span,
                    format!("insecureSkipVerify contradicts `{name}`"),
                )
                .help("remove insecureSkipVerify to have the server verified")
                .related(location, "insecureSkipVerify is set here");
        }
    }
}

fn config_map(field: &Field<String>, check: &mut Check<'_>) {
    let name = shared::text(field).and_then(|name| name.strip_prefix(CONFIG_MAP));
    let Some((namespace, _)) = name.and_then(|name| name.split_once('/')) else {
        return;
    };
    if namespace != check.namespace() {
        let message = format!(
            "the ConfigMap is in namespace `{namespace}`, not in `{}`",
            check.namespace()
        );
        check
            .error(DR186, field.span(), message)
            .help("name a ConfigMap of the resource's own namespace");
    }
}
