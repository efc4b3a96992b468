//! Places in a document: byte ranges and lines.
