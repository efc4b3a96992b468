//! Which place a stream has, without a search, and which places are vacant.

use super::super::stream::Stream;

/// Entries of a new index; a power of two.
const ENTRIES_MIN: usize = 16;

/// Where streams are.
///
/// The index is a guess that is checked: numbers of streams grow, so the streams that are open at a time mostly have entries of
/// their own. A stream that lost its entry to a newer one is searched for.
#[derive(Debug, Default)]
pub(super) struct Places {
    vacant: Vec<usize>,
    /// By the number of a stream, its place. A power of two, and more than there are places.
    index: Vec<u32>,
}

impl Places {
    /// A place that can be used again: the one that was last in use.
    pub(super) fn take_vacant(&mut self) -> Option<usize> {
        self.vacant.pop()
    }

    /// A place can be used again.
    pub(super) fn give_back(&mut self, place: usize) {
        debug_assert!(!self.vacant.contains(&place));
        self.vacant.push(place);
    }

    /// Whether none of so many places is in use.
    pub(super) fn are_all_vacant(&self, places: usize) -> bool {
        self.vacant.len() == places
    }

    fn entry(&self, id: u32) -> usize {
        // numbers are odd
        (id >> 1) as usize & (self.index.len() - 1)
    }

    /// A stream was opened.
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

    /// The place of an open stream.
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
        // every third stream stays, so that numbers of long ago share entries with new ones
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
