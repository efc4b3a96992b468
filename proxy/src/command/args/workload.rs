//! Arguments about the identity of the workload within the mesh.

use clap::{Args, ValueEnum};

use crate::identity::{FileSet, IdentityKind, WorkloadIdentity};

/// The identity of the workload within the mesh.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Workload identity")]
pub struct WorkloadArgs {
    /// Directory of the mesh identity: cert-chain.pem, key.pem and root-cert.pem; tls.crt, tls.key and ca.crt; svid.pem,
    /// svid_key.pem and svid_bundle.pem; or certificates.pem, private_key.pem and ca_certificates.pem
    #[arg(
        long,
        value_name = "DIR",
        default_value = "/etc/certs",
        env = "STRAIT_MESH_CERTS"
    )]
    pub mesh_certs: String,
    /// Certificate of the workload, PEM, with its SPIFFE id; default: cert-chain.pem in --mesh-certs. Its changes are
    /// followed
    #[arg(long, value_name = "FILE", env = "STRAIT_WORKLOAD_CERT")]
    pub workload_cert: Option<String>,
    /// Key of that certificate, PEM; default: key.pem in --mesh-certs
    #[arg(long, value_name = "FILE", env = "STRAIT_WORKLOAD_KEY")]
    pub workload_key: Option<String>,
    /// CA certificates that the other workloads are verified by, PEM; default: root-cert.pem in --mesh-certs
    #[arg(long, value_name = "FILE", env = "STRAIT_MESH_CA")]
    pub mesh_ca: Option<String>,
    /// Trust domain of SPIFFE ids; default: --domain
    #[arg(long, value_name = "DOMAIN", env = "STRAIT_TRUST_DOMAIN", value_parser = parse_trust_domain)]
    pub trust_domain: Option<String>,
    /// Other names of the trust domain, such as its former one. May be repeated
    #[arg(
        long,
        value_name = "DOMAIN,...",
        env = "STRAIT_TRUST_DOMAIN_ALIASES",
        value_delimiter = ',',
        value_parser = parse_trust_domain
    )]
    pub trust_domain_aliases: Vec<String>,
    /// Service account of the workload, which its certificate must name; default: any
    #[arg(long, value_name = "NAME", env = "STRAIT_SERVICE_ACCOUNT")]
    pub service_account: Option<String>,
    /// SPIFFE ids that the certificate of the workload may have
    #[arg(long, value_enum, default_value_t = SpiffeIdFormatArg::Istio, env = "STRAIT_SPIFFE_ID_FORMAT")]
    pub spiffe_id_format: SpiffeIdFormatArg,
}

/// `--spiffe-id-format`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SpiffeIdFormatArg {
    /// Any path after the trust domain; peers without namespace and service account match no policy by them
    Any,
    /// Istio's: /ns/NAMESPACE/sa/ACCOUNT, with --namespace and --service-account
    Istio,
}

impl WorkloadArgs {
    /// Returns the identity that these arguments describe, in a mesh with this domain.
    pub(super) fn identity(&self, domain: &str) -> WorkloadIdentity {
        // manifests leave variables empty
        let text = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
        let aliases = self.trust_domain_aliases.iter();
        let aliases = aliases.filter(|alias| !alias.is_empty());
        WorkloadIdentity {
            kind: IdentityKind::Files,
            file_set: FileSet::default(),
            certificate: text(&self.workload_cert),
            key: text(&self.workload_key),
            authorities: text(&self.mesh_ca),
            trust_domain: text(&self.trust_domain).unwrap_or_else(|| domain.to_owned()),
            trust_domain_aliases: aliases.cloned().collect(),
            service_account: text(&self.service_account),
            has_any_path: self.spiffe_id_format == SpiffeIdFormatArg::Any,
        }
    }
}

/// Parses a trust domain (SPIFFE-ID, section 2.1), or empty text.
pub(crate) fn parse_trust_domain(text: &str) -> Result<String, String> {
    let allowed = |byte: u8| {
        byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'.' | b'_' | b'-')
    };
    match text {
        _ if text.starts_with("spiffe://") => {
            Err("expected the domain alone, such as cluster.local".to_owned())
        }
        _ if text.len() <= 255 && text.bytes().all(allowed) => Ok(text.to_owned()),
        _ => Err("a trust domain has lower-case letters, digits, '.', '_' and '-'".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trust_domains_are_names_in_lower_case() {
        for right in ["cluster.local", "a-b_1", ""] {
            assert_eq!(parse_trust_domain(right).as_deref(), Ok(right));
        }
        for wrong in ["spiffe://a", "A", "a/b", "a b"] {
            assert!(parse_trust_domain(wrong).is_err(), "{wrong:?}");
        }
    }
}
