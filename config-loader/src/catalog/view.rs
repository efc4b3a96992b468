//! Dependency tracking for incremental compilation: which resources each compiled part was made from.
//!
//! A part is made within [`Tape::part`], and accesses resources only through a [`View`]. Each read records a key on the
//! tape: an object, a whole kind, or a lookup in an index, even if nothing was found. [`Changes`] has the keys that
//! differ between two resource sets, for every kind. A part is reused if none of the keys of its [`Reads`] has changed.

mod readers;

use std::cell::RefCell;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use super::{HostIndex, differences};
use crate::kind::{Kind, Name, ObjectRef, kinds};
use crate::resource::{Line, Object, Objects, ResourceSet, Spec};
use crate::resource::{
    core, envoy_gateway, flomesh, gateway_api, gloo, istio, karmada, networking,
};
pub use readers::Readers;

/// Key of a read of resources, or of a lookup in an index.
#[derive(Clone, Copy, Debug, Hash)]
pub enum Read<'a> {
    /// All objects of a kind.
    All(Kind),
    /// Whether a kind has any object.
    Any(Kind),
    /// Lookup in an index: name of the index, namespace or host, and name.
    Index(&'static str, &'a str, &'a str),
    /// Objects of a kind in a namespace.
    Namespace(Kind, &'a str),
    /// Names of the objects of a kind.
    Names(Kind),
    /// Objects of a kind with a namespace and name.
    Object(Kind, &'a str, &'a str),
    /// Withheld objects of a kind.
    Withheld(Kind),
}

impl Read<'_> {
    fn key(&self) -> u64 {
        hash(self)
    }
}

pub(super) fn hash(value: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// Recorded reads of a part.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reads {
    /// Hashes of the keys, sorted. A collision can only rebuild a part unnecessarily.
    keys: Box<[u64]>,
    /// Hosts that were looked up in an index with wildcards, each with the name of the index.
    hosts: Box<[(&'static str, Arc<str>)]>,
    /// Hash of all results.
    answers: u64,
}

impl Reads {
    /// Returns the hash of all results. Two parts that were made in the same way from the same results are equal.
    pub fn answers(&self) -> u64 {
        self.answers
    }

    /// Returns the hashes of keys that others have not read.
    fn keys_beyond<'a>(&'a self, others: &'a Self) -> impl Iterator<Item = u64> {
        let keys = self.keys.iter().copied();
        keys.filter(|key| others.keys.binary_search(key).is_err())
    }
}

/// Recorder of the reads of the current part. Nothing is recorded outside of a part.
#[derive(Debug, Default)]
pub struct Tape(RefCell<Option<Frame>>);

#[derive(Debug, Default)]
struct Frame {
    keys: Vec<u64>,
    hosts: Vec<(&'static str, Arc<str>)>,
    answers: u64,
}

impl Frame {
    fn reads(mut self) -> Reads {
        self.keys.sort_unstable();
        self.keys.dedup();
        self.hosts.sort_unstable();
        self.hosts.dedup();
        Reads {
            keys: self.keys.into(),
            hosts: self.hosts.into(),
            answers: self.answers,
        }
    }
}

impl Tape {
    /// Makes a part, and returns it with its reads. A nested call records the reads of its own part.
    pub fn part<T>(&self, make: impl FnOnce() -> T) -> (T, Reads) {
        let outer = self.0.replace(Some(Frame::default()));
        let part = make();
        let frame = self.0.replace(outer);
        (part, frame.unwrap_or_default().reads())
    }

    /// Returns the hash of all results that the current part has read so far.
    pub fn answers(&self) -> u64 {
        self.0.borrow().as_ref().map_or(0, |frame| frame.answers)
    }

    /// Records a read with the hash of its result.
    pub fn read(&self, read: Read<'_>, answer: u64) {
        if let Some(frame) = &mut *self.0.borrow_mut() {
            let key = read.key();
            frame.keys.push(key);
            frame.answers = frame.answers.wrapping_add(hash((key, answer)));
        }
    }

    /// Records a lookup of a host in an index with wildcards.
    pub fn read_host(&self, index: &'static str, host: &str, answer: u64) {
        if let Some(frame) = &mut *self.0.borrow_mut() {
            let is_last = |(last, of): &(&'static str, Arc<str>)| *last == index && **of == *host;
            if !frame.hosts.last().is_some_and(is_last) {
                frame.hosts.push((index, host.into()));
            }
        }
        self.read(Read::Index(index, host, ""), answer);
    }
}

/// Resource set whose reads are recorded, if a tape is attached.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    set: &'a ResourceSet,
    tape: Option<&'a Tape>,
}

impl<'a> From<&'a ResourceSet> for View<'a> {
    /// Creates a view without recording.
    fn from(set: &'a ResourceSet) -> Self {
        Self { set, tape: None }
    }
}

fn answer<T>(object: &Arc<Object<T>>) -> u64 {
    hash((
        object.fingerprint,
        &object.provenance.file,
        object.line_of(Line(0)),
    ))
}

pub(super) fn answers<'a, T: 'a>(objects: impl IntoIterator<Item = &'a Arc<Object<T>>>) -> u64 {
    let hashes = objects.into_iter().map(answer);
    hashes.fold(0, |all, one| hash((all, one)))
}

impl<'a> View<'a> {
    /// Creates a view that records reads on `tape`.
    pub fn new(set: &'a ResourceSet, tape: &'a Tape) -> Self {
        let tape = Some(tape);
        Self { set, tape }
    }

    /// Records a read within a part; only then computes the hash of the result.
    pub fn read(self, read: Read<'_>, answer: impl FnOnce() -> u64) {
        if let Some(tape) = self.recording() {
            tape.read(read, answer());
        }
    }

    fn recording(self) -> Option<&'a Tape> {
        self.tape.filter(|tape| tape.0.borrow().is_some())
    }

    /// Records a lookup of a host in an index with wildcards, within a part.
    pub fn read_host(self, index: &'static str, host: &str, answer: impl FnOnce() -> u64) {
        if let Some(tape) = self.recording() {
            tape.read_host(index, host, answer());
        }
    }

    /// Records a read of an object that an index has found.
    pub fn found<T: Spec>(self, object: &Arc<Object<T>>) {
        let id = &object.id;
        let read = Read::Object(T::KIND, &id.namespace, &id.name);
        self.read(read, || answers([object]));
    }

    /// Returns the object with a name.
    pub fn get<T: Spec>(self, name: &Name) -> Option<&'a Arc<Object<T>>> {
        let object = T::objects(self.set).get(name);
        let read = Read::Object(T::KIND, &name.namespace, &name.name);
        self.read(read, || answers(object));
        object
    }

    /// Returns the objects of other API groups with the same name as the one that [`View::get`] returns.
    pub fn get_in_other_groups<T: Spec>(self, name: &Name) -> &'a [Arc<Object<T>>] {
        let objects = T::objects(self.set).in_other_groups(name);
        let read = Read::Object(T::KIND, &name.namespace, &name.name);
        self.read(read, || answers(objects));
        objects
    }

    /// Returns the objects of a kind.
    pub fn all<T: Spec>(self) -> &'a Objects<T> {
        let objects = T::objects(self.set);
        self.read(Read::All(T::KIND), || answers(objects.in_all_groups()));
        objects
    }

    /// Returns the objects of a kind in a namespace, sorted by name.
    pub fn in_namespace<T: Spec>(
        self,
        namespace: &str,
    ) -> impl Iterator<Item = &'a Arc<Object<T>>> + use<'a, T> {
        let first = Name::new(namespace, "");
        let own = T::objects(self.set).starting_at(&first);
        let own = own.take_while(move |(name, _)| name.namespace == first.namespace);
        let own = own.map(|(_, object)| object);
        let all: Vec<_> = own.collect();
        let read = Read::Namespace(T::KIND, namespace);
        self.read(read, || answers(all.iter().copied()));
        all.into_iter()
    }

    /// Returns the names of the objects of a kind.
    pub fn names<T: Spec>(self) -> impl Iterator<Item = &'a Name> + Clone {
        let names = T::objects(self.set).keys();
        self.read(Read::Names(T::KIND), || {
            names.clone().fold(0, |all, name| hash((all, name)))
        });
        names
    }

    /// Whether a kind has no objects.
    pub fn is_empty<T: Spec>(self) -> bool {
        let is_empty = T::objects(self.set).is_empty();
        self.read(Read::Any(T::KIND), || u64::from(is_empty));
        is_empty
    }

    /// Returns the rejected objects of a kind that have no last good version.
    pub fn withheld(self, kind: Kind) -> impl Iterator<Item = &'a ObjectRef> + Clone {
        let withheld = self.set.withheld.iter();
        let withheld = withheld.filter(move |id| id.kind == kind);
        self.read(Read::Withheld(kind), || {
            withheld.clone().fold(0, |all, id| hash((all, id)))
        });
        withheld
    }
}

/// Pass-through hasher for keys, which are hashes already. Each compilation looks up all reads of all parts.
#[derive(Debug, Default)]
struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes
            .iter()
            .for_each(|byte| self.0 = self.0.rotate_left(8) ^ u64::from(*byte));
    }

    fn write_u64(&mut self, key: u64) {
        self.0 = key;
    }
}

/// Changed reads between two resource sets, including lookups in indexes.
#[derive(Debug, Default)]
pub struct Changes {
    /// Resource that caused each change, by the hash of the read's key.
    keys: HashMap<u64, Arc<str>, BuildHasherDefault<KeyHasher>>,
    /// Changed hosts, each with the resource that caused the change, by index with wildcards.
    hosts: HashMap<&'static str, HostIndex<Option<Arc<str>>>>,
    /// Reason to rebuild everything; `None` to rebuild only the changed parts.
    everything: Option<Arc<str>>,
}

impl Changes {
    /// Creates changes that rebuild everything, for this reason.
    pub fn everything(why: &str) -> Self {
        Self {
            everything: Some(why.into()),
            ..Self::default()
        }
    }

    /// Returns the changes between two resource sets, for every kind.
    pub fn between(before: &ResourceSet, now: &ResourceSet) -> Self {
        let mut changes = Self::default();
        changes.of_kinds(before, now);
        for id in before.withheld.symmetric_difference(&now.withheld) {
            changes.add(Read::Withheld(id.kind), &id.to_string().into());
        }
        changes
    }

    fn of_kind<T: Spec>(&mut self, before: &ResourceSet, now: &ResourceSet) {
        let (before, now) = (T::objects(before), T::objects(now));
        if before.same(now) {
            return;
        }
        for (gone, came) in differences(before, now) {
            if let Some(object) = gone.or(came) {
                self.object(&object.id, gone.is_some() == came.is_some());
            }
        }
        for (_, object) in before
            .all_in_other_groups()
            .chain(now.all_in_other_groups())
        {
            self.object(&object.id, true);
        }
        if let (true, Some(object)) = (
            before.is_empty() != now.is_empty(),
            before.values().chain(now.values()).next(),
        ) {
            self.add(Read::Any(T::KIND), &object.id.to_string().into());
        }
    }

    fn object(&mut self, id: &ObjectRef, is_there_still: bool) {
        let why = id.to_string().into();
        let names = (!is_there_still).then_some(Read::Names(id.kind));
        let all = [
            Read::All(id.kind),
            Read::Namespace(id.kind, &id.namespace),
            Read::Object(id.kind, &id.namespace, &id.name),
        ];
        all.into_iter()
            .chain(names)
            .for_each(|read| self.add(read, &why));
    }

    /// Adds a changed read, and the resource that caused the change.
    pub fn add(&mut self, read: Read<'_>, why: &Arc<str>) {
        let known = self.keys.entry(read.key());
        known.or_insert_with(|| Arc::clone(why));
    }

    /// Adds a host or wildcard with a changed lookup result, and the resource that caused the change.
    pub fn add_host(&mut self, index: &'static str, host: &str, why: &Arc<str>) {
        let of = self.hosts.entry(index).or_default();
        of.entry(host).get_or_insert_with(|| Arc::clone(why));
        self.add(Read::Index(index, host, ""), why);
    }

    /// Whether the result of a read has changed.
    pub fn has(&self, read: Read<'_>) -> bool {
        self.everything.is_some() || self.keys.contains_key(&read.key())
    }

    /// Whether everything is rebuilt.
    pub fn are_everything(&self) -> bool {
        self.everything.is_some()
    }

    /// Whether there are no changes.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty() && self.everything.is_none()
    }

    /// Returns the resource whose change rebuilds a part with these reads; `None` if the part is reused.
    pub fn cause_for(&self, reads: &Reads) -> Option<&Arc<str>> {
        if self.everything.is_some() || self.keys.is_empty() {
            return self.everything.as_ref();
        }
        let mut keys = reads.keys.iter();
        let by_key = keys.find_map(|key| self.keys.get(key));
        by_key.or_else(|| self.cause_for_hosts(reads))
    }

    fn cause_for_hosts(&self, reads: &Reads) -> Option<&Arc<str>> {
        let mut hosts = reads.hosts.iter();
        hosts.find_map(|(index, host)| self.hosts.get(index)?.find(host)?.as_ref())
    }

    /// Whether the lookup result of a wildcard has changed.
    fn has_wildcards(&self) -> bool {
        let mut hosts = self.hosts.values().flat_map(HostIndex::iter);
        hosts.any(|(host, _)| host.starts_with('*'))
    }
}

macro_rules! of_kinds {
    ($($group:literal $kind:ident $field:ident $module:ident $($marks:ident)?;)*) => {
        impl Changes {
            fn of_kinds(&mut self, before: &ResourceSet, now: &ResourceSet) {
                $(self.of_kind::<$module::$kind>(before, now);)*
            }
        }
    };
}
kinds!(of_kinds);
