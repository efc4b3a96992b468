//! Last good versions per object, revisions and deltas.
