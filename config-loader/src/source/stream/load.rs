//! Reads the saved state of a server (`--state`).

use crate::source::state::{Saved, StateFile};

/// Loads the saved state of a server; `None` if there is none or it is unusable. `title` names the kind of server in
/// messages.
pub(in crate::source) async fn load(file: Option<&StateFile>, title: &str) -> Option<Saved> {
    let file = file?.clone();
    let path = file.path().display().to_string();
    let read = tokio::task::spawn_blocking(move || file.read()).await;
    let read = read.unwrap_or_else(|panic| Err(std::io::Error::other(panic)));
    read.unwrap_or_else(|error| {
        tracing::warn!(
            file = path,
            %error,
            "--state: file is not used, and is replaced when the {title} has answered"
        );
        None
    })
}
