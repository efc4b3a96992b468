//! `strait demo`: three clusters and an edge gateway in one process, or backends for a directory of resources.

mod args;

mod calls;

mod clusters;

mod directory;

mod failure;

mod files;

mod load;

mod screen;

mod site;

mod start;

pub use args::DemoArgs;
use failure::Failure;

use super::run::serve;
use super::{EXIT_DONE, EXIT_INPUT, EXIT_USAGE, report};

/// Runs the demo until a signal ends it.
pub fn run(args: &DemoArgs) -> u8 {
    if let Some(dir) = &args.dir {
        return match directory::prepare(dir, &args.cluster, &args.serve) {
            Ok(settings) => serve(settings),
            Err(error) => {
                report(&error);
                EXIT_INPUT
            }
        };
    }
    match start::run(args) {
        Ok(()) => EXIT_DONE,
        Err(Failure { text, is_usage }) => {
            report(&text);
            if is_usage { EXIT_USAGE } else { EXIT_INPUT }
        }
    }
}
