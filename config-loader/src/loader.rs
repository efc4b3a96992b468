//! Loader: from paths and servers to resource sets, once or as a watch.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tokio::sync::watch;

use crate::diagnostic::codes::common::SRC006;
use crate::diagnostic::{Diagnostic, Diagnostics, Severity};
use crate::ingress::Translator;
use crate::kind::Kind;
use crate::load::{read_file, text_of, too_large};
use crate::parse::FILE_BYTES_MAX;
use crate::proxy_state::ProxyState;
use crate::resource::{AnyObject, ResourceSet};
use crate::source::{
    self, ControlSettings, FileEvent, FileSource, Follow, Look, ObjectText, ReadObject, Received,
    ServerContext, ServersFollowing, Source, SourceAges, SourceErrors, SourceRevision,
    WatchSettings,
};
use crate::store::{Change, Delta, Quarantined, Store};
use crate::validate::immutable;
use crate::validate::references::References;
use crate::{Fleet, ReadOptions};
use pace::Pace;

mod checker;
mod pace;
mod policies;
mod quote;

pub use checker::Checker;
pub use quote::{NamedText, fill_source_lines, fill_source_lines_with};

/// Options of [`load_files`].
#[derive(Clone, Debug, Default)]
pub struct LoadOptions {
    /// Strictness of reading.
    pub read: ReadOptions,
    /// Fleet that diagnostics are for.
    pub fleet: Fleet,
    /// Text that is in no file, such as standard input, with its display name.
    pub text: Option<NamedText>,
}

/// Result of loading all sources once.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// Accepted objects.
    pub set: Arc<ResourceSet>,
    /// All diagnostics, in file order.
    pub diagnostics: Vec<Diagnostic>,
    /// Rejected objects.
    pub quarantined: Vec<Quarantined>,
    /// Description of the missing data until the first complete set of objects; `None` if it is complete.
    pub waits_for: Option<String>,
    /// Newest revision of each source.
    pub revisions: Vec<SourceRevision>,
}

/// Change of the objects in effect, or of the diagnostics.
#[derive(Clone, Debug)]
pub struct Update {
    /// Objects in effect.
    pub set: Arc<ResourceSet>,
    /// Difference from the objects of the previous update.
    pub changed: Delta,
    /// All diagnostics of the current files, in file order.
    pub diagnostics: Vec<Diagnostic>,
    /// Objects whose current text is not in effect.
    pub quarantined: Vec<Quarantined>,
    /// Description of the missing data until the first complete set of objects; `None` if it is complete.
    pub waits_for: Option<String>,
    /// Newest revision of each source.
    pub revisions: Vec<SourceRevision>,
}

/// Handle of a watch, which ends when the handle is dropped.
#[derive(Debug)]
pub struct Watch {
    stop: Option<source::Stop>,
    /// Watch of the servers. Ends when it is dropped.
    servers: Option<ServersFollowing>,
    recheck: Recheck,
}

/// Repeats the checks across objects, after a change of the fleet.
#[derive(Clone, Default)]
pub struct Recheck(Option<Arc<dyn Fn() + Send + Sync>>);

impl Recheck {
    /// Checks all objects. Changed diagnostics are reported as usual.
    pub fn run(&self) {
        if let Some(recheck) = &self.0 {
            recheck();
        }
    }
}

impl fmt::Debug for Recheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Recheck")
    }
}

impl Watch {
    pub(crate) fn new(stop: source::Stop) -> Watch {
        Watch {
            stop: Some(stop),
            ..Watch::of_nothing()
        }
    }

    /// Creates a watch without sources, for input that cannot change.
    pub(crate) fn of_nothing() -> Watch {
        Watch {
            stop: None,
            servers: None,
            recheck: Recheck::default(),
        }
    }

    /// Scans all files now, including files without a change event. Changes are reported as usual.
    pub fn look_now(&self) {
        if let Some(stop) = &self.stop {
            stop.look_now();
        }
    }

    /// Returns the means to check all objects again.
    pub fn recheck(&self) -> Recheck {
        self.recheck.clone()
    }
}

/// Loads files and directories once.
///
/// ```
/// let loaded = config_loader::load_files(&["mesh".into()], config_loader::LoadOptions::default());
/// for finding in loaded.diagnostics.iter() {
///     println!("{}", finding.message);
/// }
/// ```
pub fn load_files(paths: &[PathBuf], options: LoadOptions) -> Loaded {
    let mut loader = Loader {
        fleet: options.fleet,
        text: options.text,
        ..Loader::new(options.read)
    };
    let mut look = FileSource::new(paths, FILE_BYTES_MAX).look();
    if let Some((name, bytes)) = &loader.text {
        if bytes.trim_ascii().is_empty() {
            look.problems.push(empty(name));
        }
        let event = FileEvent::Bytes(bytes.to_vec());
        look.events.push((Arc::clone(name), event));
    }
    loader.absorb(look);
    loader.loaded()
}

/// Loads texts by their names, as [`load_files`] does files.
pub fn load_texts(texts: Vec<NamedText>, options: LoadOptions) -> Loaded {
    let mut loader = Loader {
        fleet: options.fleet,
        ..Loader::new(options.read)
    };
    let events = texts.into_iter();
    let events = events.map(|(name, bytes)| (name, FileEvent::Bytes(bytes.to_vec())));
    loader.absorb(Look {
        events: events.collect(),
        ..Look::default()
    });
    loader.loaded()
}

/// Loads the text of one file. Adds the diagnostics to `diagnostics`.
pub fn load_bytes(file: &str, bytes: &[u8], diagnostics: &mut Diagnostics) -> ResourceSet {
    let mut loader = Loader::default();
    let event = FileEvent::Bytes(bytes.to_vec());
    loader.absorb(Look {
        events: vec![(Arc::from(file), event)],
        ..Look::default()
    });
    diagnostics.extend(loader.diagnostics);
    ResourceSet::clone(loader.store.set())
}

/// Loads files and directories, and calls `on_update` from a thread of its own whenever the objects in effect or the
/// diagnostics change.
///
/// # Errors
/// Returns the error of the operating system if no thread can be started.
pub fn watch(
    paths: &[PathBuf],
    settings: WatchSettings,
    on_update: impl FnMut(Update) + Send + 'static,
) -> std::io::Result<(Loaded, Watch)> {
    let sources = Sources {
        paths: paths.to_vec(),
        ..Sources::default()
    };
    watch_for(Fleet::default, &sources, settings, on_update)
}

/// Sources of resources.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// Files and directories.
    pub paths: Vec<PathBuf>,
    /// Servers of `--control`.
    pub control: Option<ControlSettings>,
    /// State of the proxy, for servers that accept reports; `None` to send no reports.
    pub states: Option<watch::Receiver<Option<Arc<ProxyState>>>>,
    /// Error counters of the servers.
    pub errors: SourceErrors,
    /// Time since each server last sent data.
    pub ages: SourceAges,
}

/// Watches as [`watch()`] does, for all sources and with diagnostics for a proxy in this fleet. `fleet` is called
/// before every check. Data of servers arrives later: see [`Loaded::waits_for`].
///
/// # Errors
/// Returns the error of the operating system if no thread can be started.
pub fn watch_for(
    fleet: impl Fn() -> Fleet + Send + 'static,
    sources: &Sources,
    settings: WatchSettings,
    on_update: impl FnMut(Update) + Send + 'static,
) -> std::io::Result<(Loaded, Watch)> {
    let mut loader = Loader {
        fleet: fleet(),
        keeps_policies: settings.keeps_policies,
        ..Loader::new(settings.read)
    };
    let mut files = FileSource::new(&sources.paths, FILE_BYTES_MAX);
    let mut look = files.look();
    if !sources.paths.is_empty() {
        let revision = source::revision_of_files(Received::now());
        look.revisions.push(revision);
    }
    loader.absorb(look);
    if sources.control.is_some() {
        loader.absorb(Look {
            source: Source::Servers,
            waits_for: Some("the servers of --control".to_owned()),
            ..Look::default()
        });
    }
    let loaded = loader.loaded();
    let following = Arc::new(Mutex::new(Following {
        loader,
        fleet,
        on_update,
    }));
    let mut watch = Watch::of_nothing();
    let checked = Shared(Arc::clone(&following));
    watch.recheck = Recheck(Some(Arc::new(move || checked.lock().catch_up())));
    if !sources.paths.is_empty() {
        let follower = Shared(Arc::clone(&following));
        watch.stop = Some(source::spawn(files, settings, follower)?);
    }
    if let Some(servers) = &sources.control {
        let context = ServerContext {
            read: read_object(settings.read),
            states: sources.states.clone(),
            errors: sources.errors.clone(),
            ages: sources.ages.clone(),
        };
        let followed = source::follow_servers(servers.clone(), context, Shared(following))?;
        watch.servers = Some(followed);
    }
    Ok((loaded, watch))
}

/// Consumer that several sources share, each from a thread of its own.
struct Shared<T>(Arc<Mutex<T>>);

impl<T> Shared<T> {
    fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Follow> Follow for Shared<T> {
    fn look(&mut self, look: Look) {
        self.lock().look(look);
    }

    fn deadline(&self, now: Instant) -> Option<Instant> {
        self.lock().deadline(now)
    }

    fn catch_up(&mut self) {
        self.lock().catch_up();
    }

    fn rejected(&self) -> BTreeSet<Arc<str>> {
        self.lock().rejected()
    }
}

/// Loader with its callbacks for updates.
struct Following<F, U> {
    loader: Loader,
    fleet: F,
    on_update: U,
}

impl<F, U: FnMut(Update)> Following<F, U> {
    fn hand_on(&mut self, changed: Delta) {
        let Loaded {
            set,
            diagnostics,
            quarantined,
            waits_for,
            revisions,
        } = self.loader.loaded();
        (self.on_update)(Update {
            set,
            changed,
            diagnostics,
            quarantined,
            waits_for,
            revisions,
        });
    }
}

impl<F: Fn() -> Fleet, U: FnMut(Update)> Follow for Following<F, U> {
    fn look(&mut self, look: Look) {
        self.loader.fleet = (self.fleet)();
        if let Some(changed) = self.loader.absorb(look) {
            self.hand_on(changed);
        }
    }

    fn deadline(&self, now: Instant) -> Option<Instant> {
        let held = self.loader.held_until();
        let checks = self.loader.pace.deadline(now);
        checks.into_iter().chain(held).min()
    }

    fn catch_up(&mut self) {
        self.loader.fleet = (self.fleet)();
        let released = self.loader.release_due(Instant::now());
        if self.loader.check() || !released.is_empty() {
            self.hand_on(released);
        }
    }

    fn rejected(&self) -> BTreeSet<Arc<str>> {
        self.loader.store.rejected_files()
    }
}

/// Store, with the diagnostics about its content.
#[derive(Debug, Default)]
struct Loader {
    store: Store,
    options: ReadOptions,
    fleet: Fleet,
    /// Text that is read in addition to files, such as standard input.
    text: Option<NamedText>,
    /// Diagnostics about the sources themselves, such as missing paths.
    problems: BTreeMap<Source, Vec<Diagnostic>>,
    /// Description of the data that a source still lacks for its first complete state.
    awaited: BTreeMap<Source, String>,
    /// Newest revision of each source, by name.
    revisions: BTreeMap<Arc<str>, SourceRevision>,
    checker: References,
    /// Diagnostics about references between objects, for the set in effect or a previous one.
    references: Vec<Diagnostic>,
    pace: Pace,
    diagnostics: Vec<Diagnostic>,
    /// Whether policies stay in effect for some time after their source has deleted all of them.
    keeps_policies: bool,
    /// Policies that do.
    held: Held,
    /// Translation of Ingresses.
    ingresses: Translator,
}

/// Policies that are gone from their source and stay in effect.
#[derive(Debug)]
struct HeldPolicies {
    objects: Vec<Arc<dyn AnyObject>>,
    until: Instant,
}

/// Held policies by source and kind.
type Held = BTreeMap<(Arc<str>, Kind), HeldPolicies>;

impl Loader {
    fn new(options: ReadOptions) -> Loader {
        Loader {
            options,
            ..Loader::default()
        }
    }

    /// Applies a scan of a source. Returns the difference if anything changed.
    fn absorb(&mut self, look: Look) -> Option<Delta> {
        let newest = look.events.iter();
        let newest = newest.filter(|(file, _)| look.last_good.contains_key(file));
        let newest: Vec<_> = newest.cloned().collect();
        let before = Arc::clone(self.store.set());
        self.store.is_starting = !self.awaited.is_empty();
        let mut delta = self.apply(look.events);
        self.fall_back(newest, look.last_good, &mut delta);
        self.changed_policies(&before, &mut delta);
        self.problems.insert(look.source, look.problems);
        let awaits_other = match look.waits_for {
            Some(awaited) => self.awaited.insert(look.source, awaited.clone()) != Some(awaited),
            None => self.awaited.remove(&look.source).is_some(),
        };
        if !delta.is_empty() && self.pace.change() {
            self.check_references();
        }
        let is_further = self.note_revisions(look.revisions);
        let differs = self.gather() || awaits_other || is_further;
        (!delta.is_empty() || differs).then_some(delta)
    }

    /// Puts the last good texts into effect where the `newest` ones are rejected.
    fn fall_back(
        &mut self,
        mut newest: Vec<(Arc<str>, FileEvent)>,
        mut last_good: BTreeMap<Arc<str>, String>,
        delta: &mut Delta,
    ) {
        if newest.is_empty() {
            return;
        }
        let rejected = self.store.rejected_files();
        newest.retain(|(file, _)| rejected.contains(file));
        last_good.retain(|file, _| rejected.contains(file));
        let last_good = last_good.into_iter();
        let last_good = last_good.map(|(file, text)| (file, FileEvent::Bytes(text.into_bytes())));
        delta.extend(self.apply(last_good.collect()));
        delta.extend(self.apply(newest));
    }

    /// Reads changed files and applies them to the store as one change.
    fn apply(&mut self, events: Vec<(Arc<str>, FileEvent)>) -> Delta {
        let changes = events.into_iter().map(|(file, event)| {
            let change = self.change(&file, event);
            (file, change)
        });
        let changes = changes.collect();
        self.store.apply(changes)
    }

    fn change(&self, file: &Arc<str>, event: FileEvent) -> Change {
        if let FileEvent::Object(ObjectText {
            reading: Some(reading),
            ..
        }) = event
        {
            return Change::Read(Arc::unwrap_or_clone(reading));
        }
        match text_of_event(file, event) {
            Ok(None) => Change::Gone,
            Ok(Some(text)) => {
                let known = self.store.reading(file);
                Change::Read(read_file(file, &text, known, self.options))
            }
            Err(failure) => Change::Unreadable(failure),
        }
    }

    /// Records revisions of sources. Returns whether any source has other content than before.
    fn note_revisions(&mut self, revisions: Vec<SourceRevision>) -> bool {
        let mut differs = false;
        for new in revisions {
            let name = Arc::clone(&new.source);
            let before = self.revisions.insert(name, new.clone());
            differs |= before.is_none_or(|before| new.differs(&before));
        }
        differs
    }

    /// Runs the checks of the whole set that were postponed. Returns whether the diagnostics changed.
    fn check(&mut self) -> bool {
        self.check_references();
        self.gather()
    }

    fn check_references(&mut self) {
        let start = Instant::now();
        let (set, options) = (self.store.set(), self.options);
        self.references = self.checker.check(set, options, &self.fleet);
        fill_source_lines_with(&mut self.references, self.text.as_ref());
        self.pace.made(start, Instant::now());
    }

    /// Collects and sorts all diagnostics. Returns whether they changed.
    fn gather(&mut self) -> bool {
        let mut found = Diagnostics::default();
        found.extend(self.problems.values().flatten().cloned());
        found.extend(self.store.diagnostics());
        let mut refusals = self.store.refusals();
        fill_source_lines_with(&mut refusals, self.text.as_ref());
        found.extend(refusals);
        found.extend(self.references.iter().cloned());
        self.translate();
        let mut of_ingresses = self.ingresses.expanded().findings.clone();
        fill_source_lines_with(&mut of_ingresses, self.text.as_ref());
        found.extend(of_ingresses);
        let mut found = found.into_sorted();
        found.dedup();
        let differs = found != self.diagnostics;
        self.diagnostics = found;
        differs
    }

    /// Translates Ingresses, if they are served.
    fn translate(&mut self) {
        let settings = self.fleet.ingress.as_deref();
        self.ingresses.update(self.store.set(), settings);
    }

    fn loaded(&mut self) -> Loaded {
        self.translate();
        Loaded {
            set: Arc::clone(&self.ingresses.expanded().set),
            diagnostics: self.diagnostics.clone(),
            quarantined: self.store.quarantined(),
            waits_for: self.awaited.values().next().cloned(),
            revisions: self.revisions.values().cloned().collect(),
        }
    }
}

/// Creates the diagnostic about a text without resources.
fn empty(name: &Arc<str>) -> Diagnostic {
    let message = "there is nothing to read".to_owned();
    let mut found = Diagnostic::about_file(Severity::Warning, SRC006, Arc::clone(name), message);
    found.help("the command that should have written resources wrote nothing");
    found
}

/// Returns the current text of a file; `None` if it was removed.
fn text_of_event(file: &Arc<str>, event: FileEvent) -> Result<Option<String>, Box<Diagnostic>> {
    match event {
        FileEvent::Gone => Ok(None),
        FileEvent::TooLarge(bytes) => Err(Box::new(too_large(file, bytes))),
        FileEvent::Unreadable(failure) => Err(failure),
        FileEvent::Object(object) => Ok(Some(object.text)),
        FileEvent::Bytes(bytes) => text_of(file, &bytes).map(|text| Some(text.to_owned())),
    }
}

/// Checks one object, given as YAML or JSON, by itself. Returns its diagnostics, without checks that depend on other
/// objects.
pub fn check_object(text: &str) -> Vec<Diagnostic> {
    check_text(&Arc::from("object"), text)
}

/// Checks whether a version of an object, given as YAML or JSON, changes an immutable field of the one before.
pub fn check_change(before: &str, after: &str) -> Option<Diagnostic> {
    let object = |text| {
        let reading = read_file(&Arc::from("object"), text, None, ReadOptions::default());
        let document = reading.documents.first()?;
        document.reading.slots().first()?.good().cloned()
    };
    immutable::check(&*object(before)?, &*object(after)?)
}

/// Checks the objects of a file, each by itself, and returns the diagnostics.
pub fn check_text(file: &Arc<str>, text: &str) -> Vec<Diagnostic> {
    let reading = read_file(file, text, None, ReadOptions::default());
    reading.diagnostics().cloned().collect()
}

/// Returns a function that reads one object by itself, with options.
fn read_object(options: ReadOptions) -> ReadObject {
    Arc::new(move |file, text| read_file(file, text, None, options))
}

/// Reads the texts of files and of all files in directories, by name. Also returns diagnostics for unreadable ones.
pub fn read_texts(paths: &[PathBuf]) -> (Vec<(Arc<str>, String)>, Vec<Diagnostic>) {
    let look = FileSource::new(paths, FILE_BYTES_MAX).look();
    let mut problems = look.problems;
    let texts = look.events.into_iter().filter_map(|(file, event)| {
        match text_of_event(&file, event) {
            Ok(text) => return Some((file, text?)),
            Err(failure) => problems.push(*failure),
        }
        None
    });
    (texts.collect(), problems)
}

#[cfg(test)]
mod tests;
