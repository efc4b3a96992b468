//! Request bodies: their progress, buffers for retries, and copies for mirrors.

pub mod feed;
pub mod held;
pub mod progress;
pub mod replay;
pub mod upstream;
