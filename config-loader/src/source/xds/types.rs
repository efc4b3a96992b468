//! The resources of each type of one server, and what a response changes. Without I/O.
//!
//! A response is taken in as far as it can be: what cannot be read leaves its last version in effect, and the answer names it.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hasher;
use std::sync::Arc;
use std::time::SystemTime;

use kube::runtime::watcher::Event;
use prost::Message;
use twox_hash::XxHash64;

use super::errors::{Errors, NAMED_MAX, NAMELESS};
use super::problems;
use super::protocol::{Answer, Received, ReceivedResource, Subscription};
use super::settings::XdsSettings;
use crate::diagnostic::{Diagnostic, Severity};
use crate::kind::Kind;
use crate::source::content;
use crate::source::stream::mirror::{Became, Item, Mirror};
use crate::source::stream::report::{Change, Key, Restored};
use crate::source::stream::text;
use crate::xds::{
    MCP_RESOURCE, McpResource, Node, Resource, ResourceType, object_of, resource_types,
};

/// The type URL of the wrapper that names a resource.
const NAMED_RESOURCE: &str = "type.googleapis.com/envoy.service.discovery.v3.Resource";

/// Checks the text of one object by itself.
pub(crate) type CheckObject = fn(&str) -> Vec<Diagnostic>;

/// The types of a server. They outlive connections.
pub(super) struct Types {
    server: String,
    types: Vec<TypeState>,
    check: CheckObject,
    namespaces: Vec<String>,
    secrets_namespace: String,
}

struct TypeState {
    of: ResourceType,
    key: Key,
    known: Mirror<String>,
    /// The resources that are known, by their names in the protocol, with the versions that were accepted. That of a rejected one
    /// is empty: a server sends it again on the next stream, or says that it is gone.
    versions: HashMap<String, String>,
    /// What is wrong with resources that cannot be read, by name.
    unreadable: BTreeMap<String, String>,
    /// Fields that are not known, by the name of the resource.
    unknown: BTreeMap<String, String>,
    /// The version of the type that was accepted last.
    accepted: String,
    /// Whether the next response has all resources, whatever the protocol.
    expects_whole: bool,
    /// Whether there was a response.
    is_listed: bool,
    /// Whether there was one on the stream that is open now.
    is_current: bool,
}

/// What a response changes.
#[derive(Debug)]
pub(super) struct Taken {
    pub(super) key: Key,
    pub(super) changes: Vec<Change>,
    /// What was saved, in case what changes is rejected.
    pub(super) saved: Vec<(Arc<str>, String)>,
    /// What is wrong with resources, by the key of the finding; none if nothing is.
    pub(super) troubles: [(Key, Option<Diagnostic>); 2],
    pub(super) answer: Answer,
    /// Whether it is the first response about the type.
    pub(super) is_first: bool,
    /// The revision of the server up to which everything has been received; none if versions are no numbers, or as long as a
    /// type has no response on this stream.
    pub(super) revision: Option<u64>,
}

/// A resource that was read.
struct Read {
    name: String,
    version: String,
    document: Arc<str>,
    text: String,
    /// A hash of all of it that has an effect.
    content: u64,
    unknown: Vec<String>,
    is_wanted: bool,
}

/// A resource that cannot be read.
struct Unreadable {
    name: Option<String>,
    reason: String,
}

/// What could be read of a response.
struct Content {
    read: Vec<Read>,
    /// What is gone: names in the protocol, and of documents.
    removed: Vec<(String, Arc<str>)>,
    /// Whether the type has these resources and no others.
    is_whole: bool,
    /// Documents that stay although they are not among what was read.
    kept: Vec<Arc<str>>,
}

impl Types {
    /// All types that are read.
    pub(super) fn new(server: String, settings: &XdsSettings, check: CheckObject) -> Types {
        let types = resource_types().map(|of| TypeState {
            key: of.name.as_str().into(),
            of,
            known: Mirror::default(),
            versions: HashMap::new(),
            unreadable: BTreeMap::new(),
            unknown: BTreeMap::new(),
            accepted: String::new(),
            expects_whole: true,
            is_listed: false,
            is_current: false,
        });
        let has_secrets = !settings.secrets_namespace.is_empty();
        Types {
            server,
            types: types
                .filter(|state| has_secrets || state.of.kind() != Kind::Secret)
                .collect(),
            check,
            namespaces: settings.namespaces.clone(),
            secrets_namespace: settings.secrets_namespace.clone(),
        }
    }

    /// The names of the types.
    pub(super) fn keys(&self) -> Vec<Key> {
        self.types
            .iter()
            .map(|state| Arc::clone(&state.key))
            .collect()
    }

    /// The subscriptions that begin a new stream. The first one has the node.
    pub(super) fn subscribe(&mut self, node: Node) -> Vec<Subscription> {
        let mut node = Some(node);
        let types = self.types.iter_mut();
        types
            .map(|state| {
                state.expects_whole = state.versions.is_empty();
                state.is_current = false;
                Subscription {
                    type_url: state.of.url.clone(),
                    node: node.take(),
                    accepted: state.accepted.clone(),
                    versions: state.versions.clone(),
                }
            })
            .collect()
    }

    /// Takes in a response. `Err` is the answer to one that was not asked for.
    pub(super) fn take_in(&mut self, received: Received) -> Result<Taken, Answer> {
        let mut types = self.types.iter().enumerate();
        let found = types.find(|(_, state)| state.of.url == received.type_url);
        let Some((at, state)) = found else {
            return Err(Answer {
                error: Some(format!("{} is not subscribed to", received.type_url)),
                type_url: received.type_url,
                nonce: received.nonce,
                ..Answer::default()
            });
        };
        let resources = received.resources.into_iter();
        let (read, unreadable): (Vec<_>, Vec<_>) = resources
            .map(|resource| self.read(&state.of, resource))
            .partition(Result::is_ok);
        let read: Vec<Read> = read.into_iter().filter_map(Result::ok).collect();
        let unreadable: Vec<Unreadable> = unreadable.into_iter().filter_map(Result::err).collect();
        let removed = received.removed.into_iter();
        let removed: Vec<(String, Arc<str>)> = removed
            .map(|name| {
                let document = self.document(&state.of, &name);
                (name, document)
            })
            .collect();
        let is_whole = received.is_whole || state.expects_whole;
        let check = self.check;
        let mut others = self.types.iter().enumerate();
        let is_current = others.all(|(other, state)| other == at || state.is_current);
        let state = &mut self.types[at];
        state.expects_whole = false;
        let is_first = !std::mem::replace(&mut state.is_listed, true);
        state.is_current = true;
        let mut errors = Errors::default();
        state.note_unreadable(unreadable.iter(), is_whole, &mut errors);
        let whole = is_whole && unreadable.iter().all(|failed| failed.name.is_some());
        let names = unreadable.iter().filter_map(|one| one.name.as_deref());
        let kept = names.map(|name| document(&self.server, &state.of, name));
        let kept: Vec<Arc<str>> = kept.collect();
        let content = Content {
            read,
            removed,
            is_whole: whole,
            kept,
        };
        let saved = whole.then(|| state.known.take_saved());
        let changes = state.apply(content, check, &mut errors);
        let named = unreadable.into_iter().filter_map(|failed| failed.name);
        state
            .versions
            .extend(named.map(|name| (name, String::new())));
        if errors.is_empty() {
            state.accepted.clone_from(&received.version);
        }
        let revision = received.version.parse().ok();
        Ok(Taken {
            key: Arc::clone(&state.key),
            is_first,
            revision: revision.filter(|_| is_current),
            troubles: state.troubles(&self.server),
            changes,
            saved: saved.unwrap_or_default(),
            answer: Answer {
                type_url: received.type_url,
                accepted: state.accepted.clone(),
                nonce: received.nonce,
                error: errors.text(),
                rejected: errors.rejected,
            },
        })
    }

    /// Types without a response are not waited for any longer.
    pub(super) fn give_up_silent(&mut self) {
        let silent = self.types.iter_mut().filter(|state| !state.is_listed);
        silent.for_each(|state| state.is_current = true);
    }

    fn document(&self, of: &ResourceType, name: &str) -> Arc<str> {
        document(&self.server, of, name)
    }

    fn read(&self, of: &ResourceType, resource: ReceivedResource) -> Result<Read, Unreadable> {
        let ReceivedResource {
            mut name,
            mut version,
            mut body,
        } = resource;
        let failed = |name: &Option<String>, reason: String| Unreadable {
            name: name.clone(),
            reason,
        };
        if body.type_url == NAMED_RESOURCE {
            let wrapped = Resource::decode(&*body.value);
            let wrapped = wrapped.map_err(|error| failed(&name, error.to_string()))?;
            name = name.or(Some(wrapped.name));
            version = wrapped.version;
            body = wrapped.resource.unwrap_or_default();
        }
        if body.type_url != MCP_RESOURCE {
            let reason = format!("{} instead of {MCP_RESOURCE}", body.type_url);
            return Err(failed(&name, reason));
        }
        let resource = McpResource::decode(&*body.value);
        let resource = resource.map_err(|error| failed(&name, error.to_string()))?;
        let metadata = resource.metadata.as_ref();
        let inner = metadata.map(|metadata| metadata.name.clone());
        let name = name.filter(|name| !name.is_empty()).or(inner);
        let (object, unknown) = object_of(of, &resource).map_err(|reason| failed(&name, reason))?;
        let content = content::of(of.kind(), &object);
        let text = text::of_object(object).map_err(|error| failed(&name, error.to_string()))?;
        let name = name.unwrap_or_default();
        if version.is_empty() {
            version = metadata
                .map(|metadata| metadata.version.clone())
                .unwrap_or_default();
        }
        Ok(Read {
            document: self.document(of, &name),
            is_wanted: self.is_wanted(of, &name),
            name,
            version,
            content,
            text,
            unknown,
        })
    }

    fn is_wanted(&self, of: &ResourceType, name: &str) -> bool {
        let Some((namespace, _)) = name.split_once('/') else {
            return true;
        };
        match of.kind() {
            Kind::Secret => namespace == self.secrets_namespace,
            _ => self.namespaces.is_empty() || self.namespaces.iter().any(|one| one == namespace),
        }
    }

    /// Notes an object that was saved. Returns whether its type is followed.
    pub(super) fn save(&mut self, document: String, text: String) -> bool {
        let key = key_of(&self.server, &document).map(str::to_owned);
        let mut types = self.types.iter_mut();
        let found = types.find(|state| Some(&*state.key) == key.as_deref());
        let is_followed = found.is_some();
        if let Some(state) = found {
            state.known.save(document.into(), text);
        }
        is_followed
    }

    /// Puts the saved objects of all types in place of the missing responses.
    pub(super) fn restore_all(&mut self, at: SystemTime) -> Restored {
        let saved = self
            .types
            .iter_mut()
            .flat_map(|state| state.known.restore());
        Restored {
            key: None,
            at,
            changes: saved.map(|(name, text)| (name, Some(text))).collect(),
        }
    }

    /// The types without a response.
    pub(super) fn silent(&self) -> Vec<Key> {
        let types = self.types.iter().filter(|state| !state.is_listed);
        types.map(|state| Arc::clone(&state.key)).collect()
    }

    /// Puts the saved objects of types without a response in place of the missing responses.
    pub(super) fn restore_silent(&mut self, at: Option<SystemTime>) -> Vec<Restored> {
        let Some(at) = at else {
            return Vec::new();
        };
        let types = self.types.iter_mut().filter(|state| !state.is_listed);
        let restored = types.map(|state| {
            let saved = state.known.restore().into_iter();
            Restored {
                key: Some(Arc::clone(&state.key)),
                at,
                changes: saved.map(|(name, text)| (name, Some(text))).collect(),
            }
        });
        restored
            .filter(|restored| !restored.changes.is_empty())
            .collect()
    }
}

impl TypeState {
    fn note_unreadable<'a>(
        &mut self,
        failed: impl Iterator<Item = &'a Unreadable>,
        is_whole: bool,
        errors: &mut Errors,
    ) {
        if is_whole {
            self.unreadable.clear();
        }
        for failed in failed {
            errors.add(failed.name.as_deref(), &failed.reason);
            let name = failed.name.as_deref().unwrap_or(NAMELESS);
            self.unreadable
                .insert(name.to_owned(), failed.reason.clone());
        }
    }

    /// Takes in what was read. Returns what changes; what is rejected goes to `errors`.
    fn apply(&mut self, content: Content, check: CheckObject, errors: &mut Errors) -> Vec<Change> {
        let Content {
            read,
            removed,
            is_whole,
            kept,
        } = content;
        let mut changes = Vec::new();
        if is_whole {
            self.versions.clear();
            self.unknown.clear();
            self.known.apply(Event::Init);
            kept.iter().for_each(|name| self.known.keep(name));
        }
        for read in read {
            let rejection = rejection(&read, check);
            self.unreadable.remove(&read.name);
            let version = match rejection {
                Some(rejection) => {
                    errors.add(Some(&read.name), &rejection);
                    String::new()
                }
                None => read.version,
            };
            self.versions.insert(read.name.clone(), version);
            match read.unknown.is_empty() {
                true => _ = self.unknown.remove(&read.name),
                false => _ = self.unknown.insert(read.name, read.unknown.join(", ")),
            }
            let item = Item {
                version: hash(&read.text),
                content: read.content,
                name: read.document,
                object: Some(read.text).filter(|_| read.is_wanted),
            };
            let event = match is_whole {
                true => Event::InitApply(item),
                false => Event::Apply(item),
            };
            changes.extend(self.known.apply(event));
        }
        if is_whole {
            changes.extend(self.known.apply(Event::InitDone));
        }
        for (name, document) in removed {
            self.versions.remove(&name);
            self.unknown.remove(&name);
            self.unreadable.remove(&name);
            changes.extend(self.known.apply(Event::Delete(Item {
                name: document,
                version: String::new(),
                content: 0,
                object: None,
            })));
        }
        let change = |became| match became {
            Became::Set(name, text) => (name, Some(text)),
            Became::Gone(name) => (name, None),
        };
        changes.into_iter().map(change).collect()
    }

    fn troubles(&self, server: &str) -> [(Key, Option<Diagnostic>); 2] {
        let named = |all: &BTreeMap<String, String>| -> Vec<String> {
            let first = all.iter().take(NAMED_MAX);
            let mut named: Vec<String> = first
                .map(|(name, what)| format!("{} {name}: {what}", self.key))
                .collect();
            if all.len() > NAMED_MAX {
                named.push(format!("and {} more", all.len() - NAMED_MAX));
            }
            named
        };
        let unreadable = named(&self.unreadable);
        let unknown = named(&self.unknown);
        [
            (
                Arc::clone(&self.key),
                (!unreadable.is_empty()).then(|| problems::unreadable(server, &unreadable)),
            ),
            (
                format!("{} fields", self.key).into(),
                (!unknown.is_empty()).then(|| problems::unknown_fields(server, &unknown)),
            ),
        ]
    }
}

/// Why an object is rejected by itself; none if it is not.
fn rejection(read: &Read, check: CheckObject) -> Option<String> {
    let found = check(&read.text).into_iter();
    let mut errors = found.filter(|found| found.severity == Severity::Error);
    let first = errors.next()?;
    let code = &first.code;
    Some(match errors.count() {
        0 => format!("{code}: {}", first.message),
        more => format!("{code}: {}, and {more} more errors", first.message),
    })
}

/// The name of a document: `xds://HOST:PORT/NAMESPACE/RESOURCE/NAME`.
fn document(server: &str, of: &ResourceType, name: &str) -> Arc<str> {
    match name.split_once('/') {
        Some((namespace, name)) => format!("{server}/{namespace}/{}/{name}", of.name).into(),
        None => format!("{server}/{}/{name}", of.name).into(),
    }
}

/// The type that a document is of.
fn key_of<'a>(server: &str, document: &'a str) -> Option<&'a str> {
    let path = document.strip_prefix(server)?.strip_prefix('/')?;
    path.rsplit('/').nth(1)
}

/// The hash of a text, used as its version: a server may change an object without a new version.
fn hash(text: &str) -> String {
    let mut hasher = XxHash64::with_seed(0);
    hasher.write(text.as_bytes());
    format!("{:016x}", hasher.finish())
}

#[cfg(test)]
mod simulation;
#[cfg(test)]
mod tests;
