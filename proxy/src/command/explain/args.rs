//! Arguments of `strait explain`.

use clap::{ArgGroup, Args};

use crate::command::args::{FilesArgs, IdentityArgs, OutputArg, ReadingArgs};

const HELP: &str = "\
Loads and compiles the configuration as `strait run` does, and uses the same matcher as traffic. Shows the listener, the \
virtual host, each rule up to the match and why it did not match (field, wanted, got, file:line), the rule that matched, \
its actions, and the destinations with the probability of each endpoint. Nothing is sent.

Give the identity of the proxy: a Gateway is served by the proxies whose labels it selects.

Examples:
  export STRAIT_CONFIG=./mesh STRAIT_LABELS=istio=ingressgateway
  strait explain GET http://shop.example/cart
  strait explain -X POST /cart -H 'Host: shop.example' -H 'end-user: jason'
  strait explain --listener 8081 GET http://shop.example/
  strait explain CONNECT tls://db.example:5432
  strait explain CONNECT tcp://127.0.0.1:9000
  strait explain --identity cluster.local/ns/web/sa/web DELETE http://shop.example/cart
  strait explain --admin 127.0.0.1:15000 GET http://shop.example/cart
  strait explain -o json GET http://shop.example/ | jq .destinations

Exit codes: 0 a rule matches the request (even if no endpoint can serve it), 1 no rule does, nothing listens or --admin cannot be reached, 2 the usage is wrong.";

/// Arguments of `strait explain`.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
#[command(group(ArgGroup::new("source").args(["paths", "admin"]).required(true).multiple(true)))]
pub struct ExplainArgs {
    /// Files that resources come from.
    #[command(flatten)]
    pub files: FilesArgs,
    /// Strictness of reading.
    #[command(flatten)]
    pub reading: ReadingArgs,
    /// Ask the admin server of a running proxy instead of files, for its current state. It knows its configuration and
    /// identity
    #[arg(long, value_name = "HOST:PORT", env = "STRAIT_EXPLAIN_ADMIN")]
    pub admin: Option<String>,
    /// Identity of the proxy.
    #[command(flatten)]
    pub identity: IdentityArgs,
    /// Listener of the request; default: the one with the URL's port, else one that serves the host
    #[arg(long, value_name = "IP:PORT|PORT", env = "STRAIT_EXPLAIN_LISTENER")]
    pub listener: Option<String>,
    /// Address of the client, for session affinity and hashing by address
    #[arg(long, value_name = "IP", env = "STRAIT_EXPLAIN_CLIENT")]
    pub client: Option<String>,
    /// Identity of the client that policies see, as its certificate would prove it: DOMAIN/ns/NAMESPACE/sa/ACCOUNT
    #[arg(
        long = "identity",
        value_name = "PRINCIPAL",
        env = "STRAIT_EXPLAIN_IDENTITY"
    )]
    pub client_identity: Option<String>,
    /// Claims that policies see, as if a token with them were verified: a JSON object
    #[arg(long, value_name = "JSON", env = "STRAIT_EXPLAIN_JWT")]
    pub jwt: Option<String>,
    /// Header of the request; may be repeated
    #[arg(
        short = 'H',
        long = "header",
        value_name = "NAME: VALUE",
        env = "STRAIT_EXPLAIN_HEADER"
    )]
    pub headers: Vec<String>,
    /// Format of the output
    #[arg(short, long, value_enum, default_value_t = OutputArg::Text, env = "STRAIT_OUTPUT")]
    pub output: OutputArg,
    /// Show every rule and every condition, not only the deciding ones
    #[arg(long, env = "STRAIT_EXPLAIN_ALL")]
    pub all: bool,
    /// Method of the request, as with `-X` of curl; default: GET
    #[arg(
        short = 'X',
        long = "request",
        value_name = "METHOD",
        conflicts_with = "url",
        env = "STRAIT_EXPLAIN_REQUEST"
    )]
    pub request: Option<String>,
    /// Method of the request. It may be left out
    #[arg(value_name = "METHOD")]
    pub first: String,
    /// http://host:port/path?query, or a path with -H 'Host: ...'; tls://name:port or tcp://host:port for connections
    #[arg(value_name = "URL")]
    pub url: Option<String>,
}

impl ExplainArgs {
    /// Method of the request.
    pub fn method(&self) -> &str {
        match (&self.url, &self.request) {
            (Some(_), _) => &self.first,
            (None, Some(method)) => method,
            (None, None) => "GET",
        }
    }

    /// URL of the request.
    pub fn url(&self) -> &str {
        self.url.as_ref().unwrap_or(&self.first)
    }
}
