//! The store in a file of this process, by redb.
//!
//! One thread writes. It takes all writes that wait, makes them one transaction, syncs it to disk, and only then
//! acknowledges them: many writers share the cost of one sync.

use std::path::Path;
use std::sync::Arc;
use std::thread;

use bytes::Bytes;
use redb::{
    Database, DatabaseError, Durability, ReadableDatabase, ReadableTable, TableDefinition,
    WriteTransaction,
};
use tokio::sync::{mpsc, oneshot};

use super::history::HistoryLimits;
use super::{
    Entry, Event, Expected, History, Page, Reply, Revision, Scan, Store, StoreError, Written,
};
use crate::files;

/// The file of the store in a data directory.
pub const STORE_FILE: &str = "store.redb";

/// Key to (revision, value).
const OBJECTS: TableDefinition<'_, &str, (u64, &[u8])> = TableDefinition::new("objects");
/// Revision to (key, value before with its revision, value). A revision of 0 before and an empty value mean none.
const LOG: TableDefinition<'_, u64, Logged<'static>> = TableDefinition::new("log");
/// A row of the log.
type Logged<'a> = (&'a str, u64, &'a [u8], &'a [u8]);

const META: TableDefinition<'_, &str, u64> = TableDefinition::new("meta");
const REVISION: &str = "revision";
const FLOOR: &str = "floor";

/// The most writes of one transaction.
const BATCH_MAX: usize = 256;
/// The most writes that wait for the writer; further ones wait in their requests.
const WAITING_MAX: usize = 1024;

/// The embedded store.
#[derive(Debug)]
pub struct EmbeddedStore {
    database: Arc<Database>,
    history: Arc<History>,
    writes: mpsc::Sender<Write>,
}

#[derive(Debug)]
struct Write {
    key: String,
    expected: Expected,
    value: Option<Bytes>,
    reply: oneshot::Sender<Result<Written, StoreError>>,
}

impl EmbeddedStore {
    /// Opens the file, or makes it.
    ///
    /// # Errors
    /// If another process has it open, or if it cannot be read or repaired.
    pub fn open(path: &Path, limits: HistoryLimits) -> Result<EmbeddedStore, String> {
        let shown = path.display();
        files::make_private(path).map_err(|error| format!("{shown}: {error}"))?;
        let database = Database::create(path).map_err(|error| match error {
            DatabaseError::DatabaseAlreadyOpen => format!(
                "{shown} is in use by another process: each data directory belongs to one server"
            ),
            other => format!("{shown} cannot be opened: {other}"),
        })?;
        let opened = |error: StoreError| format!("{shown} cannot be read: {error}");
        let history = Arc::new(load(&database, limits).map_err(opened)?);
        let database = Arc::new(database);
        let (writes, waiting) = mpsc::channel(WAITING_MAX);
        let writer = Writer {
            database: Arc::clone(&database),
            history: Arc::clone(&history),
        };
        thread::Builder::new()
            .name("store".to_owned())
            .spawn(move || writer.run(waiting))
            .map_err(|error| format!("cannot start the thread that writes: {error}"))?;
        Ok(EmbeddedStore {
            database,
            history,
            writes,
        })
    }
}

impl EmbeddedStore {
    /// Makes a store with these entries, whose history begins after `revision`.
    ///
    /// # Errors
    /// If there is a file, or if it cannot be written.
    pub fn restore(path: &Path, revision: Revision, entries: &[Entry]) -> Result<(), String> {
        let shown = path.display();
        if path.exists() {
            return Err(format!("{shown} exists already"));
        }
        files::make_private(path).map_err(|error| format!("{shown}: {error}"))?;
        let database =
            Database::create(path).map_err(|error| format!("{shown} cannot be made: {error}"))?;
        fill(&database, revision, entries)
            .map_err(|error| format!("{shown} cannot be written: {error}"))
    }
}

fn fill(database: &Database, revision: Revision, entries: &[Entry]) -> Result<(), StoreError> {
    let write = database.begin_write().map_err(failed)?;
    {
        write.open_table(LOG).map_err(failed)?;
        let mut objects = write.open_table(OBJECTS).map_err(failed)?;
        for entry in entries {
            let value = (entry.revision, &*entry.value);
            objects.insert(&*entry.key, value).map_err(failed)?;
        }
        let mut meta = write.open_table(META).map_err(failed)?;
        meta.insert(REVISION, revision).map_err(failed)?;
        meta.insert(FLOOR, revision).map_err(failed)?;
    }
    write.commit().map_err(failed)
}

impl Store for EmbeddedStore {
    fn get<'a>(&'a self, key: &'a str) -> Reply<'a, (Option<Entry>, Revision)> {
        Box::pin(async move { read_one(&self.database, key) })
    }

    fn scan(&self, scan: Scan) -> Reply<'_, Page> {
        let database = Arc::clone(&self.database);
        Box::pin(async move {
            let task = tokio::task::spawn_blocking(move || read_many(&database, &scan));
            task.await.map_err(failed)?
        })
    }

    fn write(&self, key: String, expected: Expected, value: Option<Bytes>) -> Reply<'_, Written> {
        let (reply, answer) = oneshot::channel();
        let write = Write {
            key,
            expected,
            value,
            reply,
        };
        Box::pin(async move {
            self.writes.send(write).await.map_err(failed)?;
            answer.await.map_err(failed)?
        })
    }

    fn history(&self) -> &History {
        &self.history
    }

    fn latest(&self) -> Reply<'_, Revision> {
        Box::pin(async { Ok(self.history.latest()) })
    }

    fn is_leader(&self) -> bool {
        true
    }
}

fn failed(error: impl std::fmt::Display) -> StoreError {
    StoreError::Failed(error.to_string())
}

/// Makes the tables, and reads the history.
fn load(database: &Database, limits: HistoryLimits) -> Result<History, StoreError> {
    let make = database.begin_write().map_err(failed)?;
    {
        make.open_table(OBJECTS).map_err(failed)?;
        make.open_table(LOG).map_err(failed)?;
        let mut meta = make.open_table(META).map_err(failed)?;
        if meta.get(REVISION).map_err(failed)?.is_none() {
            meta.insert(REVISION, 1).map_err(failed)?;
            meta.insert(FLOOR, 1).map_err(failed)?;
        }
    }
    make.commit().map_err(failed)?;
    let read = database.begin_read().map_err(failed)?;
    let meta = read.open_table(META).map_err(failed)?;
    let number = |name| -> Result<u64, StoreError> {
        let found = meta.get(name).map_err(failed)?;
        Ok(found.map_or(0, |value| value.value()))
    };
    let log = read.open_table(LOG).map_err(failed)?;
    let mut events = Vec::new();
    for row in log.iter().map_err(failed)? {
        let (revision, row) = row.map_err(failed)?;
        events.push(event(revision.value(), row.value()));
    }
    Ok(History::with_events(
        limits,
        number(FLOOR)?,
        number(REVISION)?,
        events,
    ))
}

fn event(revision: Revision, (key, _, previous, value): Logged<'_>) -> Event {
    let some = |bytes: &[u8]| (!bytes.is_empty()).then(|| Bytes::copy_from_slice(bytes));
    Event {
        key: Arc::from(key),
        revision,
        value: some(value),
        previous: some(previous),
    }
}

fn read_one(database: &Database, key: &str) -> Result<(Option<Entry>, Revision), StoreError> {
    let read = database.begin_read().map_err(failed)?;
    let objects = read.open_table(OBJECTS).map_err(failed)?;
    let meta = read.open_table(META).map_err(failed)?;
    let latest = meta.get(REVISION).map_err(failed)?;
    let found = objects.get(key).map_err(failed)?;
    let entry = found.map(|row| entry(key, row.value()));
    Ok((entry, latest.map_or(0, |value| value.value())))
}

fn entry(key: &str, (revision, value): (u64, &[u8])) -> Entry {
    Entry {
        key: Arc::from(key),
        revision,
        value: Bytes::copy_from_slice(value),
    }
}

fn read_many(database: &Database, scan: &Scan) -> Result<Page, StoreError> {
    let read = database.begin_read().map_err(failed)?;
    let meta = read.open_table(META).map_err(failed)?;
    let latest = meta.get(REVISION).map_err(failed)?;
    let current = latest.map_or(0, |value| value.value());
    let revision = scan.at.unwrap_or(current);
    if revision > current {
        return Err(StoreError::Future { current });
    }
    let objects = read.open_table(OBJECTS).map_err(failed)?;
    let start = scan.after.as_deref().unwrap_or(&scan.prefix);
    let mut page = Page {
        revision,
        ..Page::default()
    };
    let limit = scan.limit.unwrap_or(usize::MAX);
    // As of an older write everything is read, since what is undone may come first.
    let is_old = revision < current;
    for row in objects.range(start..).map_err(failed)? {
        let (key, row) = row.map_err(failed)?;
        let key = key.value();
        if !key.starts_with(&scan.prefix) {
            break;
        }
        if Some(key) == scan.after.as_deref() {
            continue;
        }
        if is_old || page.entries.len() < limit {
            page.entries.push(entry(key, row.value()));
        } else {
            page.remaining += 1;
        }
    }
    if is_old {
        let floor = meta.get(FLOOR).map_err(failed)?;
        if revision < floor.map_or(0, |value| value.value()) {
            return Err(StoreError::Compacted);
        }
        let log = read.open_table(LOG).map_err(failed)?;
        undo(&log, scan, revision, &mut page)?;
        page.remaining = page.entries.len().saturating_sub(limit);
        page.entries.truncate(limit);
    }
    Ok(page)
}

/// Takes back every change after `revision`, the newest first.
fn undo(
    log: &impl ReadableTable<u64, Logged<'static>>,
    scan: &Scan,
    revision: Revision,
    page: &mut Page,
) -> Result<(), StoreError> {
    let entries = std::mem::take(&mut page.entries);
    let mut state: std::collections::BTreeMap<Arc<str>, Entry> = entries
        .into_iter()
        .map(|entry| (Arc::clone(&entry.key), entry))
        .collect();
    for row in log.range(revision + 1..).map_err(failed)?.rev() {
        let (_, row) = row.map_err(failed)?;
        let (key, before, previous, _) = row.value();
        let is_after = scan.after.as_deref().is_none_or(|after| key > after);
        if !key.starts_with(&scan.prefix) || !is_after {
            continue;
        }
        if before == 0 {
            state.remove(key);
        } else {
            state.insert(Arc::from(key), entry(key, (before, previous)));
        }
    }
    page.entries = state.into_values().collect();
    Ok(())
}

/// The thread that writes.
struct Writer {
    database: Arc<Database>,
    history: Arc<History>,
}

impl Writer {
    fn run(self, mut waiting: mpsc::Receiver<Write>) {
        while let Some(first) = waiting.blocking_recv() {
            let mut batch = vec![first];
            while batch.len() < BATCH_MAX {
                let Ok(next) = waiting.try_recv() else { break };
                batch.push(next);
            }
            let outcome = self.commit(&batch);
            if let Err(error) = &outcome {
                tracing::error!(writes = batch.len(), %error, "writes to the store failed");
            }
            for (at, write) in batch.into_iter().enumerate() {
                let result = match &outcome {
                    Ok(written) => Ok(written[at]),
                    Err(error) => Err(error.clone()),
                };
                // A client that went away does not need to know.
                let _ = write.reply.send(result);
            }
        }
    }

    fn commit(&self, batch: &[Write]) -> Result<Vec<Written>, StoreError> {
        let mut transaction = self.database.begin_write().map_err(failed)?;
        transaction
            .set_durability(Durability::Immediate)
            .map_err(failed)?;
        let mut revision = self.history.latest();
        let mut written = Vec::with_capacity(batch.len());
        let mut events = Vec::new();
        for write in batch {
            let event = apply(&transaction, write, revision + 1)?;
            written.push(match event {
                Some(event) => {
                    revision = event.revision;
                    events.push(event);
                    Written::Done(revision)
                }
                None => Written::Mismatch,
            });
        }
        if events.is_empty() {
            transaction.abort().map_err(failed)?;
            return Ok(written);
        }
        {
            let mut meta = transaction.open_table(META).map_err(failed)?;
            meta.insert(REVISION, revision).map_err(failed)?;
            let floor = self.history.floor_with(&events);
            meta.insert(FLOOR, floor).map_err(failed)?;
            let mut log = transaction.open_table(LOG).map_err(failed)?;
            log.retain_in(..=floor, |_, _| false).map_err(failed)?;
        }
        transaction.commit().map_err(failed)?;
        self.history.push(events, revision);
        Ok(written)
    }
}

/// One write within a transaction; none if the key is not as expected.
fn apply(
    transaction: &WriteTransaction,
    write: &Write,
    revision: Revision,
) -> Result<Option<Event>, StoreError> {
    let mut objects = transaction.open_table(OBJECTS).map_err(failed)?;
    let mut log = transaction.open_table(LOG).map_err(failed)?;
    let key = &*write.key;
    let before = {
        let found = objects.get(key).map_err(failed)?;
        found.map(|row| {
            let (revision, value) = row.value();
            (revision, Bytes::copy_from_slice(value))
        })
    };
    let is_expected = match (write.expected, &before) {
        (Expected::Absent, None) => true,
        (Expected::At(expected), Some((revision, _))) => expected == *revision,
        _ => false,
    };
    if !is_expected {
        return Ok(None);
    }
    let none: &[u8] = &[];
    let new = write.value.as_deref().unwrap_or(none);
    let (old_revision, old) = before.as_ref().map_or((0, none), |(r, value)| (*r, value));
    log.insert(revision, (key, old_revision, old, new))
        .map_err(failed)?;
    match &write.value {
        Some(value) => drop(objects.insert(key, (revision, &**value)).map_err(failed)?),
        None => drop(objects.remove(key).map_err(failed)?),
    }
    Ok(Some(Event {
        key: Arc::from(key),
        revision,
        value: write.value.clone(),
        previous: before.map(|(_, value)| value),
    }))
}
