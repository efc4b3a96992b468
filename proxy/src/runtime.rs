//! Threads, drain, clock and supervised tasks.
