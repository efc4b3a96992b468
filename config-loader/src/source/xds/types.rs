//! Resources of each type of one server, and the changes that a response makes. Without I/O.
//!
//! A response is applied as far as possible. A resource that cannot be read keeps its last version in effect and is
//! named in the NACK.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Display;
use std::sync::Arc;
use std::time::SystemTime;

use kube::runtime::watcher::Event;
use prost::Message;
use twox_hash::xxhash3_128;

use super::errors::{Errors, NAMED_MAX, NAMELESS};
use super::problems;
use super::protocol::{Answer, Received, ReceivedResource, Subscription};
use super::settings::XdsSettings;
use crate::diagnostic::Diagnostic;
use crate::kind::Kind;
use crate::load::FileReading;
use crate::source::content;
use crate::source::look::ObjectText;
use crate::source::stream::mirror::{Became, Item, Mirror};
use crate::source::stream::report::{Change, Key, Restored};
use crate::source::stream::{mirror, text};
use crate::xds::{
    MCP_RESOURCE, McpResource, Node, Resource as NamedResource, ResourceType, object_of,
    resource_types,
};

/// Largest number of resources of a type that are cached in addition to those of the last complete response.
const SEEN_MAX: usize = 50_000;

/// Type URL of the wrapper that carries the name of a resource.
const NAMED_RESOURCE: &str = "type.googleapis.com/envoy.service.discovery.v3.Resource";

/// Parser of the text of a single object.
pub(crate) type ReadObject = Arc<dyn Fn(&Arc<str>, &str) -> FileReading + Send + Sync>;

/// Types of a server. They outlive connections.
pub(super) struct Types {
    server: String,
    types: Vec<TypeState>,
    read: ReadObject,
    namespaces: Vec<String>,
    secrets_namespace: String,
}

struct TypeState {
    of: ResourceType,
    key: Key,
    known: Mirror<ObjectText>,
    /// Cache of decoded resources, by the hash of the received bytes. A resource that is received again is not decoded.
    seen: HashMap<u128, Resource>,
    /// Accepted version of each known resource, by its name in the protocol. The version of a rejected resource is
    /// empty, so that the server sends or removes it on the next stream.
    versions: HashMap<Arc<str>, Arc<str>>,
    /// Errors of resources that cannot be read, by name.
    unreadable: BTreeMap<String, String>,
    /// Unknown fields, by the name of the resource.
    unknown: BTreeMap<Arc<str>, Arc<str>>,
    /// Version of the type that was last accepted.
    accepted: String,
    /// Whether the next response lists all resources, in either variant of the protocol.
    expects_whole: bool,
    /// Whether a response was received.
    is_listed: bool,
    /// Whether a response was received on the current stream.
    is_current: bool,
}

/// Result of applying a response.
#[derive(Debug)]
pub(super) struct Taken {
    pub(super) key: Key,
    pub(super) changes: Vec<Change>,
    /// Saved text of changed objects, for use if the new text is rejected.
    pub(super) saved: Vec<(Arc<str>, String)>,
    /// Diagnostics about resources, each with its key; `None` if there is none.
    pub(super) troubles: [(Key, Option<Diagnostic>); 2],
    pub(super) answer: Answer,
    /// Whether it is the first response for the type.
    pub(super) is_first: bool,
    /// Revision of the server up to which everything has been received. `None` if versions are not numbers, or while a
    /// type has no response on this stream.
    pub(super) revision: Option<u64>,
}

/// Resource that can be read.
#[derive(Clone)]
struct Resource {
    name: Arc<str>,
    version: Arc<str>,
    document: Arc<str>,
    /// Hash of its text, used as its version. A server may change an object without a new version.
    hash: u64,
    /// Hash of the content that has an effect.
    content: u64,
    /// Unknown fields of the resource.
    unknown: Option<Arc<str>>,
    is_wanted: bool,
    /// Reason for which the object is rejected; `None` if it is accepted.
    rejection: Option<Arc<str>>,
}

/// Decoded resource of a response.
struct Read {
    resource: Resource,
    /// Text of the object; `None` if it is unchanged.
    text: Option<ObjectText>,
    /// Hash of the received bytes.
    received: u128,
}

/// Resource that cannot be read.
struct Unreadable {
    name: Option<String>,
    reason: String,
}

/// Decoded content of a response.
struct Content {
    read: Vec<Read>,
    /// Removed resources: name in the protocol, and name of the document.
    removed: Vec<(String, Arc<str>)>,
    /// Whether the response lists all resources of the type.
    is_whole: bool,
    /// Documents that are kept although they were not decoded.
    kept: Vec<Arc<str>>,
}

impl Types {
    /// Creates all types that are read.
    pub(super) fn new(server: String, settings: &XdsSettings, read: ReadObject) -> Types {
        let types = resource_types().map(|of| TypeState {
            key: of.name.as_str().into(),
            of,
            known: Mirror::default(),
            seen: HashMap::new(),
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
                .filter(|state| has_secrets || !is_of_own_namespace(state.of.kind()))
                .filter(|state| settings.reads_workloads || !state.of.kind().is_state())
                .collect(),
            read,
            namespaces: settings.namespaces.clone(),
            secrets_namespace: settings.secrets_namespace.clone(),
        }
    }

    /// Returns the keys of the types.
    pub(super) fn keys(&self) -> Vec<Key> {
        self.types
            .iter()
            .map(|state| Arc::clone(&state.key))
            .collect()
    }

    /// Returns the subscriptions for a new stream. The first one has the node.
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
                    versions: state.versions(),
                }
            })
            .collect()
    }

    /// Applies a response. `Err` is the acknowledgment of a response that was not requested.
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
            .map(|resource| self.resource(state, resource))
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
        let changes = state.apply(content, &mut errors);
        let named = unreadable.into_iter().filter_map(|failed| failed.name);
        state
            .versions
            .extend(named.map(|name| (name.into(), "".into())));
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

    /// Stops waiting for types without a response.
    pub(super) fn give_up_silent(&mut self) {
        let silent = self.types.iter_mut().filter(|state| !state.is_listed);
        silent.for_each(|state| state.is_current = true);
    }

    fn document(&self, of: &ResourceType, name: &str) -> Arc<str> {
        document(&self.server, of, name)
    }

    /// Returns a resource of a response; decodes and reads it if it is not cached.
    fn resource(&self, state: &TypeState, received: ReceivedResource) -> Result<Read, Unreadable> {
        let hash = hash_of(&received);
        let before = state.seen.get(&hash).filter(|seen| state.has(seen));
        match before {
            Some(before) => Ok(Read {
                resource: before.clone(),
                text: None,
                received: hash,
            }),
            None => self.read(&state.of, received, hash),
        }
    }

    fn read(
        &self,
        of: &ResourceType,
        resource: ReceivedResource,
        received: u128,
    ) -> Result<Read, Unreadable> {
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
            let wrapped = NamedResource::decode(&*body.value);
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
        let name: Arc<str> = name.unwrap_or_default().into();
        if version.is_empty() {
            version = metadata
                .map(|metadata| metadata.version.clone())
                .unwrap_or_default();
        }
        let document = self.document(of, &name);
        let reading = (self.read)(&document, &text);
        Ok(Read {
            resource: Resource {
                is_wanted: self.is_wanted(of, &name),
                hash: mirror::version(&text),
                rejection: rejection(&reading).map(Arc::from),
                unknown: (!unknown.is_empty()).then(|| unknown.join(", ").into()),
                document,
                name,
                version: version.into(),
                content,
            },
            text: Some(ObjectText {
                text,
                reading: Some(Arc::new(reading)),
            }),
            received,
        })
    }

    fn is_wanted(&self, of: &ResourceType, name: &str) -> bool {
        let Some((namespace, _)) = name.split_once('/') else {
            return true;
        };
        match is_of_own_namespace(of.kind()) {
            true => namespace == self.secrets_namespace,
            false => {
                self.namespaces.is_empty() || self.namespaces.iter().any(|one| one == namespace)
            }
        }
    }

    /// Stores a saved object. Returns whether its type is followed.
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

    /// Applies the saved objects of all types in place of the missing responses.
    pub(super) fn restore_all(&mut self, at: SystemTime) -> Restored {
        let saved = self
            .types
            .iter_mut()
            .flat_map(|state| state.known.restore());
        Restored {
            key: None,
            at,
            changes: saved
                .map(|(name, text)| (name, Some(text.into())))
                .collect(),
        }
    }

    /// Returns the types without a response.
    pub(super) fn silent(&self) -> Vec<Key> {
        let types = self.types.iter().filter(|state| !state.is_listed);
        types.map(|state| Arc::clone(&state.key)).collect()
    }

    /// Applies the saved objects of types without a response in place of the missing responses.
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
                changes: saved
                    .map(|(name, text)| (name, Some(text.into())))
                    .collect(),
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

    /// Whether the stored state of a resource already equals `resource`.
    fn has(&self, resource: &Resource) -> bool {
        !resource.is_wanted || self.known.has(&resource.document, resource.hash)
    }

    /// Returns the accepted resources, with their versions.
    fn versions(&self) -> HashMap<String, String> {
        let versions = self.versions.iter();
        versions
            .map(|(name, version)| (name.to_string(), version.to_string()))
            .collect()
    }

    /// Records the version and the diagnostics of a resource. Returns its mirror item.
    fn note(&mut self, read: Read, errors: &mut Errors) -> Item<ObjectText> {
        let Read {
            resource,
            text,
            received,
        } = read;
        let Resource { name, version, .. } = &resource;
        self.unreadable.remove(&**name);
        let version = match &resource.rejection {
            Some(rejection) => {
                errors.add(Some(name), rejection);
                "".into()
            }
            None => Arc::clone(version),
        };
        self.versions.insert(Arc::clone(name), version);
        match &resource.unknown {
            None => _ = self.unknown.remove(name),
            Some(unknown) => _ = self.unknown.insert(Arc::clone(name), Arc::clone(unknown)),
        }
        let item = Item {
            version: resource.hash,
            content: resource.content,
            name: Arc::clone(&resource.document),
            object: resource
                .is_wanted
                .then(|| text.unwrap_or_else(|| String::new().into())),
        };
        self.seen.insert(received, resource);
        item
    }

    /// Applies decoded content. Returns the changes; rejected resources are added to `errors`.
    fn apply(&mut self, content: Content, errors: &mut Errors) -> Vec<Change> {
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
        if is_whole || self.seen.len() > SEEN_MAX {
            self.seen.clear();
        }
        for read in read {
            let item = self.note(read, errors);
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
            self.versions.remove(&*name);
            self.unknown.remove(&*name);
            self.unreadable.remove(&name);
            changes.extend(self.known.apply(Event::Delete(Item {
                name: document,
                version: 0,
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
        fn named<K: Display, V: Display>(key: &str, all: &BTreeMap<K, V>) -> Vec<String> {
            let first = all.iter().take(NAMED_MAX);
            let mut named: Vec<String> = first
                .map(|(name, what)| format!("{key} {name}: {what}"))
                .collect();
            if all.len() > NAMED_MAX {
                named.push(format!("and {} more", all.len() - NAMED_MAX));
            }
            named
        }
        let unreadable = named(&self.key, &self.unreadable);
        let unknown = named(&self.key, &self.unknown);
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

/// Returns the reason for which an object is rejected; `None` if it is accepted.
fn rejection(reading: &FileReading) -> Option<String> {
    let mut errors = reading.errors();
    let first = errors.next()?;
    let code = &first.code;
    Some(match errors.count() {
        0 => format!("{code}: {}", first.message),
        more => format!("{code}: {}, and {more} more errors", first.message),
    })
}

/// Returns the name of a document: `xds://HOST:PORT/NAMESPACE/RESOURCE/NAME`.
fn document(server: &str, of: &ResourceType, name: &str) -> Arc<str> {
    match name.split_once('/') {
        Some((namespace, name)) => format!("{server}/{namespace}/{}/{name}", of.name).into(),
        None => format!("{server}/{}/{name}", of.name).into(),
    }
}

/// Returns the type of a document.
fn key_of<'a>(server: &str, document: &'a str) -> Option<&'a str> {
    let path = document.strip_prefix(server)?.strip_prefix('/')?;
    path.rsplit('/').nth(1)
}

/// Returns the hash of the received bytes of a resource.
fn hash_of(received: &ReceivedResource) -> u128 {
    let mut hasher = xxhash3_128::Hasher::new();
    let name = received.name.as_deref().unwrap_or_default();
    for part in [name, &received.version, &received.body.type_url] {
        hasher.write(&part.len().to_le_bytes());
        hasher.write(part.as_bytes());
    }
    hasher.write(&received.body.value);
    hasher.finish_128()
}

/// Whether objects of a kind are read in the proxy's namespace only.
fn is_of_own_namespace(kind: Kind) -> bool {
    matches!(kind, Kind::ConfigMap | Kind::Secret)
}

#[cfg(test)]
mod simulation;
#[cfg(test)]
mod tests;
