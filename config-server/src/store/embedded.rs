//! Store in a file of this process, in redb.
//!
//! One thread writes ([`write`]). Reads see the last committed transaction.

mod disk;
mod read;
mod tables;
mod write;

use std::path::Path;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use bytes::Bytes;
use redb::Database;
use tokio::sync::{mpsc, oneshot, watch};

use super::history::HistoryLimits;
use super::{Entry, Expected, History, Page, Reply, Revision, Scan, Store, StoreError, Written};
use disk::StoreFile;
use tables::Failed;
use write::{Current, Write, Writer};

/// Name of the store file in a data directory.
pub const STORE_FILE: &str = "store.redb";

/// Maximum number of queued writes; further ones wait in their requests.
const WAITING_MAX: usize = 1024;
/// Maximum time that a read waits until the database is reopened after a disk error.
const REOPEN_MAX: Duration = Duration::from_secs(10);

/// Store in a file of this process.
#[derive(Debug)]
pub struct EmbeddedStore {
    current: watch::Receiver<Current>,
    history: Arc<History>,
    /// Queue of the writer; `None` while the store is being dropped.
    writes: Option<mpsc::Sender<Write>>,
    writer: Option<JoinHandle<()>>,
}

impl Drop for EmbeddedStore {
    /// Waits for the queued writes, and closes the file.
    fn drop(&mut self) {
        drop(self.writes.take());
        if let Some(writer) = self.writer.take() {
            // A panic of the writer was reported when it happened.
            let _ = writer.join();
        }
    }
}

impl EmbeddedStore {
    /// Opens the file, and creates it if absent.
    ///
    /// # Errors
    /// If another process has the file open, or if the file is damaged or cannot be read.
    pub fn open(path: &Path, limits: HistoryLimits) -> Result<EmbeddedStore, String> {
        let file = StoreFile::open(path)?;
        let opened = file.check_and_open()?;
        let in_file = |failed: Failed| format!("{}: {}", path.display(), StoreError::from(failed));
        let known = read::history(&opened.database).map_err(in_file)?;
        let (floor, revision, events) = match known {
            Some(known) => known,
            None => {
                write::fill(&opened.database, 1, &[]).map_err(in_file)?;
                (1, 1, Vec::new())
            }
        };
        let history = Arc::new(History::with_events(limits, floor, revision, events));
        let (writer, current) = Writer::new(file, opened, Arc::clone(&history));
        let (writes, waiting) = mpsc::channel(WAITING_MAX);
        let writer = thread::Builder::new()
            .name("store".to_owned())
            .spawn(move || writer.run(waiting))
            .map_err(|error| format!("cannot start the thread that writes: {error}"))?;
        Ok(EmbeddedStore {
            current,
            history,
            writes: Some(writes),
            writer: Some(writer),
        })
    }

    /// Creates a store with these entries, whose history begins after `revision`.
    ///
    /// # Errors
    /// If the file exists, or if it cannot be written.
    pub fn restore(path: &Path, revision: Revision, entries: &[Entry]) -> Result<(), String> {
        if path.exists() {
            return Err(format!("{} exists already", path.display()));
        }
        let file = StoreFile::open(path)?;
        let opened = file.check_and_open()?;
        let filled = write::fill(&opened.database, revision, entries);
        filled.map_err(|failed| format!("{}: {}", path.display(), StoreError::from(failed)))
    }

    /// Runs a read, and retries it once if the database was reopened meanwhile.
    async fn read<T: Send + 'static>(
        &self,
        read: impl Fn(&Database) -> Result<T, Failed> + Clone + Send + 'static,
    ) -> Result<T, StoreError> {
        let mut current = self.current.clone();
        let database = current.borrow_and_update().clone();
        let is_closed = match database {
            None => true,
            Some(database) => match on_thread(database, read.clone()).await {
                Ok(done) => return Ok(done),
                Err(Failed::Redb(_)) => false,
                Err(failed) => return Err(failed.into()),
            },
        };
        // A disk error closed this database. The writer opens another one.
        let opened = tokio::time::timeout(REOPEN_MAX, current.changed());
        let database = match is_closed {
            true => None,
            false => {
                let _ = opened.await;
                current.borrow().clone()
            }
        };
        let why = "the disk of the data directory failed, and the store cannot be opened again";
        let database = database.ok_or_else(|| StoreError::Failed(why.to_owned()))?;
        Ok(on_thread(database, read).await?)
    }
}

async fn on_thread<T: Send + 'static>(
    database: Arc<Database>,
    read: impl Fn(&Database) -> Result<T, Failed> + Send + 'static,
) -> Result<T, Failed> {
    let task = tokio::task::spawn_blocking(move || read(&database));
    let ended = |error: tokio::task::JoinError| StoreError::Failed(error.to_string());
    task.await.map_err(|error| Failed::Store(ended(error)))?
}

impl Store for EmbeddedStore {
    fn get<'a>(&'a self, key: &'a str) -> Reply<'a, (Option<Entry>, Revision)> {
        Box::pin(async move {
            // Read on this thread: it takes microseconds, less than a switch to another thread.
            let known = self.current.borrow().clone();
            if let Some(Ok(found)) = known.map(|database| read::one(&database, key)) {
                return Ok(found);
            }
            let key = key.to_owned();
            self.read(move |database| read::one(database, &key)).await
        })
    }

    fn scan(&self, scan: Scan) -> Reply<'_, Page> {
        Box::pin(self.read(move |database| read::many(database, &scan)))
    }

    fn write(&self, key: String, expected: Expected, value: Option<Bytes>) -> Reply<'_, Written> {
        let (reply, answer) = oneshot::channel();
        let write = Write {
            key,
            expected,
            value,
            reply,
        };
        let ended = || StoreError::Failed("the thread that writes ended".to_owned());
        Box::pin(async move {
            let writes = self.writes.as_ref().ok_or_else(ended)?;
            writes.send(write).await.map_err(|_| ended())?;
            answer.await.map_err(|_| ended())?
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
