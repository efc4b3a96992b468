//! Writer thread. It combines all queued writes into one transaction, syncs the transaction to disk, and only then
//! acknowledges the writes, which share the cost of one sync.
//!
//! After a disk error the thread reopens the database, which contains every acknowledged write, and rejects writes for
//! a while. Reads continue.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use redb::{Database, Durability, ReadableTable, Table};
use tokio::sync::{mpsc, oneshot, watch};

use super::disk::{Opened, StoreFile};
use super::read;
use super::tables::{FLOOR, Failed, LOG, Logged, META, OBJECTS, REVISION};
use crate::store::{Entry, Event, Expected, History, Revision, StoreError, Written};

/// Maximum number of writes in one transaction.
const BATCH_MAX: usize = 256;
/// Time for which writes are rejected after a disk error.
const PAUSE: Duration = Duration::from_secs(1);
/// Free space, in bytes, that a write needs in addition to its own size after the disk was full.
const FREE_BYTES: u64 = 1 << 20;

/// Queued write.
#[derive(Debug)]
pub(super) struct Write {
    pub key: String,
    pub expected: Expected,
    pub value: Option<Bytes>,
    pub reply: oneshot::Sender<Result<Written, StoreError>>,
}

/// Database for reads; `None` while it cannot be opened.
pub(super) type Current = Option<Arc<Database>>;

/// Writer thread.
pub(super) struct Writer {
    file: StoreFile,
    opened: Option<Opened>,
    current: watch::Sender<Current>,
    history: Arc<History>,
    trouble: Option<Trouble>,
}

/// State of a disk error.
struct Trouble {
    error: StoreError,
    since: Instant,
    until: Instant,
    refused: u64,
}

impl Writer {
    /// Returns a writer, and the receiver of the database for reads.
    pub(super) fn new(
        file: StoreFile,
        opened: Opened,
        history: Arc<History>,
    ) -> (Writer, watch::Receiver<Current>) {
        let current = watch::Sender::new(Some(Arc::clone(&opened.database)));
        let read = current.subscribe();
        let writer = Writer {
            file,
            opened: Some(opened),
            current,
            history,
            trouble: None,
        };
        (writer, read)
    }

    /// Writes until the store is dropped.
    pub(super) fn run(mut self, mut waiting: mpsc::Receiver<Write>) {
        while let Some(first) = waiting.blocking_recv() {
            let mut batch = vec![first];
            while batch.len() < BATCH_MAX {
                let Ok(next) = waiting.try_recv() else { break };
                batch.push(next);
            }
            let outcome = self.attempt(&batch);
            for (at, write) in batch.into_iter().enumerate() {
                let result = match &outcome {
                    Ok(written) => Ok(written[at]),
                    Err(error) => Err(error.clone()),
                };
                // The receiver is gone if the client has disconnected.
                let _ = write.reply.send(result);
            }
        }
    }

    fn attempt(&mut self, batch: &[Write]) -> Result<Vec<Written>, StoreError> {
        let outcome = match self.refusal(batch) {
            Some(error) => Err(error),
            None => self.commit_or_reopen(batch),
        };
        match (&outcome, self.trouble.take()) {
            (Ok(_), Some(trouble)) => tracing::info!(
                refused = trouble.refused,
                seconds = trouble.since.elapsed().as_secs(),
                "the store is written again"
            ),
            (Err(_), Some(mut trouble)) => {
                trouble.refused += batch.len() as u64;
                self.trouble = Some(trouble);
            }
            (_, None) => {}
        }
        outcome
    }

    /// Returns the error for writes that are rejected without an attempt; `None` if they may be attempted.
    fn refusal(&mut self, batch: &[Write]) -> Option<StoreError> {
        let trouble = self.trouble.as_mut()?;
        if Instant::now() < trouble.until {
            return Some(trouble.error.clone());
        }
        if self.file.is_unsynced() {
            let why = "the disk of the data directory failed at a sync, and what it holds is not known: check the disk, then \
                       restart the server";
            return Some(StoreError::Failed(why.to_owned()));
        }
        let size = |write: &Write| write.value.as_ref().map_or(0, Bytes::len) as u64;
        // The factor covers the old and new values in the log, in addition to the object.
        let needed = FREE_BYTES + 4 * batch.iter().map(size).sum::<u64>();
        let is_full = matches!(trouble.error, StoreError::Full(_))
            && self.file.free_bytes().is_some_and(|free| free < needed);
        if is_full {
            trouble.until = Instant::now() + PAUSE;
            return Some(trouble.error.clone());
        }
        None
    }

    fn commit_or_reopen(&mut self, batch: &[Write]) -> Result<Vec<Written>, StoreError> {
        if self.opened.is_none() {
            self.reopen().inspect_err(|error| self.note(error))?;
        }
        let Some(opened) = &self.opened else {
            return Err(StoreError::Failed("the store is closed".to_owned()));
        };
        let failed = match commit(&opened.database, &self.history, batch) {
            Ok(written) => return Ok(written),
            Err(failed) => StoreError::from(failed),
        };
        self.note(&failed);
        if let Err(error) = self.reopen() {
            tracing::error!(%error, "reads of the store fail until it can be opened");
        }
        Err(failed)
    }

    /// Logs the first of several disk errors, and begins the pause.
    fn note(&mut self, error: &StoreError) {
        let now = Instant::now();
        let (since, refused) = match &self.trouble {
            Some(known) => (known.since, known.refused),
            None => {
                tracing::error!(%error, "the store cannot be written: writes are refused until it can be");
                (now, 0)
            }
        };
        self.trouble = Some(Trouble {
            error: error.clone(),
            since,
            until: now + PAUSE,
            refused,
        });
    }

    /// Reopens the database, which contains every acknowledged write, as after a crash. It may contain a failed
    /// transaction as well.
    fn reopen(&mut self) -> Result<(), StoreError> {
        if let Some(opened) = self.opened.take() {
            opened.fence();
        }
        let outcome = self.open_again();
        let current = outcome
            .as_ref()
            .ok()
            .map(|opened| Arc::clone(&opened.database));
        self.current.send_replace(current);
        self.opened = Some(outcome?);
        Ok(())
    }

    fn open_again(&self) -> Result<Opened, StoreError> {
        let closed = |why| StoreError::Failed(format!("the store cannot be opened: {why}"));
        let opened = self.file.reopen().map_err(closed)?;
        if let Some((_, latest, mut events)) = read::history(&opened.database)? {
            events.retain(|event| event.revision > self.history.latest());
            self.history.push(events, latest);
        }
        Ok(opened)
    }
}

/// Commits these writes as one transaction.
fn commit(database: &Database, history: &History, batch: &[Write]) -> Result<Vec<Written>, Failed> {
    let mut transaction = database.begin_write()?;
    transaction.set_durability(Durability::Immediate)?;
    let mut revision = history.latest();
    let mut written = Vec::with_capacity(batch.len());
    let mut events = Vec::new();
    {
        let mut tables = Tables {
            objects: transaction.open_table(OBJECTS)?,
            log: transaction.open_table(LOG)?,
        };
        for write in batch {
            let event = apply(&mut tables, write, revision + 1)?;
            written.push(match event {
                Some(event) => {
                    revision = event.revision;
                    events.push(event);
                    Written::Done(revision)
                }
                None => Written::Mismatch,
            });
        }
        let floor = history.floor_with(&events);
        if floor > history.floor() {
            tables.log.retain_in(..=floor, |_, _| false)?;
        }
        let mut meta = transaction.open_table(META)?;
        meta.insert(REVISION, revision)?;
        meta.insert(FLOOR, floor)?;
    }
    if events.is_empty() {
        transaction.abort()?;
        return Ok(written);
    }
    transaction.commit()?;
    history.push(events, revision);
    Ok(written)
}

/// Tables that a write changes.
struct Tables<'txn> {
    objects: Table<'txn, &'static str, (u64, &'static [u8])>,
    log: Table<'txn, u64, Logged<'static>>,
}

/// Applies one write in a transaction; `None` if the key is not as expected.
fn apply(
    tables: &mut Tables<'_>,
    write: &Write,
    revision: Revision,
) -> Result<Option<Event>, Failed> {
    let key = &*write.key;
    let before = tables.objects.get(key)?.map(|row| {
        let (revision, value) = row.value();
        (revision, Bytes::copy_from_slice(value))
    });
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
    tables.log.insert(revision, (key, old_revision, old, new))?;
    match &write.value {
        Some(value) => drop(tables.objects.insert(key, (revision, &**value))?),
        None => drop(tables.objects.remove(key)?),
    }
    Ok(Some(Event {
        key: Arc::from(key),
        revision,
        value: write.value.clone(),
        previous: before.map(|(_, value)| value),
    }))
}

/// Creates the tables of a new file with these entries.
pub(super) fn fill(
    database: &Database,
    revision: Revision,
    entries: &[Entry],
) -> Result<(), Failed> {
    let write = database.begin_write()?;
    {
        write.open_table(LOG)?;
        let mut objects = write.open_table(OBJECTS)?;
        for entry in entries {
            objects.insert(&*entry.key, (entry.revision, &*entry.value))?;
        }
        let mut meta = write.open_table(META)?;
        meta.insert(REVISION, revision)?;
        meta.insert(FLOOR, revision)?;
    }
    write.commit()?;
    Ok(())
}
