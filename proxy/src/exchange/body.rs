//! Bodies of requests: their progress, and what is kept of them for retries and copied for mirrors.

pub mod feed;
pub mod progress;
pub mod replay;
pub mod upstream;
