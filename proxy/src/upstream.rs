//! Connecting to an endpoint and sending one attempt.
