//! Upstream connections of one worker, last used first.
