//! Walks one request from its head to the last byte of its response.
