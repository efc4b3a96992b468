//! Listening sockets: opened and closed to fit a snapshot, with their accept loops and limits.
