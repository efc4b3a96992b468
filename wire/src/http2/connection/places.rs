//! Index from stream numbers to places, and the vacant places.

use super::super::stream::Stream;

/// Entries of a new index; a power of two.
const ENTRIES_MIN: usize = 16;

/// Places of streams: their positions in the list of streams, which later streams use again.
///
/// The index is a hint that each lookup checks: stream numbers grow, so concurrent streams mostly have different
/// entries. A stream whose entry was overwritten by a newer one is found by a linear search.
#[derive(Debug, Default)]
pub(super) struct Places {
    vacant: Vec<usize>,
    /// Place by stream number. Its length is a power of two, and greater than the number of places.
    index: Vec<u32>,
}

impl Places {
    /// Takes the vacant place that was used last.
    pub(super) fn take_vacant(&mut self) -> Option<usize> {
        self.vacant.pop()
    }

    /// Makes a place vacant.
    pub(super) fn give_back(&mut self, place: usize) {
        debug_assert!(!self.vacant.contains(&place));
        self.vacant.push(place);
    }

    /// Whether all of this many places are vacant.
    pub(super) fn are_all_vacant(&self, places: usize) -> bool {
        self.vacant.len() == places
    }

    fn entry(&self, id: u32) -> usize {
        // stream numbers of clients are odd
        (id >> 1) as usize & (self.index.len() - 1)
    }

    /// Adds an opened stream to the index.
    pub(super) fn note(&mut self, id: u32, place: usize, streams: &[Stream]) {
        if self.index.len() <= streams.len() {
            let entries = (2 * streams.len()).next_power_of_two().max(ENTRIES_MIN);
            self.index = vec![0; entries];
            for (place, stream) in streams.iter().enumerate() {
                let entry = self.entry(stream.id);
                self.index[entry] = place as u32;
            }
        }
        let entry = self.entry(id);
        self.index[entry] = place as u32;
    }

    /// Returns the place of an open stream.
    #[inline]
    pub(super) fn find(&mut self, id: u32, streams: &[Stream]) -> Option<usize> {
        if id == 0 || streams.is_empty() {
            return None;
        }
        let entry = self.entry(id);
        let guess = self.index[entry] as usize;
        if streams.get(guess).is_some_and(|stream| stream.id == id) {
            return Some(guess);
        }
        let found = streams.iter().position(|stream| stream.id == id)?;
        self.index[entry] = found as u32;
        Some(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_found_with_sparse_ids() {
        let mut places = Places::default();
        let mut streams: Vec<Stream> = Vec::new();
        assert_eq!(places.find(1, &streams), None);
        // every third stream stays open, so that old numbers share entries with new ones
        for id in (1..2000).step_by(2) {
            let stream = Stream::new(id, 0, 0, None);
            let place = match places.take_vacant() {
                Some(place) => {
                    streams[place] = stream;
                    place
                }
                None => {
                    streams.push(stream);
                    streams.len() - 1
                }
            };
            places.note(id, place, &streams);
            assert_eq!(places.find(id, &streams), Some(place));
            if id % 3 != 0 {
                streams[place].id = 0;
                places.give_back(place);
                assert_eq!(places.find(id, &streams), None);
            }
        }
        assert_eq!(streams.len(), 334);
        for id in (1..2000).step_by(2) {
            let found = places.find(id, &streams);
            assert_eq!(found.is_some(), id % 3 == 0, "{id}");
            assert!(found.is_none_or(|place| streams[place].id == id));
        }
    }
}
