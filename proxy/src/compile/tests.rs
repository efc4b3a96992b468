//! Compiled snapshots, asked with requests: which rule takes a request, and where it goes.

mod affinity;
mod ages;
mod aliases;
mod all_kinds;
mod client_tls;

mod connections;
mod delegation;
mod edits;
mod federation;
mod fields;
mod gateway_routes;

mod hosts;

mod incremental;

mod members;
mod mesh_defaults;

mod service_cache;

mod operators;

mod policies;

mod retry_budgets;
mod route_precedence;

mod rules;

mod services;
mod several_entries;
mod shifts;
mod sidecars;

mod world;
