//! I/O and timers around compile: sources, publishing, DNS.
