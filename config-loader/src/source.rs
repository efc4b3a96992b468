//! Sources of resources: files and directories (read and watched), Kubernetes API servers and xDS servers. Uses
//! `diagnostic`, and the kind names of `kinds`.

mod ages;
pub mod content;
mod debounce;
mod errors;
mod file;
mod kubernetes;
mod look;
mod revision;
mod scan;
mod servers;
mod shared_parts;
mod state;
mod stream;
mod watch;
mod xds;

pub use ages::SourceAges;
pub use errors::{SourceError, SourceErrors};
pub(crate) use file::FileSource;
pub use kubernetes::{ApiServer, ApiServerTimes, KubernetesSettings};
#[cfg(test)]
pub(crate) use kubernetes::{Clients as KubernetesClients, Connected as KubernetesClient};
pub(crate) use look::{FileEvent, Look, ObjectText, Source};
pub use revision::{FILES, Received, SourceRevision};
pub use scan::is_resource_file;
pub(crate) use servers::ServerContext;
#[cfg(test)]
pub(crate) use servers::follow as follow_servers_with;
pub use servers::{
    ControlServer, ControlSettings, FollowedObjects, ObjectChanges, address_of, connect,
    follow_objects, in_words,
};
pub(crate) use servers::{Following as ServersFollowing, spawn as follow_servers};
pub use watch::WatchSettings;
pub(crate) use watch::{Follow, Stop, revision as revision_of_files, spawn};
pub(crate) use xds::ReadObject;
pub use xds::{XdsNode, XdsServer, XdsSettings};
