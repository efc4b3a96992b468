//! Reads the saved state of a server (`--state`).

use crate::source::state::{Saved, StateFile};

/// What was saved of a server, for the case that it does not answer; none if there is nothing that can be used. `title` is what the
/// server is, for the message.
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
