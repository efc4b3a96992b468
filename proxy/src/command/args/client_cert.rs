//! Argument about `x-forwarded-client-cert` at a gateway.

use clap::ValueEnum;

use crate::exchange::settings::ClientCertHeader;

/// `--client-cert-header`, with Envoy's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ClientCertHeaderArg {
    /// Pass on the header of every client
    #[value(name = "ALWAYS_FORWARD_ONLY")]
    AlwaysForwardOnly,
    /// Add the certificate of a verified client to its header; remove the header of other clients
    #[value(name = "APPEND_FORWARD")]
    AppendForward,
    /// Pass on the header of a verified client; remove that of other clients
    #[value(name = "FORWARD_ONLY")]
    ForwardOnly,
    /// Send no header
    #[value(name = "SANITIZE")]
    Sanitize,
    /// Send the certificate of a verified client alone
    #[value(name = "SANITIZE_SET")]
    SanitizeSet,
}

impl From<ClientCertHeaderArg> for ClientCertHeader {
    fn from(arg: ClientCertHeaderArg) -> Self {
        match arg {
            ClientCertHeaderArg::AlwaysForwardOnly => Self::AlwaysForwardOnly,
            ClientCertHeaderArg::AppendForward => Self::AppendForward,
            ClientCertHeaderArg::ForwardOnly => Self::ForwardOnly,
            ClientCertHeaderArg::Sanitize => Self::Sanitize,
            ClientCertHeaderArg::SanitizeSet => Self::SanitizeSet,
        }
    }
}
