//! Iteration over all entries of a store, page by page.

use super::{Entry, Scan, Store, StoreError};

/// Iterator over entries. Each page has its own revision, since an iteration over a large store may outlive revisions.
pub struct Pages<'a> {
    store: &'a dyn Store,
    next: Option<Scan>,
}

impl<'a> Pages<'a> {
    /// Returns an iterator over all entries, with at most `entries_max` per page.
    pub fn of(store: &'a dyn Store, entries_max: usize) -> Self {
        let first = Scan {
            prefix: "/".to_owned(),
            limit: Some(entries_max),
            ..Scan::default()
        };
        Pages {
            store,
            next: Some(first),
        }
    }

    /// Reads the next page; `None` after the last one.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub async fn next(&mut self) -> Result<Option<Vec<Entry>>, StoreError> {
        let Some(scan) = self.next.take() else {
            return Ok(None);
        };
        let page = self.store.scan(scan.clone()).await?;
        let last = page.entries.last().filter(|_| page.remaining > 0);
        self.next = last.map(|last| Scan {
            after: Some(last.key.to_string()),
            ..scan
        });
        Ok(Some(page.entries))
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::store::embedded::EmbeddedStore;
    use crate::store::history::HistoryLimits;

    #[tokio::test]
    async fn every_entry_is_on_one_page() {
        for (count, wanted) in [(0, vec![0]), (2, vec![2]), (5, vec![2, 2, 1])] {
            let directory = tempfile::tempdir().unwrap();
            let file = directory.path().join("store.redb");
            let keys: Vec<String> = (0..count).map(|number| format!("/key{number}")).collect();
            let entries: Vec<Entry> = keys
                .iter()
                .map(|key| Entry {
                    key: key.as_str().into(),
                    revision: 1,
                    value: Bytes::from_static(b"{}"),
                })
                .collect();
            EmbeddedStore::restore(&file, 1, &entries).unwrap();
            let store = EmbeddedStore::open(&file, HistoryLimits::default()).unwrap();
            let mut pages = Pages::of(&store, 2);
            let (mut sizes, mut found) = (Vec::new(), Vec::new());
            while let Some(page) = pages.next().await.unwrap() {
                sizes.push(page.len());
                found.extend(page.iter().map(|entry| entry.key.to_string()));
            }
            assert_eq!((sizes, found), (wanted, keys));
        }
    }
}
