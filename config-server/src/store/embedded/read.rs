//! Reads from the store file.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use redb::{Database, ReadableDatabase, ReadableTable};

use super::tables::{FLOOR, Failed, LOG, Logged, META, OBJECTS, REVISION};
use crate::store::{Entry, Event, Page, Revision, Scan, StoreError};

/// Returns the floor, the latest revision, and all changes between them; `None` for a file without tables.
pub(super) fn history(
    database: &Database,
) -> Result<Option<(Revision, Revision, Vec<Event>)>, Failed> {
    let read = database.begin_read()?;
    let meta = match read.open_table(META) {
        Err(redb::TableError::TableDoesNotExist(_)) => return Ok(None),
        found => found?,
    };
    let log = read.open_table(LOG)?;
    let mut events = Vec::new();
    for row in log.iter()? {
        let (revision, row) = row?;
        events.push(event(revision.value(), row.value()));
    }
    let floor = number(&meta, FLOOR)?;
    Ok(Some((floor, number(&meta, REVISION)?, events)))
}

fn number(meta: &impl ReadableTable<&'static str, u64>, name: &str) -> Result<u64, Failed> {
    Ok(meta.get(name)?.map_or(0, |value| value.value()))
}

fn event(revision: Revision, row: Logged<'_>) -> Event {
    let (key, _, previous, value) = row;
    let some = |bytes: &[u8]| (!bytes.is_empty()).then(|| Bytes::copy_from_slice(bytes));
    Event {
        key: Arc::from(key),
        revision,
        value: some(value),
        previous: some(previous),
    }
}

/// Returns the entry of one key, and the latest revision.
pub(super) fn one(database: &Database, key: &str) -> Result<(Option<Entry>, Revision), Failed> {
    let read = database.begin_read()?;
    let objects = read.open_table(OBJECTS)?;
    let meta = read.open_table(META)?;
    let entry = objects.get(key)?.map(|row| {
        let (revision, value) = row.value();
        entry(key, revision, value)
    });
    Ok((entry, number(&meta, REVISION)?))
}

fn entry(key: &str, revision: Revision, value: &[u8]) -> Entry {
    Entry {
        key: Arc::from(key),
        revision,
        value: Bytes::copy_from_slice(value),
    }
}

/// Returns entries by prefix.
pub(super) fn many(database: &Database, scan: &Scan) -> Result<Page, Failed> {
    let read = database.begin_read()?;
    let meta = read.open_table(META)?;
    let current = number(&meta, REVISION)?;
    let revision = scan.at.unwrap_or(current);
    if revision > current {
        return Err(Failed::Store(StoreError::Future { current }));
    }
    let objects = read.open_table(OBJECTS)?;
    let start = scan.after.as_deref().unwrap_or(&scan.prefix);
    let mut page = Page {
        revision,
        ..Page::default()
    };
    let limit = scan.limit.unwrap_or(usize::MAX);
    // A scan at an older revision reads every key, since reverted changes may add keys at the start.
    let is_old = revision < current;
    for row in objects.range(start..)? {
        let (key, row) = row?;
        let key = key.value();
        if !key.starts_with(&scan.prefix) {
            break;
        }
        if Some(key) == scan.after.as_deref() {
            continue;
        }
        if is_old || page.entries.len() < limit {
            let (revision, value) = row.value();
            page.entries.push(entry(key, revision, value));
        } else {
            page.remaining += 1;
        }
    }
    if is_old {
        if revision < number(&meta, FLOOR)? {
            return Err(Failed::Store(StoreError::Compacted));
        }
        let log = read.open_table(LOG)?;
        undo(&log, scan, revision, &mut page)?;
        page.remaining = page.entries.len().saturating_sub(limit);
        page.entries.truncate(limit);
    }
    Ok(page)
}

/// Reverts every change after `revision`, newest first.
fn undo(
    log: &impl ReadableTable<u64, Logged<'static>>,
    scan: &Scan,
    revision: Revision,
    page: &mut Page,
) -> Result<(), Failed> {
    let entries = std::mem::take(&mut page.entries);
    let mut state: BTreeMap<Arc<str>, Entry> = entries
        .into_iter()
        .map(|entry| (Arc::clone(&entry.key), entry))
        .collect();
    for row in log.range(revision + 1..)?.rev() {
        let (_, row) = row?;
        let (key, before, previous, _) = row.value();
        let is_after = scan.after.as_deref().is_none_or(|after| key > after);
        if !key.starts_with(&scan.prefix) || !is_after {
            continue;
        }
        if before == 0 {
            state.remove(key);
        } else {
            state.insert(Arc::from(key), entry(key, before, previous));
        }
    }
    page.entries = state.into_values().collect();
    Ok(())
}
