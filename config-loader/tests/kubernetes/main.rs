//! Tests against a real Kubernetes API server. `STRAIT_TEST_KUBECONFIG` is the kubeconfig of its administrator.
//!
//! `STRAIT_TEST_KUBERNETES_DIR` is the directory with the process IDs of that server, for tests that restart it.
//! Without these variables the tests are skipped with a message.

#![allow(unreachable_pub, reason = "a test program has no users")]
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
mod references;
mod samples;
