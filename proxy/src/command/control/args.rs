//! Arguments of `strait control`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgGroup, Args, Subcommand};
use config_loader::ApiServer;
use config_server::access::{Role, pki, tokens};

use super::data::{DataArgs, own_cluster};
use super::gateways::GatewayControllerArgs;
use super::identities::{IdentitiesArgs, IdentityArgs};
use super::inject::WebhookArgs;
use super::injected::InjectedArgs;
use super::status::StatusArgs;
use crate::command::args::{OnOff, read_clusters_file, socket_address};
use crate::control::remote_clusters::ClustersFile;
use crate::runtime::duration::duration;

/// Arguments of `strait control`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
#[command(after_help = "\
The first start makes a CA, a certificate and two kubeconfig files in the data directory: admin.kubeconfig for kubectl, \
proxy.kubeconfig for proxies.

Examples:
  strait control --data /var/lib/strait
  kubectl --kubeconfig /var/lib/strait/admin.kubeconfig apply -f mesh/
  strait control status --data /var/lib/strait
  strait control token create ci --data /var/lib/strait --role writer:shop,cart
  strait control backup /backups/strait.backup --data /var/lib/strait
  strait control --data /var/lib/strait --etcd https://etcd-1:2379,https://etcd-2:2379 --etcd-ca ca.crt
  strait control --status-for kubernetes://east
  strait control --imports-between kubernetes://east=eu/a/prod/east,kubernetes://west=eu/b/prod/west --clusters clusters.yaml
  strait control --inject --lease-namespace strait-system --health 0.0.0.0:15021
  strait control --data /var/lib/strait --issue-identities
  strait control --serve kubernetes:// --inject --lease-namespace strait-system --health 0.0.0.0:15021")]
pub struct ControlArgs {
    /// Subcommand; the server runs without one.
    #[command(subcommand)]
    pub command: Option<ControlCommand>,
    /// The server.
    #[command(flatten)]
    pub server: ServerArgs,
}

const DATA_HELP: &str =
    "Data directory: the store, certificates, tokens, the audit log. Made if it does not exist";

/// Settings of the server.
#[derive(Debug, Args)]
#[command(mut_arg("data", |data| data.help(DATA_HELP)))]
#[command(group = ArgGroup::new("writer").multiple(true).args(["serve", "inject", "status_for", "imports_between"]))]
#[command(group = ArgGroup::new("in_cluster").multiple(true).args(["serve", "inject"]))]
pub struct ServerArgs {
    /// The data directory.
    #[command(flatten)]
    pub data: DataArgs,
    /// Address of the API, HTTPS only [default: 127.0.0.1:6444, and 0.0.0.0:6444 with --serve]
    #[arg(long, value_name = "IP:PORT", env = "STRAIT_CONTROL_LISTEN", value_parser = socket_address)]
    pub listen: Option<SocketAddr>,
    /// Serve the objects of this API server to proxies over xDS, as a hub, instead of those of a data directory. Combines with
    /// --inject and --status-for
    #[arg(
        long,
        value_name = "kubernetes://[CONTEXT]",
        conflicts_with_all = ["data", "etcd", "tls_cert", "imports_between"],
        env = "STRAIT_CONTROL_SERVE",
        value_parser = own_cluster
    )]
    pub serve: Option<ApiServer>,
    /// Whether --serve includes pods, nodes and namespaces: on, or off for proxies that use neither subsets by labels of pods, nor
    /// automatic mutual TLS, nor regions of nodes
    #[arg(
        long = "control-workloads",
        value_name = "on|off",
        env = "STRAIT_CONTROL_WORKLOADS",
        value_enum,
        default_value = "on",
        requires = "serve"
    )]
    pub control_workloads: OnOff,
    /// Certificate of the server with its chain, PEM, instead of one of its own CA. With --inject, its CA is not written to the
    /// configurations of webhooks, which cert-manager does by an annotation; a renewed certificate is read within 10 s
    #[arg(
        long,
        value_name = "FILE",
        requires = "tls_key",
        env = "STRAIT_CONTROL_TLS_CERT"
    )]
    pub tls_cert: Option<PathBuf>,
    /// Key of that certificate
    #[arg(
        long,
        value_name = "FILE",
        requires = "tls_cert",
        env = "STRAIT_CONTROL_TLS_KEY"
    )]
    pub tls_key: Option<PathBuf>,
    /// Further names and addresses of the server's own certificate. May be repeated. The kubeconfig files name the server by the
    /// first one
    #[arg(
        long,
        value_name = "NAME",
        value_delimiter = ',',
        value_parser = pki::parse_name,
        env = "STRAIT_CONTROL_TLS_NAMES"
    )]
    pub tls_name: Vec<String>,
    /// Name of the context, of the cluster and, before a dash, of the user in the kubeconfig files. Files of several servers can
    /// be merged if each has a name of its own
    #[arg(
        long,
        value_name = "NAME",
        default_value = config_server::CONTEXT,
        value_parser = context_name,
        env = "STRAIT_CONTROL_CONTEXT"
    )]
    pub context: String,
    /// Write the conditions of the resources of this API server instead of those of a data directory. Of several instances one
    /// writes, elected by a Lease
    #[arg(
        long,
        value_name = "kubernetes://[CONTEXT]",
        conflicts_with = "imports_between",
        env = "STRAIT_CONTROL_STATUS_FOR"
    )]
    pub status_for: Option<ApiServer>,
    /// Write the ServiceImports of these clusters, from what each exports to the others, instead of serving anything; and the
    /// conditions Valid and Conflict of ServiceExports. Of several instances one writes to a cluster, elected by a Lease there
    #[arg(
        long,
        value_name = "kubernetes://CONTEXT=KEY,...",
        env = "STRAIT_CONTROL_IMPORTS_BETWEEN",
        value_delimiter = ',',
        value_parser = importing_cluster
    )]
    pub imports_between: Vec<ApiServer>,
    /// Remote clusters file with the gateways of the clusters of --imports-between, YAML; it takes precedence over Cluster
    /// objects, and is followed
    #[arg(
        long,
        value_name = "FILE",
        requires = "imports_between",
        env = "STRAIT_CONTROL_CLUSTERS",
        value_parser = read_clusters_file
    )]
    pub clusters: Option<ClustersFile>,
    /// Kubeconfig for --serve, --status-for, --imports-between and --inject [default: KUBECONFIG, ~/.kube/config, or the service
    /// account of the pod]
    #[arg(
        long,
        value_name = "FILE",
        requires = "writer",
        env = "STRAIT_CONTROL_KUBECONFIG"
    )]
    pub kubeconfig: Option<PathBuf>,
    /// Namespace of the Lease of --status-for and --imports-between, and of the Secret and the Services of --inject and --serve
    #[arg(
        long,
        value_name = "NAME",
        default_value = "default",
        env = "STRAIT_CONTROL_LEASE_NAMESPACE"
    )]
    pub lease_namespace: String,
    /// Controller of the Gateway API.
    #[command(flatten)]
    pub gateways: GatewayControllerArgs,
    /// The webhook that adds sidecars.
    #[command(flatten)]
    pub webhook: WebhookArgs,
    /// The CA of workloads.
    #[command(flatten)]
    pub identities: IdentitiesArgs,
    /// Log filter: a level, or directives
    #[arg(
        long,
        value_name = "FILTER",
        default_value = "info",
        env = "STRAIT_LOG_LEVEL"
    )]
    pub log_level: String,
}

/// Subcommands of `strait control`.
#[derive(Debug, Subcommand)]
pub enum ControlCommand {
    /// List the proxies that follow a config server: what each has in effect, and what it rejects
    Status(StatusArgs),
    /// List the pods with a sidecar that the injector has added, and its image
    Injected(InjectedArgs),
    /// Create, list and revoke the tokens of users
    Token(TokenArgs),
    /// Show and rotate the CA of --issue-identities, and create join tokens
    Identity(IdentityArgs),
    /// Apply the resources in files, as often as needed: what is as in the files stays as it is
    ///
    /// Needs the server stopped, unless its objects are in etcd; kubectl applies files to a running one. An object with an
    /// error is reported with its file and line and stops no other; the exit code is 1 then
    Import {
        /// File or directory of resources (YAML or JSON); directories are read recursively
        #[arg(value_name = "PATH", required = true)]
        paths: Vec<PathBuf>,
        /// The data directory.
        #[command(flatten)]
        data: DataArgs,
    },
    /// Write each object to a YAML file, which `import`, `strait check` and kubectl read
    ///
    /// Needs the server stopped, unless its objects are in etcd. Secrets are written as they are
    Export {
        /// New or empty directory
        #[arg(value_name = "DIR")]
        directory: PathBuf,
        /// The data directory.
        #[command(flatten)]
        data: DataArgs,
    },
    /// Write all objects, tokens (hashed) and the CA to one file with a checksum, while the server runs or not
    Backup {
        /// The file, which is replaced at once. It holds Secrets and the key of the CA
        file: PathBuf,
        /// The data directory.
        #[command(flatten)]
        data: DataArgs,
    },
    /// Restore a backup into a new data directory, or into an etcd without keys of Strait
    Restore {
        /// The file
        file: PathBuf,
        /// The data directory.
        #[command(flatten)]
        data: DataArgs,
    },
}

/// Arguments of `strait control token`.
#[derive(Debug, Args)]
pub struct TokenArgs {
    /// Subcommand of `strait control token`.
    #[command(subcommand)]
    pub command: TokenCommand,
}

/// Subcommands of `strait control token`.
#[derive(Debug, Subcommand)]
pub enum TokenCommand {
    /// Create a token and print it; it is stored nowhere
    Create {
        /// Name of its user: lowercase letters, digits, `-` and `.`
        #[arg(value_parser = tokens::parse_name)]
        name: String,
        /// Role of the token: admin, reader, proxy, proxy:NAMESPACE,... or writer:NAMESPACE,...
        #[arg(long, value_name = "ROLE", env = "STRAIT_TOKEN_ROLE")]
        role: Role,
        /// Lifetime of the token, at most 87600h; default: it never expires
        #[arg(long, value_name = "TIME", env = "STRAIT_TOKEN_EXPIRES", value_parser = lifetime)]
        expires: Option<Duration>,
        /// The data directory.
        #[command(flatten)]
        data: DataArgs,
    },
    /// List the tokens
    List {
        /// The data directory.
        #[command(flatten)]
        data: DataArgs,
    },
    /// Revoke a token, at once
    Revoke {
        /// Name of its user
        name: String,
        /// The data directory.
        #[command(flatten)]
        data: DataArgs,
    },
}

/// Parses the name of a context, which is written to YAML unquoted.
fn context_name(text: &str) -> Result<String, String> {
    const OTHER_THAN_TEXT: [&str; 9] =
        ["false", "n", "no", "null", "off", "on", "true", "y", "yes"];
    let is_inner = |c: char| c.is_ascii_alphanumeric() || "-_.@/".contains(c);
    let is_plain = text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.chars().all(is_inner)
        && !OTHER_THAN_TEXT.contains(&&*text.to_ascii_lowercase());
    match is_plain {
        true => Ok(text.to_owned()),
        false => Err(
            "use letters, digits, `-`, `_`, `.`, `@` and `/`, with a letter first, such as east"
                .to_owned(),
        ),
    }
}

/// Parses the lifetime of a token.
fn lifetime(text: &str) -> Result<Duration, String> {
    tokens::check_lifetime(duration(text)?)
}

impl ServerArgs {
    /// Returns the files with the certificate of the server, if there are any.
    pub fn files(&self) -> Option<pki::Files> {
        let files = self.tls_cert.clone().zip(self.tls_key.clone())?;
        let (certificate, key) = files;
        Some(pki::Files { certificate, key })
    }
}

/// Parses `kubernetes://CONTEXT=REGION/ZONE/GROUP/NAME`.
fn importing_cluster(text: &str) -> Result<ApiServer, String> {
    let server: ApiServer = text.parse()?;
    match server.cluster {
        Some(_) => Ok(server),
        None => Err(format!(
            "`{text}` does not say which cluster it is: write kubernetes://CONTEXT=REGION/ZONE/GROUP/NAME"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn context_is_a_plain_word_of_yaml() {
        for good in ["strait", "c1", "admin@east", "eu/a_b.c-d"] {
            assert_eq!(context_name(good).as_deref(), Ok(good));
        }
        for wrong in [
            "", "a: b", "a\nb", "-a", "a b", "\"a\"", "[a]", "ä", "1e3", "True",
        ] {
            let error = context_name(wrong).unwrap_err();
            assert!(error.contains("such as east"), "{wrong}: {error}");
        }
    }
}
