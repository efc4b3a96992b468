//! Metrics cells, access log and response flags.
