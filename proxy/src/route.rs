//! Matching: hosts, paths, headers and query to a rule; pure decisions.
