//! Compiled snapshots, asked with requests.
