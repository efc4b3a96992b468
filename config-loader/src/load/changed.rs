//! Fast reading of a document in which only some items of a long list changed.

use std::sync::Arc;

use super::document::{Reading, Source, locator, read, sole_object, whole_fingerprint};
use super::layout::Layout;
use super::long_list;
use crate::parse::Chunk;
use crate::resource::AnyObject;

/// Reads a document in which only some items of a long list changed since the last reading. Returns the same result as
/// [`read_document`](super::document::read_document), or `None` if that function must be called.
pub(super) fn read_changed(
    source: &Source<'_>,
    chunk: Chunk<'_>,
    known: &Arc<dyn AnyObject>,
    layout: &Layout,
) -> Option<(Reading, Layout)> {
    let short = layout.shorten(chunk.text)?;
    let lines = short.lines();
    let text = &*short.text;
    let (mut reading, root) = read(
        source,
        locator(source.file, Chunk { text, ..chunk }, &lines),
    );
    let object = sole_object(&reading)?;
    let layout = layout.join(&short, &root?, reading.regex_bytes, chunk.text)?;
    let fingerprint = whole_fingerprint(layout.root, chunk.text);
    let (whole, items) = long_list::join(&**known, &**object, short.kept, fingerprint)?;
    if items != layout.items() {
        return None;
    }
    reading.slots[0].object = Ok(whole);
    Some((reading, layout))
}
