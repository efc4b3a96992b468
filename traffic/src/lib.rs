//! The decisions of a proxy, without sockets: which rule a request matches, what it does to the request, which cluster
//! and endpoint get it, and when an endpoint is left out. Time and random numbers are passed in.
//!
//! ```
//! use http::{HeaderMap, Method};
//! use traffic::provenance::Provenance;
//! use traffic::route::{Conditions, RequestHead, Rule, Table, UriMatch};
//!
//! let api = Rule {
//!     name: "api".into(),
//!     conditions: Conditions {
//!         uri: UriMatch::Prefix { value: "/api".into(), ignore_case: false },
//!         ..Conditions::default()
//!     },
//!     provenance: Provenance { object: "VirtualService/default/shop".into(), file: "shop.yaml".into(), line: 9 },
//! };
//! let table = Table::compile(vec![api]);
//! let headers = HeaderMap::new();
//! let head = |path| RequestHead {
//!     is_http2: false,
//!     method: &Method::GET,
//!     scheme: "http",
//!     authority: "shop.example",
//!     host: "shop.example",
//!     path,
//!     query: None,
//!     headers: &headers,
//!     claims: None,
//! };
//! assert!(table.find(&head("/api/carts")).is_some());
//! assert!(table.find(&head("/")).is_none());
//! ```

pub mod authz;
pub mod balance;
pub mod certificate;
pub mod claims;
pub mod cluster;
pub mod connection;
pub mod dates;
pub mod error;
pub mod filter;
pub mod limit;
pub mod pattern;
pub mod provenance;
pub mod registry;
pub mod route;
pub mod sync;
pub mod telemetry;
pub mod trace;
