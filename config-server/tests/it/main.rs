//! Config server over real sockets, with a test client, and with kubectl if installed.

// Tests may panic, and print why they are skipped.
#![allow(unreachable_pub, reason = "a test program has no users")]
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod access;
mod client_go;
mod collected;
mod conditions;
mod connections;
mod crash;
mod disk;
mod etcd;
mod expired;
mod gateway_rules;
mod gateway_sources;
mod gateway_status;
mod hub;
mod identities;
mod imports;
mod ingress_status;
mod kinds;
mod kubectl;
mod load;
mod lost_etcd;
mod objects;
mod operations;
mod process;
mod proxies;
mod python;
mod refusals;
mod replicas;
mod requests;
#[path = "../../../config-loader/tests/kubernetes/samples.rs"]
mod samples;
mod status_for;
mod support;
mod transfer;
mod webhook;
mod xds;
