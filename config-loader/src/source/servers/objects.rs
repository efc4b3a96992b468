//! Objects of API servers as a stream of changes, for callers with a store of their own, and a client to write to them.

use std::io;
use std::path::Path;
use std::sync::Arc;

use kube::Client;

use super::{ControlSettings, Following, ServerContext, spawn};
use crate::diagnostic::Diagnostic;
use crate::load::FileReading;
use crate::source::ages::SourceAges;
use crate::source::errors::SourceErrors;
use crate::source::kubernetes::{self, ApiServer};
use crate::source::look::{FileEvent, Look};
use crate::source::stream::causes;
use crate::source::watch::Follow;

/// Changes of the objects of API servers.
#[derive(Debug)]
pub struct ObjectChanges {
    /// Text of each changed object, by name; `None` if it was deleted.
    pub changes: Vec<(Arc<str>, Option<Vec<u8>>)>,
    /// Diagnostics about the servers.
    pub problems: Vec<Diagnostic>,
    /// Whether every object that existed at the start has been delivered.
    pub is_complete: bool,
    /// Whether every resource has been listed once. It stays true, even if later requests fail.
    pub is_listed: bool,
}

/// Handle of the thread that follows API servers. Dropping it stops the thread.
#[derive(Debug)]
pub struct FollowedObjects {
    _following: Following,
}

/// Follows the objects of API servers. `on_change` is called from a separate thread.
///
/// # Errors
/// If no thread can be started.
pub fn follow_objects(
    settings: ControlSettings,
    on_change: impl FnMut(ObjectChanges) + Send + 'static,
) -> io::Result<FollowedObjects> {
    let context = ServerContext {
        read: Arc::new(|_, _| FileReading::default()),
        states: None,
        errors: SourceErrors::default(),
        ages: SourceAges::default(),
    };
    Ok(FollowedObjects {
        _following: spawn(settings, context, HandOn(on_change))?,
    })
}

/// Connects to an API server. Reads the kubeconfig on each call.
///
/// # Errors
/// A description of the missing setting.
pub async fn connect(server: &ApiServer, kubeconfig: Option<&Path>) -> Result<Client, String> {
    kubernetes::connect(server, kubeconfig).await
}

/// Returns the address of an API server from the kubeconfig.
///
/// # Errors
/// A description of the missing setting.
pub async fn address_of(server: &ApiServer, kubeconfig: Option<&Path>) -> Result<String, String> {
    kubernetes::address(server, kubeconfig).await
}

/// Describes a client error in words, with the fix if it is known.
pub fn in_words(error: &kube::Error) -> String {
    if let kube::Error::Api(status) = error {
        return match status.code {
            401 => "it does not accept the credentials (401); use a kubeconfig whose token or client certificate is valid"
                .to_owned(),
            code => format!("{} ({code})", status.message),
        };
    }
    let text = causes::with_causes(error);
    match causes::certificate_help(&text) {
        Some(help) => format!("{text}; {help}"),
        None => text,
    }
}

struct HandOn<F>(F);

impl<F: FnMut(ObjectChanges)> Follow for HandOn<F> {
    fn look(&mut self, look: Look) {
        let text = |event| match event {
            FileEvent::Bytes(bytes) => Some(bytes),
            FileEvent::Object(object) => Some(object.text.into_bytes()),
            // What is too large to be read is as good as gone.
            FileEvent::Gone | FileEvent::TooLarge(_) | FileEvent::Unreadable(_) => None,
        };
        let events = look.events.into_iter();
        (self.0)(ObjectChanges {
            changes: events.map(|(name, event)| (name, text(event))).collect(),
            problems: look.problems,
            is_complete: look.waits_for.is_none(),
            is_listed: look.waits_for.is_none() && look.is_listed,
        });
    }
}
