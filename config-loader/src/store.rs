//! Store: last good version of each object, revisions and deltas. Uses the readings of `load`, `resource`,
//! `diagnostic`, and `validate` for immutable fields.
//!
//! An invalid version never replaces a valid one:
//! - A rejected object stays in effect in its last good version. It is *quarantined*.
//! - A change of an immutable field is rejected until the object is deleted once.
//! - An object that disappeared stays in effect while its file has a document that cannot be parsed and may contain it.
//! - A file that cannot be read keeps all its objects. Only removal of the file removes them.
//!
//! - Of several objects with the same name, the one in effect stays in effect while its file contains it; otherwise the
//!   first by file and document is used.
//! - An object that restricts routing and never had a valid version is *withheld*: users of the set know that it should
//!   exist.
//! - A security policy that never had a valid version has a *stand-in*, which denies what the policy selects. So has each
//!   further definition of a policy that was defined several times from the start (`repeated`).
//!
//! If all files are valid, the set depends only on the current files, not on earlier versions.

mod held;
mod repeated;
mod update;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

pub use update::{Delta, Quarantined};

use crate::diagnostic::codes::common::CM020;
use crate::diagnostic::{Diagnostic, Location, Severity};
use crate::kind::{ObjectRef, UNREADABLE_NAMESPACE};
use crate::kinds;
use crate::kinds::DocumentObject;
use crate::load::FileReading;
use crate::resource::{AnyObject, ResourceSet};
use crate::span::Span;
use crate::validate::{immutable, scalar};

/// Change of a file.
#[derive(Debug)]
pub(crate) enum Change {
    /// The file was removed.
    Gone,
    /// The file was read.
    Read(FileReading),
    /// The file exists but cannot be read.
    Unreadable(Box<Diagnostic>),
}

/// Position of an object: file, document and slot.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Position {
    file: Arc<str>,
    document: usize,
    slot: usize,
}

#[cfg(test)]
impl Change {
    /// Reads a text as a change of a file.
    pub(crate) fn text(store: &Store, file: &str, text: &str) -> Change {
        let file = Arc::from(file);
        Change::Read(crate::load::read_file(
            &file,
            text,
            store.reading(&file),
            Default::default(),
        ))
    }
}

/// Positions of the versions of one object.
type Positions = BTreeSet<Position>;

/// Objects to re-evaluate, each with the changed file.
type Affected = BTreeMap<ObjectRef, Arc<str>>;

/// Store of all files and of the objects in effect.
///
/// Nearly every object has one position and is in effect as written. For such an object the store keeps only the
/// object, which knows its file and document, so that 10,000 pods use little memory.
#[derive(Debug, Default)]
pub struct Store {
    files: HashMap<Arc<str>, FileReading>,
    /// Files with diagnostics.
    with_findings: BTreeSet<Arc<str>>,
    /// Positions of all other objects: objects with several positions (an error for all but the first), objects without
    /// a position that are still in effect, and rejected objects.
    positions: HashMap<ObjectRef, Positions>,
    repeated: BTreeSet<ObjectRef>,
    /// Objects that are rejected, or that disappeared while their file has errors.
    quarantined: BTreeSet<ObjectRef>,
    /// Objects of `quarantined` that disappeared, each with the file with errors that may still contain it.
    kept: BTreeMap<ObjectRef, Arc<str>>,
    /// Objects of `quarantined` that changed an immutable field, with the diagnostic.
    refused: BTreeMap<ObjectRef, Diagnostic>,
    /// Number of stand-ins for further definitions, by policy.
    denying: BTreeMap<ObjectRef, usize>,
    /// Whether a source has not sent all of its objects yet.
    pub(crate) is_starting: bool,
    set: Arc<ResourceSet>,
}

impl Store {
    /// Creates an empty store.
    pub fn new() -> Store {
        Store::default()
    }

    /// Returns the objects in effect.
    pub fn set(&self) -> &Arc<ResourceSet> {
        &self.set
    }

    /// Returns the last reading of a file, from which unchanged documents can be reused.
    pub(crate) fn reading(&self, file: &str) -> Option<&FileReading> {
        self.files.get(file)
    }

    /// Applies changes of files as one change of the set.
    pub(crate) fn apply(&mut self, changes: Vec<(Arc<str>, Change)>) -> Delta {
        let mut affected = Affected::new();
        for (file, change) in changes {
            self.change_file(&file, change, &mut affected);
        }
        let mut delta = Delta::default();
        let mut set = ResourceSet::clone(&self.set);
        // An object without a readable name may be one that stays in effect: that is decided first.
        let (named, unnamed): (Vec<_>, Vec<_>) =
            affected.into_iter().partition(|(id, _)| is_readable(id));
        for (id, file) in named.into_iter().chain(unnamed) {
            self.decide(id, &file, &mut set, &mut delta);
        }
        // it had an entry for each affected object
        self.positions.shrink_to(2 * self.positions.len());
        if !delta.is_empty() {
            set.revision += 1;
            self.set = Arc::new(set);
        }
        delta
    }

    fn change_file(&mut self, file: &Arc<str>, change: Change, affected: &mut Affected) {
        // What is quarantined without standing anywhere may have to go when its file gets well.
        let kept = self.kept.iter().filter(|(_, keeper)| *keeper == file);
        affected.extend(kept.map(|(id, keeper)| (id.clone(), Arc::clone(keeper))));
        let old = self.files.remove(file);
        let new = match change {
            Change::Gone => None,
            Change::Unreadable(failure) => {
                // Its objects stay where they are, but now as quarantined ones.
                let documents = old
                    .as_ref()
                    .map_or_else(Box::default, |old| old.documents.clone());
                Some(FileReading {
                    documents,
                    failure: Some(failure),
                })
            }
            Change::Read(reading) => Some(reading),
        };
        let new_failed = new.as_ref().is_some_and(|new| new.failure.is_some());
        let was_failed = old.as_ref().is_some_and(|old| old.failure.is_some());
        // The cost is what changed: documents that are the same, in the same place, need no second look.
        let keep = was_failed == new_failed;
        let none = FileReading::default();
        let (before, after) = (old.as_ref().unwrap_or(&none), new.as_ref().unwrap_or(&none));
        let gone = positions(file, before, keep.then_some(after));
        let came = positions(file, after, keep.then_some(before));
        for (id, position) in gone {
            // without an entry it is the only position
            self.positions
                .entry(id.clone())
                .or_default()
                .remove(&position);
            affected.insert(id, Arc::clone(file));
        }
        match new.as_ref().is_some_and(FileReading::has_findings) {
            true => self.with_findings.insert(Arc::clone(file)),
            false => self.with_findings.remove(file),
        };
        if let Some(new) = new {
            self.files.insert(Arc::clone(file), new);
        }
        for (id, position) in came {
            let mut all = self.positions(&id, &self.set);
            all.insert(position);
            self.positions.insert(id.clone(), all);
            affected.insert(id, Arc::clone(file));
        }
    }

    /// Returns the positions of an object.
    fn positions(&self, id: &ObjectRef, set: &ResourceSet) -> Positions {
        let listed = self.positions.get(id).cloned();
        listed.unwrap_or_else(|| {
            let object = in_effect(set, id);
            let position = object.and_then(|object| self.position_of(&object));
            position.into_iter().collect()
        })
    }

    /// Returns the position of an object that is still in the file it was read from.
    fn position_of(&self, object: &Arc<dyn AnyObject>) -> Option<Position> {
        let (file, order) = (&object.provenance().file, object.order());
        let document = order.document as usize;
        let slots = &self
            .files
            .get(file)?
            .documents
            .get(document)?
            .reading
            .slots();
        // A list may have items that are no objects, so that a slot has at most the number of its item.
        let last = slots.len().min(order.item as usize + 1);
        let is_it =
            |slot: &DocumentObject| slot.good().is_some_and(|good| Arc::ptr_eq(good, object));
        let slot = slots[..last].iter().rposition(is_it)?;
        Some(Position {
            file: Arc::clone(file),
            document,
            slot,
        })
    }

    /// Drops the stored positions of an object whose only position follows from the object itself.
    fn compact(&mut self, id: &ObjectRef, in_effect: Option<&Arc<dyn AnyObject>>) {
        let Some(listed) = self.positions.get(id) else {
            return;
        };
        let is_implied = match in_effect {
            None => listed.is_empty(),
            Some(object) => {
                let own = self.position_of(object);
                listed.len() == 1 && listed.first() == own.as_ref()
            }
        };
        if is_implied {
            self.positions.remove(id);
        }
    }

    fn slot(&self, position: &Position) -> Option<&DocumentObject> {
        let document = self
            .files
            .get(&position.file)?
            .documents
            .get(position.document)?;
        document.reading.slots().get(position.slot)
    }

    /// Decides which version of an object is in effect after a change of `file`, which contained or contains it.
    fn decide(&mut self, id: ObjectRef, file: &Arc<str>, set: &mut ResourceSet, delta: &mut Delta) {
        let before = in_effect(set, &id);
        let positions = self.positions(&id, set);
        let count = positions.len();
        let mut slots = self.slots(&positions, before.as_ref()).into_iter();
        let is_kept = before.is_none() && self.may_be_kept(&id, file, set);
        let mut keeper = None;
        let mut refused = None;
        let (after, quarantined) = match slots.next() {
            Some((
                position,
                DocumentObject {
                    object: Ok(object), ..
                },
            )) => {
                let forbidden =
                    |before: &Arc<dyn AnyObject>| immutable::check(&**before, &**object);
                refused = before.as_ref().and_then(forbidden);
                match refused {
                    Some(_) => (before.clone(), true),
                    None => (Some(Arc::clone(object)), self.is_failed(&position.file)),
                }
            }
            Some((_, first)) => {
                let mut other = || slots.find_map(|(_, slot)| slot.good().cloned());
                let rejected = first.object.as_ref().err().filter(|_| !is_kept);
                let stand_in = rejected.and_then(|rejected| rejected.stand_in.clone());
                let last_good = before.clone().filter(|before| !before.is_stand_in());
                let good = last_good.or_else(&mut other);
                // It must not admit clients that the rejected version may deny.
                let restricted = good.as_ref().filter(|_| stand_in.is_some());
                let restricted = restricted.and_then(|good| good.restricted());
                (restricted.or(good).or(stand_in), !is_kept)
            }
            None => {
                keeper = before
                    .as_ref()
                    .and_then(|before| self.keeper(&id, file, before));
                (
                    before.clone().filter(|_| keeper.is_some()),
                    keeper.is_some(),
                )
            }
        };
        remember(&mut self.repeated, &id, count > 1);
        remember(&mut self.quarantined, &id, quarantined);
        match refused {
            Some(refused) => self.refused.insert(id.clone(), refused),
            None => self.refused.remove(&id),
        };
        match keeper {
            Some(keeper) => self.kept.insert(id.clone(), keeper),
            None => self.kept.remove(&id),
        };
        delta.note(&id, before.as_ref(), after.as_ref());
        let withheld = quarantined && after.is_none() && id.kind.restricts();
        if withheld != set.withheld.contains(&id) {
            remember(Arc::make_mut(&mut set.withheld), &id, withheld);
            delta.withheld.push(id.clone());
        }
        let is_same = match (&before, &after) {
            (Some(before), Some(after)) => Arc::ptr_eq(before, after),
            (before, after) => before.is_none() && after.is_none(),
        };
        if !is_same {
            put(&id, after.as_ref(), set);
        }
        self.deny_repetitions(&id, [before.as_ref(), after.as_ref()], set, delta);
        self.compact(&id, after.as_ref());
    }

    /// Returns the slots at these positions by precedence: first the file of the version in effect, then by file and
    /// document. So a duplicate of an object does not replace it.
    fn slots<'a>(
        &'a self,
        positions: &'a Positions,
        in_effect: Option<&Arc<dyn AnyObject>>,
    ) -> Vec<(&'a Position, &'a DocumentObject)> {
        let slots = positions.iter();
        let slots = slots.filter_map(|position| Some((position, self.slot(position)?)));
        let mut slots: Vec<_> = slots.collect();
        if let ([_, _, ..], Some(before)) = (&*slots, in_effect) {
            let file = &before.provenance().file;
            slots.sort_by_key(|(position, _)| position.file != *file);
        }
        slots
    }

    /// Returns the file with errors that may still contain an object without a position: the file it was read from, the
    /// file that contained it until now, or the file that was suspected before.
    fn keeper(
        &self,
        id: &ObjectRef,
        file: &Arc<str>,
        before: &Arc<dyn AnyObject>,
    ) -> Option<Arc<str>> {
        let suspects = [
            Some(&before.provenance().file),
            Some(file),
            self.kept.get(id),
        ];
        suspects
            .into_iter()
            .flatten()
            .find(|file| self.has_unreadable(file))
            .cloned()
    }

    /// Whether a new security policy without a readable name may be one that stays in effect: its file has kept one of
    /// this kind.
    fn may_be_kept(&self, id: &ObjectRef, file: &Arc<str>, set: &ResourceSet) -> bool {
        let mut kept = self.kept.iter();
        let is_new = id.kind.is_security() && !is_readable(id) && !set.withheld.contains(id);
        is_new && kept.any(|(kept, keeper)| kept.kind == id.kind && keeper == file)
    }

    fn is_failed(&self, file: &Arc<str>) -> bool {
        self.files
            .get(file)
            .is_some_and(|file| file.failure.is_some())
    }

    fn has_unreadable(&self, file: &Arc<str>) -> bool {
        self.files.get(file).is_some_and(|file| {
            file.failure.is_some()
                || file
                    .documents
                    .iter()
                    .any(|document| document.reading.is_unreadable())
        })
    }

    /// Returns the diagnostics about changes of immutable fields, without source lines.
    pub fn refusals(&self) -> Vec<Diagnostic> {
        self.refused.values().cloned().collect()
    }

    /// Returns the diagnostics of the current files, except [`Store::refusals`].
    pub fn diagnostics(&self) -> Vec<Diagnostic> {
        let mut found = Vec::new();
        let files = self.with_findings.iter();
        for file in files.filter_map(|file| self.files.get(file)) {
            match &file.failure {
                // What was found in a text that is no more would only confuse.
                Some(failure) => found.push(Diagnostic::clone(failure)),
                None => {
                    let readings = file.documents.iter().map(|document| &document.reading);
                    found
                        .extend(readings.flat_map(|reading| reading.diagnostics().iter().cloned()));
                }
            }
        }
        for id in &self.repeated {
            found.extend(self.repetitions(id));
        }
        found
    }

    /// Returns the diagnostics about an object with several positions.
    fn repetitions(&self, id: &ObjectRef) -> Vec<Diagnostic> {
        let positions = self.positions(id, &self.set);
        let slots = self.slots(&positions, in_effect(&self.set, id).as_ref());
        let mut locations = slots
            .into_iter()
            .map(|(position, slot)| slot.at.location(&position.file));
        let Some(first) = locations.next() else {
            return Vec::new();
        };
        let repeat = |location: Location| {
            let message = format!("{id} is already defined at {}:{}", first.file, first.line);
            let mut found = Diagnostic::at(Severity::Error, CM020, Span::NONE, message);
            found.object = Some(id.clone());
            found.location = location;
            found.field = "metadata.name".to_owned();
            found.help(match self.denying.contains_key(id) {
                true => "the other definition is used, and this one denies what it selects: rename or remove this one",
                false => "the other definition is used: rename or remove this one",
            });
            found.related(first.clone(), "defined here");
            found
        };
        locations.map(repeat).collect()
    }

    /// Returns the objects whose current text is not in effect, with the reasons.
    pub fn quarantined(&self) -> Vec<Quarantined> {
        self.quarantined
            .iter()
            .map(|id| self.quarantine(id))
            .collect()
    }

    /// Returns the files with content that is not in effect.
    pub(crate) fn rejected_files(&self) -> BTreeSet<Arc<str>> {
        let quarantined = self.quarantined.iter();
        let files = quarantined.flat_map(|id| {
            let positions = self.positions(id, &self.set).into_iter();
            let kept = self.kept.get(id).cloned();
            positions.map(|position| position.file).chain(kept)
        });
        files.collect()
    }

    fn quarantine(&self, id: &ObjectRef) -> Quarantined {
        let in_force = in_effect(&self.set, id);
        let denies = in_force.as_ref().is_some_and(|object| object.is_stand_in());
        let in_force = in_force.is_some() && !denies;
        let position = self.positions(id, &self.set).pop_first();
        let file = position.as_ref().map(|position| &position.file);
        let file = file.or_else(|| self.kept.get(id));
        let Some(reading) = file.and_then(|file| self.files.get(file)) else {
            return Quarantined {
                object: id.clone(),
                in_force,
                denies,
                diagnostics: Vec::new(),
            };
        };
        let diagnostics = match (&reading.failure, &position) {
            (Some(failure), _) => vec![Diagnostic::clone(failure)],
            (None, Some(position)) => {
                let found = reading
                    .documents
                    .get(position.document)
                    .map(|document| document.reading.diagnostics());
                let is_reason = |found: &&Diagnostic| {
                    found.severity == Severity::Error
                        && found.object.as_ref().is_none_or(|object| object == id)
                };
                let found = found.into_iter().flatten().filter(is_reason);
                found.chain(self.refused.get(id)).cloned().collect()
            }
            (None, None) => {
                let broken = reading
                    .documents
                    .iter()
                    .filter(|document| document.reading.is_unreadable());
                broken
                    .flat_map(|document| document.reading.diagnostics().iter().cloned())
                    .collect()
            }
        };
        Quarantined {
            object: id.clone(),
            in_force,
            denies,
            diagnostics,
        }
    }
}

/// Whether the reference is that of one object: name and namespace could be read.
fn is_readable(id: &ObjectRef) -> bool {
    scalar::is_object_name(&id.name) && *id.namespace != *UNREADABLE_NAMESPACE
}

/// Returns the object in effect with this reference.
fn in_effect(set: &ResourceSet, id: &ObjectRef) -> Option<Arc<dyn AnyObject>> {
    let mut named = set.named(id.kind, &id.to_name()).into_iter();
    named.find(|object| object.id().group == id.group)
}

/// Inserts the object in effect into the set. Of several API groups one takes precedence.
fn put(id: &ObjectRef, object: Option<&Arc<dyn AnyObject>>, set: &mut ResourceSet) {
    if id.group.is_empty() {
        match object {
            Some(object) => Arc::clone(object).put(set),
            None => set.remove(id),
        }
        return;
    }
    let mut all = set.named(id.kind, &id.to_name());
    all.retain(|other| other.id().group != id.group);
    all.extend(object.cloned());
    let groups = kinds::groups(id.kind);
    all.sort_by_key(|object| groups.iter().position(|group| *group == object.id().group));
    set.remove(id);
    let mut all = all.into_iter();
    all.next().into_iter().for_each(|first| first.put(set));
    all.for_each(|other| other.put_beside(set));
}

/// Returns the positions of the objects in a file, without documents that are the same in `other`.
fn positions(
    file: &Arc<str>,
    reading: &FileReading,
    other: Option<&FileReading>,
) -> Vec<(ObjectRef, Position)> {
    let mut positions = Vec::new();
    for (document, read) in reading.documents.iter().enumerate() {
        let same = other.and_then(|other| other.documents.get(document));
        if same.is_some_and(|same| same.reading.is_same(&read.reading)) {
            continue;
        }
        for (slot, found) in read.reading.slots().iter().enumerate() {
            positions.push((
                found.id().clone(),
                Position {
                    file: Arc::clone(file),
                    document,
                    slot,
                },
            ));
        }
    }
    positions
}

fn remember(set: &mut BTreeSet<ObjectRef>, id: &ObjectRef, holds: bool) {
    if holds {
        set.insert(id.clone());
    } else {
        set.remove(id);
    }
}

#[cfg(test)]
mod tests;
