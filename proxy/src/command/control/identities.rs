//! Arguments of `strait control --issue-identities`, and `strait control identity`.

use std::fmt::Write;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use config_loader::ApiServer;
use config_loader::source::{connect, in_words};
use config_server::IssueIdentities;
use config_server::identities::{
    CaFiles, Command, EXPIRES_MAX, Keep, NewJoinToken, Times, commands,
};
use config_server::remote::Remote;
use serde_json::Value;

use super::data::{DataArgs, own_cluster};
use crate::command::args::OutputArg;
use crate::command::args::parse_trust_domain;
use crate::command::exit::show;
use crate::runtime::duration::duration;

/// Settings of the CA.
#[derive(Debug, Args)]
#[command(next_help_heading = "Identities")]
pub struct IdentitiesArgs {
    /// Sign certificates of workloads (--identity strait-ca, or any client of Istio's CA), on the port of --serve for tokens of
    /// service accounts, and on that of a data directory for join tokens
    #[arg(long, env = "STRAIT_CONTROL_ISSUE_IDENTITIES")]
    pub issue_identities: bool,
    /// Trust domain of the identities
    #[arg(
        long,
        value_name = "DOMAIN",
        default_value = "cluster.local",
        env = "STRAIT_CONTROL_TRUST_DOMAIN",
        value_parser = trust_domain
    )]
    pub trust_domain: String,
    /// Maximum life of a certificate of a workload, from 1m to 2160h
    #[arg(
        long,
        value_name = "DURATION",
        default_value = "24h",
        env = "STRAIT_CONTROL_MAX_TTL",
        value_parser = life
    )]
    pub max_ttl: Duration,
    /// Maximum time from a join to the last renewal by certificate; then a workload needs another join token
    #[arg(
        long,
        value_name = "DURATION",
        default_value = "720h",
        env = "STRAIT_CONTROL_MAX_RENEWAL_CHAIN",
        value_parser = duration
    )]
    pub max_renewal_chain: Duration,
    /// Accept tokens of service accounts that are not bound to a pod: a copied token gets the identity on any machine
    #[arg(
        long,
        requires_all = ["issue_identities", "serve"],
        env = "STRAIT_CONTROL_ALLOW_UNBOUND_TOKENS"
    )]
    pub allow_unbound_tokens: bool,
    /// Certificate of an own CA, such as an intermediate one, followed by those between it and the root, PEM, instead of keys
    /// that Strait makes; followed
    #[arg(
        long,
        value_name = "FILE",
        requires_all = ["issue_identities", "ca_key", "ca_root"],
        env = "STRAIT_CONTROL_CA_CERT"
    )]
    pub ca_cert: Option<PathBuf>,
    /// Key of --ca-cert, PEM; followed
    #[arg(
        long,
        value_name = "FILE",
        requires = "ca_cert",
        env = "STRAIT_CONTROL_CA_KEY"
    )]
    pub ca_key: Option<PathBuf>,
    /// Roots that workloads trust with --ca-cert, PEM; followed
    #[arg(
        long,
        value_name = "FILE",
        requires = "ca_cert",
        env = "STRAIT_CONTROL_CA_ROOT"
    )]
    pub ca_root: Option<PathBuf>,
}

impl IdentitiesArgs {
    /// Returns the settings of the CA; `None` without the role.
    pub(super) fn settings(&self) -> Option<IssueIdentities> {
        let files = self.ca_cert.clone().zip(self.ca_key.clone());
        let files = files.zip(self.ca_root.clone());
        self.issue_identities.then(|| IssueIdentities {
            trust_domain: self.trust_domain.clone(),
            allows_unbound: self.allow_unbound_tokens,
            files: files.map(|((certificate, key), root)| CaFiles {
                certificate,
                key,
                root,
            }),
            times: Times {
                life_max: self.max_ttl,
                renewal_chain_max: self.max_renewal_chain,
                ..Times::default()
            },
        })
    }
}

/// Arguments of `strait control identity`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  strait control identity token create --namespace shop --service-account cart --data /var/lib/strait
  strait control identity status --data /var/lib/strait
  strait control identity rotate --now --hub kubernetes:// --lease-namespace strait-system")]
pub struct IdentityArgs {
    /// Subcommand of `strait control identity`.
    #[command(subcommand)]
    pub command: IdentityCommand,
}

/// Subcommands of `strait control identity`.
#[derive(Debug, Subcommand)]
pub enum IdentityCommand {
    /// Replace the root of the CA, in steps that the server makes one after the other
    Rotate {
        /// Begin now, and not only when the root is old
        #[arg(long, env = "STRAIT_CONTROL_ROTATE_NOW")]
        now: bool,
        /// The CA.
        #[command(flatten)]
        place: PlaceArgs,
    },
    /// Show the root of the CA, and how far a rotation is
    Status {
        /// The CA.
        #[command(flatten)]
        place: PlaceArgs,
        /// Form of the output
        #[arg(
            long,
            short,
            value_name = "FORM",
            default_value = "text",
            env = "STRAIT_OUTPUT"
        )]
        output: OutputArg,
    },
    /// Create, list and revoke join tokens, for workloads outside Kubernetes
    Token(JoinTokenArgs),
}

/// Arguments of `strait control identity token`.
#[derive(Debug, Args)]
pub struct JoinTokenArgs {
    /// Subcommand of `strait control identity token`.
    #[command(subcommand)]
    pub command: JoinTokenCommand,
}

/// Subcommands of `strait control identity token`.
#[derive(Debug, Subcommand)]
pub enum JoinTokenCommand {
    /// Create a join token and print it; it is stored nowhere
    Create {
        /// Namespace of the workload
        #[arg(long, value_name = "NAME", env = "STRAIT_NAMESPACE")]
        namespace: String,
        /// Service account of the workload
        #[arg(long, value_name = "NAME", env = "STRAIT_SERVICE_ACCOUNT")]
        service_account: String,
        /// Number of uses: a proxy needs one at each start
        #[arg(
            long,
            value_name = "COUNT",
            default_value_t = 1,
            env = "STRAIT_TOKEN_USES"
        )]
        uses: u32,
        /// Time in which it can be used, at most 720h
        #[arg(
            long,
            value_name = "DURATION",
            default_value = "1h",
            env = "STRAIT_TOKEN_EXPIRES",
            value_parser = expires
        )]
        expires: Duration,
        /// The data directory.
        #[command(flatten)]
        data: DataArgs,
    },
    /// List the join tokens
    List {
        /// The data directory.
        #[command(flatten)]
        data: DataArgs,
    },
    /// Revoke a join token; what joined with it renews its certificate no more
    Revoke {
        /// Name of the join token, as `list` shows it
        name: String,
        /// The data directory.
        #[command(flatten)]
        data: DataArgs,
    },
}

/// Place of the keys of a CA.
#[derive(Debug, Args)]
pub struct PlaceArgs {
    /// API server whose Secret strait-ca has the keys of a CA beside --serve, instead of those of a data directory
    #[arg(
        long,
        value_name = "kubernetes://[CONTEXT]",
        conflicts_with_all = ["data", "etcd"],
        env = "STRAIT_CONTROL_HUB",
        value_parser = own_cluster
    )]
    pub hub: Option<ApiServer>,
    /// Kubeconfig for --hub [default: KUBECONFIG, ~/.kube/config, or the service account of the pod]
    #[arg(
        long,
        value_name = "FILE",
        requires = "hub",
        env = "STRAIT_CONTROL_KUBECONFIG"
    )]
    pub kubeconfig: Option<PathBuf>,
    /// Namespace of the Secret
    #[arg(
        long,
        value_name = "NAME",
        default_value = "default",
        env = "STRAIT_CONTROL_LEASE_NAMESPACE"
    )]
    pub lease_namespace: String,
    /// The data directory.
    #[command(flatten)]
    pub data: DataArgs,
}

/// Runs `strait control identity`.
///
/// # Errors
/// If the command fails; the text is for users.
pub(super) async fn run(args: &IdentityArgs) -> Result<(), String> {
    match &args.command {
        IdentityCommand::Rotate { now: false, .. } => {
            return Err(
                "the server rotates an old root by itself; add --now to begin at once".to_owned(),
            );
        }
        IdentityCommand::Rotate { now: true, place } => {
            let status = at_place(place, &Command::Rotate).await?;
            show(text(&status).trim_end());
        }
        IdentityCommand::Status { place, output } => {
            let status = at_place(place, &Command::Status).await?;
            match output {
                OutputArg::Text => show(text(&status).trim_end()),
                OutputArg::Json => show(&format!("{status:#}")),
            }
        }
        IdentityCommand::Token(token) => run_token(&token.command).await?,
    }
    Ok(())
}

async fn run_token(command: &JoinTokenCommand) -> Result<(), String> {
    match command {
        JoinTokenCommand::Create {
            namespace,
            service_account,
            uses,
            expires,
            data,
        } => {
            let new = Command::CreateToken(NewJoinToken {
                namespace: namespace.clone(),
                service_account: service_account.clone(),
                uses: *uses,
                expires_in: expires.as_secs(),
            });
            let created = in_data(data, &new).await?;
            show(created["token"].as_str().unwrap_or_default());
        }
        JoinTokenCommand::List { data } => {
            let tokens = in_data(data, &Command::ListTokens).await?;
            for token in tokens.as_array().into_iter().flatten() {
                let field = |name: &str| token[name].as_str().unwrap_or_default().to_owned();
                let workload = format!("{}/{}", field("namespace"), field("service_account"));
                let expires = token["expires_at"].as_str().unwrap_or_default();
                show(&format!(
                    "{:30} {workload:40} uses left {}, created {}, expires {expires}",
                    field("name"),
                    token["uses_left"],
                    field("created"),
                ));
            }
        }
        JoinTokenCommand::Revoke { name, data } => {
            in_data(data, &Command::RevokeToken(name.clone())).await?;
        }
    }
    Ok(())
}

async fn at_place(place: &PlaceArgs, command: &Command) -> Result<Value, String> {
    let Some(hub) = &place.hub else {
        return in_data(&place.data, command).await;
    };
    let client = Remote::new(hub.clone(), place.kubeconfig.clone())
        .client()
        .await?;
    let keep = Keep::of_cluster(client, &place.lease_namespace);
    commands::run(&keep, command).await
}

/// Runs a command on the server of a data directory, or on its store if no server runs.
async fn in_data(data: &DataArgs, command: &Command) -> Result<Value, String> {
    let location = data.location();
    if !location.is_served()? {
        let opened = location.open().await?;
        return commands::run(&Keep::Store(opened.store()), command).await;
    }
    let kubeconfig = data.data.join("admin.kubeconfig");
    let server = ApiServer {
        context: String::new(),
        cluster: None,
    };
    let client = connect(&server, Some(&kubeconfig)).await?;
    let body = serde_json::to_vec(command).map_err(|error| error.to_string())?;
    let request = http::Request::post(commands::PATH).body(body);
    let request = request.map_err(|error| error.to_string())?;
    let answer = client.request::<Value>(request).await;
    answer.map_err(|error| in_words(&error))
}

/// Returns the state of a CA for people.
fn text(status: &Value) -> String {
    let mut text = String::new();
    let mut authority = |title: &str, authority: &Value| {
        for (part, label) in [("root", title), ("intermediate", "  signs below it by")] {
            let field = |name: &str| authority[part][name].as_str().unwrap_or("?");
            // Writing to a string cannot fail.
            let _ = writeln!(
                text,
                "{label:20} {}, until {}, SHA-256 {}",
                field("name"),
                field("not_after"),
                field("sha256")
            );
        }
    };
    authority("root", &status["current"]);
    let rotation = &status["rotation"];
    if rotation.is_null() {
        return text + "no rotation goes on\n";
    }
    authority("next root", &rotation["next"]);
    let step = match rotation["step"].as_str() {
        Some("publish") => "1 of 3: both roots are published, the old one signs",
        _ => "2 of 3: both roots are published, the new one signs",
    };
    let field = |name: &str| rotation[name].as_str().unwrap_or("?");
    let (since, next) = (field("since"), field("next_step_after"));
    let _ = writeln!(
        text,
        "rotation, step {step}, since {since}, next step after {next}"
    );
    text
}

/// Parses `--trust-domain`.
fn trust_domain(text: &str) -> Result<String, String> {
    match parse_trust_domain(text)? {
        empty if empty.is_empty() => Err("write a trust domain, such as cluster.local".to_owned()),
        domain => Ok(domain),
    }
}

/// Parses `--max-ttl`.
fn life(text: &str) -> Result<Duration, String> {
    let life = duration(text)?;
    match (Duration::from_secs(60)..=Duration::from_secs(90 * 86_400)).contains(&life) {
        true => Ok(life),
        false => Err("a certificate is issued for 1m to 2160h (90 days)".to_owned()),
    }
}

/// Parses `--expires`.
fn expires(text: &str) -> Result<Duration, String> {
    let expires = duration(text)?;
    match (Duration::from_secs(1)..=EXPIRES_MAX).contains(&expires) {
        true => Ok(expires),
        false => Err("a join token is valid for 1s to 720h".to_owned()),
    }
}
