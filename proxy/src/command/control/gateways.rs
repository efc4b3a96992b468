//! Arguments of `strait control` about the Gateway API.

use clap::{Args, ValueEnum};
use config_loader::catalog::ROOT_NAMESPACE;
use config_loader::catalog::gateway_api::status::StatusAddress;
use config_loader::kind::Name;
use config_server::conditions::GatewayController;

use crate::command::args::{GatewayPoolArgs, IngressClassArgs};

/// Controller of the Gateway API, which writes the status of its objects and assigns addresses.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Gateway API")]
pub struct GatewayControllerArgs {
    /// Controller and pool.
    #[command(flatten)]
    of_controller: GatewayPoolArgs,
    /// Address that all Gateways share, such as that of a load balancer. May be repeated
    #[arg(
        long = "gateway-address",
        value_name = "IP|HOST",
        env = "STRAIT_GATEWAY_ADDRESS",
        value_delimiter = ','
    )]
    pub gateway_address: Vec<String>,
    /// Service of type LoadBalancer whose addresses all Gateways share
    #[arg(
        long,
        value_name = "NAMESPACE/NAME",
        env = "STRAIT_GATEWAY_SERVICE",
        value_parser = service
    )]
    pub gateway_service: Option<ServiceName>,
    /// Namespace that holds mesh-wide defaults, the same as for proxies
    #[arg(
        long,
        value_name = "NAME",
        default_value = ROOT_NAMESPACE,
        env = "STRAIT_ROOT_NAMESPACE"
    )]
    pub root_namespace: String,
    /// Classes of Ingresses.
    #[command(flatten)]
    pub ingress: IngressClassArgs,
    /// Whether the addresses of --gateway-service and --gateway-address are written to the status of Ingresses. With off, another
    /// controller writes it, as while Ingresses move from one to the other
    #[arg(
        long,
        value_enum,
        default_value_t = IngressStatusArg::On,
        env = "STRAIT_INGRESS_STATUS",
        help_heading = "Ingress"
    )]
    pub ingress_status: IngressStatusArg,
}

/// `--ingress-status`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum IngressStatusArg {
    /// Leaves the status to another controller
    Off,
    /// Addresses are written to Ingresses of served classes, and removed when the class is another one
    On,
}

/// `--gateway-service`; `None` for empty text, as manifests leave variables empty.
#[derive(Clone, Debug)]
pub struct ServiceName(Option<Name>);

fn service(text: &str) -> Result<ServiceName, String> {
    match text.split_once('/') {
        None if text.is_empty() => Ok(ServiceName(None)),
        Some((namespace, name)) if !namespace.is_empty() && !name.is_empty() => {
            Ok(ServiceName(Some(Name::new(namespace, name))))
        }
        _ => Err("expected NAMESPACE/NAME".to_owned()),
    }
}

impl GatewayControllerArgs {
    /// Returns the controller.
    pub fn controller(&self) -> GatewayController {
        let addresses = self.gateway_address.iter().filter(|one| !one.is_empty());
        let shared = addresses.map(|one| match one.parse() {
            Ok(ip) => StatusAddress::Ip(ip),
            Err(_) => StatusAddress::Host(one.clone()),
        });
        GatewayController {
            name: self.of_controller.gateway_controller.clone(),
            pool: self.of_controller.pool(),
            shared: shared.collect(),
            service: self.gateway_service.clone().and_then(|one| one.0),
            root_namespace: self.root_namespace.clone(),
            ingress: (self.ingress_status == IngressStatusArg::On).then(|| self.ingress.settings()),
            ..GatewayController::default()
        }
    }
}
