//! Where bytes come from: files and directories, read and watched, and Kubernetes API servers. Uses `diagnostic`, and of the
//! kinds their names.

mod debounce;
mod file;
mod kubernetes;
mod look;
mod scan;
mod state;
mod watch;

pub(crate) use file::FileSource;
pub use kubernetes::{
    ApiServer, FollowedObjects, KubernetesSettings, ObjectChanges, connect, follow_objects,
};
pub(crate) use kubernetes::{Following as KubernetesFollowing, spawn as follow_kubernetes};
pub(crate) use look::{FileEvent, Look, Source};
pub use watch::WatchSettings;
pub(crate) use watch::{Follow, Stop, spawn};
