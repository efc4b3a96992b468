//! Watches directories with certificates. Kubernetes replaces a link in a directory; reading the files shows what has
//! changed.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::Notify;

/// Watcher that notifies of changes in a set of directories.
pub struct Directories {
    /// `None` when the system does not support watches: then only the periodic reading finds changes.
    watcher: Option<RecommendedWatcher>,
    watched: BTreeSet<PathBuf>,
    happened: Arc<Notify>,
}

impl Directories {
    /// Makes a watcher without directories.
    pub fn new() -> Self {
        let happened = Arc::new(Notify::new());
        let tell = Arc::clone(&happened);
        let watcher = notify::recommended_watcher(move |event: notify::Result<Event>| {
            // Read accesses, ours included, change nothing.
            let is_read = event.is_ok_and(|event| {
                matches!(event.kind, EventKind::Access(access) if !is_end_of_writing(access))
            });
            if !is_read {
                tell.notify_one();
            }
        });
        if let Err(error) = &watcher {
            tracing::warn!(%error, "directories of certificates cannot be watched; they are read every few seconds");
        }
        Self {
            watcher: watcher.ok(),
            watched: BTreeSet::new(),
            happened,
        }
    }

    /// Watches exactly these directories from now on, as far as they exist.
    pub fn watch(&mut self, wanted: BTreeSet<PathBuf>) {
        let Some(watcher) = &mut self.watcher else {
            return;
        };
        for gone in self.watched.difference(&wanted) {
            // The watch of a removed directory has ended already.
            let _ = watcher.unwatch(gone);
        }
        self.watched.retain(|path| wanted.contains(path));
        for path in wanted {
            if !self.watched.contains(&path)
                && watcher.watch(&path, RecursiveMode::NonRecursive).is_ok()
            {
                self.watched.insert(path);
                // A file may have changed between the reading and the watch.
                self.happened.notify_one();
            }
        }
    }

    /// Waits until a file may have changed.
    pub async fn changed(&self) {
        self.happened.notified().await;
    }
}

impl Default for Directories {
    fn default() -> Self {
        Self::new()
    }
}

fn is_end_of_writing(access: notify::event::AccessKind) -> bool {
    use notify::event::{AccessKind, AccessMode};
    access == AccessKind::Close(AccessMode::Write)
}
