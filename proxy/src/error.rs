//! The error of a request: kind, origin, and whether it may be tried again.
