//! Settings of the injection in a file, which is followed. With an error, the last good settings stay in effect.

use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use inject::Settings;
use tokio::sync::watch;

/// Interval between readings.
const INTERVAL: Duration = Duration::from_secs(5);

/// Reads the file, and returns a task that follows it.
///
/// # Errors
/// If the file cannot be read, or has an error.
pub(crate) fn follow(
    path: Option<PathBuf>,
) -> Result<
    (
        impl Future<Output = ()> + Send + 'static,
        watch::Receiver<Arc<Settings>>,
    ),
    String,
> {
    let first = match &path {
        Some(path) => parsed(path, &read(path)?)?,
        None => Settings::default(),
    };
    let (sender, receiver) = watch::channel(Arc::new(first));
    let task = async move {
        let Some(path) = path else {
            return sender.closed().await;
        };
        let mut last = read(&path);
        while !sender.is_closed() {
            tokio::time::sleep(INTERVAL).await;
            let text = read(&path);
            if text == last {
                continue;
            }
            match text
                .as_ref()
                .map_err(String::clone)
                .and_then(|text| parsed(&path, text))
            {
                Ok(settings) => {
                    tracing::info!(path = %path.display(), "the settings of the injection have changed");
                    let _ = sender.send(Arc::new(settings));
                }
                Err(error) => {
                    tracing::error!(%error, "the settings of the injection stay as they were")
                }
            }
            last = text;
        }
    };
    Ok((task, receiver))
}

fn read(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

fn parsed(path: &Path, text: &str) -> Result<Settings, String> {
    parse_settings(&path.display().to_string(), text)
}

/// Checks the text of a file with settings.
///
/// # Errors
/// A message with the location of each error.
pub(super) fn parse_settings(file: &str, text: &str) -> Result<Settings, String> {
    inject::stream::settings(&Settings::default(), file, text).map_err(|errors| errors.join("\n"))
}
