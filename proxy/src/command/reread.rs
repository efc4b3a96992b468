//! The command line, read again with another mesh configuration while the proxy runs.

use std::ffi::OsString;

use config_loader::resource::istio::MeshConfig;

use super::precedence::Offered;
use super::{Command, read};
use crate::app::Reread;

/// Returns a function that reads this command line of `strait run` again. `offered` are the values that resources had for its
/// flags at the start.
pub(super) fn of(args: Vec<OsString>, offered: Offered) -> Reread {
    Reread::new(move |config: &MeshConfig| {
        let offered = offered.with_mesh(config);
        let cli = read(&args, &offered).map_err(|error| {
            let text = error.to_string();
            let line = text.lines().next().unwrap_or_default();
            line.trim_start_matches("error: ").to_owned()
        })?;
        match cli.command {
            Command::Run(mut run) => {
                run.identity.mesh_config = offered.instead();
                run.settings()
            }
            _ => Err("this is not the command `run`".to_owned()),
        }
    })
}
