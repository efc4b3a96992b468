//! Arguments about Ingresses.

use std::net::IpAddr;
use std::sync::Arc;

use clap::{Args, ValueEnum};
use config_loader::Name;
use config_loader::ingress::{HostOwner, IngressSettings, NginxRegex};

/// Ingresses that are served.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Ingress")]
pub struct IngressArgs {
    /// Serve Ingresses, on the ports 80 and 443 or what --listen-ports has for them
    #[arg(long, env = "STRAIT_INGRESS")]
    pub ingress: bool,
    /// Reading of Ingresses.
    #[command(flatten)]
    pub reading: IngressReadingArgs,
    /// Addresses that are opened for Ingresses. Default: all
    #[arg(
        long,
        value_name = "IP",
        env = "STRAIT_INGRESS_ADDRESS",
        value_delimiter = ',',
        requires = "ingress"
    )]
    pub ingress_address: Vec<IpAddr>,
}

/// Classes of the Ingresses that are served: the same for proxies, `strait migrate` and `strait control`.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Ingress")]
pub struct IngressClassArgs {
    /// Controllers whose IngressClasses are served. With k8s.io/ingress-nginx, its Ingresses are served in its place, with its
    /// defaults
    #[arg(
        long,
        value_name = "DOMAIN/PATH",
        default_value = IngressSettings::CONTROLLER,
        env = "STRAIT_INGRESS_CONTROLLER",
        value_delimiter = ','
    )]
    pub ingress_controller: Vec<String>,
    /// Classes that are served by their names: in the annotation kubernetes.io/ingress.class, or where no IngressClass has the
    /// name
    #[arg(
        long,
        value_name = "NAME",
        default_value = IngressSettings::CLASS,
        env = "STRAIT_INGRESS_CLASS",
        value_delimiter = ','
    )]
    pub ingress_class: Vec<String>,
    /// Serve Ingresses without a class as well, if there is no default class
    #[arg(long, env = "STRAIT_INGRESS_WITHOUT_CLASS")]
    pub ingress_without_class: bool,
}

/// Classes of Ingresses and the meaning of their fields: the same for proxies and `strait migrate`.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Ingress")]
pub struct IngressReadingArgs {
    /// Classes.
    #[command(flatten)]
    pub classes: IngressClassArgs,
    /// Namespaces whose Ingresses may have paths of a host
    #[arg(long, value_enum, default_value_t = HostOwnerArg::All, env = "STRAIT_INGRESS_HOST_OWNER")]
    pub ingress_host_owner: HostOwnerArg,
    /// Secret with the certificate of hosts without one, NAMESPACE/NAME. Default: none
    #[arg(
        long,
        value_name = "NAMESPACE/NAME",
        env = "STRAIT_INGRESS_DEFAULT_CERTIFICATE",
        value_parser = secret
    )]
    pub ingress_default_certificate: Option<Name>,
    /// Paths that the annotations use-regex and rewrite-target of ingress-nginx make expressions
    #[arg(long, value_enum, default_value_t = NginxRegexArg::Path, env = "STRAIT_INGRESS_NGINX_REGEX")]
    pub ingress_nginx_regex: NginxRegexArg,
}

/// `--ingress-host-owner`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum HostOwnerArg {
    /// All namespaces
    All,
    /// The namespace of the oldest Ingress with the host
    First,
}

/// `--ingress-nginx-regex`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum NginxRegexArg {
    /// All paths of a host of which one Ingress has such an annotation, as in ingress-nginx
    Host,
    /// Paths of the Ingress with the type ImplementationSpecific
    Path,
}

impl IngressArgs {
    /// Returns the settings of a proxy in a namespace; `None` if it serves no Ingresses.
    pub fn settings(&self, namespace: &str, controller: &str) -> Option<Arc<IngressSettings>> {
        self.ingress.then(|| {
            Arc::new(IngressSettings {
                namespace: Arc::from(namespace),
                gateway_controller: Some(Arc::from(controller)),
                addresses: self.ingress_address.clone(),
                ..self.reading.settings()
            })
        })
    }
}

impl IngressClassArgs {
    /// Returns the settings of the classes, and the defaults of all others.
    pub fn settings(&self) -> IngressSettings {
        IngressSettings {
            controllers: self.ingress_controller.clone(),
            classes: self.ingress_class.clone(),
            without_class: self.ingress_without_class,
            ..IngressSettings::default()
        }
    }
}

impl IngressReadingArgs {
    /// Returns the settings of the translation.
    pub fn settings(&self) -> IngressSettings {
        IngressSettings {
            host_owner: match self.ingress_host_owner {
                HostOwnerArg::All => HostOwner::All,
                HostOwnerArg::First => HostOwner::First,
            },
            default_certificate: self.ingress_default_certificate.clone(),
            nginx_regex: match self.ingress_nginx_regex {
                NginxRegexArg::Host => NginxRegex::Host,
                NginxRegexArg::Path => NginxRegex::Path,
            },
            ..self.classes.settings()
        }
    }
}

fn secret(text: &str) -> Result<Name, String> {
    match text.split_once('/') {
        Some((namespace, name))
            if !namespace.is_empty() && !name.is_empty() && !name.contains('/') =>
        {
            Ok(Name::new(namespace, name))
        }
        _ => Err("expected NAMESPACE/NAME".to_owned()),
    }
}
