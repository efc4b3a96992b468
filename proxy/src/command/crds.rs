//! `strait crds`: the CustomResourceDefinitions of the kinds that Strait reads.

use clap::Args;
use config_loader::parse;
use config_server::api::definitions::definitions;

use super::exit::{EXIT_DONE, EXIT_INPUT, report, show};

/// Arguments of `strait crds`.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  strait crds | kubectl apply --server-side --filename -\n\nThe definitions of the Gateway API \
                  come from its own project."
)]
pub struct CrdsArgs {
    /// API group, such as networking.istio.io; without it, all groups
    #[arg(long, value_name = "GROUP", env = "STRAIT_CRDS_GROUP")]
    pub group: Option<String>,
}

/// Prints the definitions as YAML.
pub fn run(args: &CrdsArgs) -> u8 {
    let found = definitions(args.group.as_deref());
    if found.is_empty() {
        let group = args.group.as_deref().unwrap_or_default();
        report(&format!(
            "no kind is defined in the group `{group}`; without --group, `strait crds` prints all"
        ));
        return EXIT_INPUT;
    }
    for definition in &found {
        show(&format!("---\n{}", parse::to_yaml(definition).trim_end()));
    }
    EXIT_DONE
}
