//! Simulation of a scenario: failures on a virtual clock, through the code that traffic runs through.
//!
//! `proxy` makes proxies as `app` does, with the shipping publisher, monitors and workers; requests are those of
//! `exchange::simulated`. Own to a simulation are the endpoints (`world`), connections without sockets (`pools`), and the
//! order of events (`engine`). All random numbers follow from a seed, and nothing reads the system's clock.

mod engine;
mod expectations;
mod figures;
mod inputs;
mod pools;
mod proxy;
mod queue;
mod report;
mod requests;
mod world;

pub use engine::run;
pub use expectations::Checked;
pub use inputs::{Inputs, Unknown};
pub use report::{Happening, Report, Row};

#[cfg(test)]
mod tests;
