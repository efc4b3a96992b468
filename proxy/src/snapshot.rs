//! What requests read: the compiled configuration, immutable and swapped as a whole.
