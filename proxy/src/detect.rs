//! First bytes of a connection to a protocol; never consumes them, bounded in time and size.
