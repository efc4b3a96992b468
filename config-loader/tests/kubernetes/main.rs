//! Objects of a real Kubernetes API server, which `STRAIT_TEST_KUBECONFIG` names as an administrator.
//!
//! `STRAIT_TEST_KUBERNETES_DIR` is the directory of that server with the ids of its processes, for tests that restart it.
//! Without the variables the tests are skipped, and say so.

#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "tests: what fails, and what is skipped, is shown"
)]

mod cluster;
mod faults;
mod followed;
mod large;
mod objects;
mod process;
mod samples;
