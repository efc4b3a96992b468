//! Reads mesh resources from files and servers, and returns validated, immutable resource sets.
//!
//! Stages of a change: `source` reads bytes; `load` passes each changed document through `parse` (raw types) and
//! `validate` (checked types), according to the row of its kind in `kinds`; `store` decides which version of an object
//! is in effect, and publishes a [`ResourceSet`]. `loader` runs these stages.

mod loader;

pub mod source;

pub mod xds;

pub mod parse;

pub mod raw;

pub mod validate;

pub mod kinds;

mod load;

pub mod ingress;

mod access_table;

mod route_tests;
mod scenarios;

mod written_proxies;

mod clusters;

mod mesh_config;

mod settings_file;

pub mod catalog;

pub mod imports;

pub mod re2;

pub mod resource;

pub mod store;

pub mod proxy_state;

pub mod diagnostic;

pub mod kind;

mod options;

pub mod span;

pub mod xds_body;

pub use access_table::{AccessIdentity, AccessRequest, AccessTable, ExpectedDecision};
pub use clusters::{ClusterSettings, GatewaySettings, GatewayTlsLocation, GatewayTlsSettings};
pub use diagnostic::{Code, Diagnostic, Diagnostics, Location, Severity};
pub use kind::{Kind, Name, ObjectRef};
pub use loader::{
    Checker, LoadOptions, Loaded, NamedText, Recheck, Sources, Update, Watch, check_change,
    check_object, check_text, fill_source_lines, fill_source_lines_with, load_bytes, load_files,
    load_texts, read_texts, watch, watch_for,
};
pub use mesh_config::{follow_config_map, selected, selected_namespaces};
pub use options::{Fleet, ProxyWorkload, ReadOptions, RemoteCluster, Revision};
pub use resource::{Object, ResourceSet};
pub use route_tests::{
    Expectation, Expected, ExpectedDestination, RouteTest, TestConnection, TestFile, TestRequest,
    TestSubject, UnhealthyPart, WrittenProxies,
};
pub use scenarios::{
    Comparison, EventAction, ExpectedFigure, Figure, Operator, Scenario, ScenarioEndpoints,
    ScenarioEvent, ScenarioLoad, ScenarioTarget,
};
pub use settings_file::{
    Parsed, SettingsFile, SettingsUpdate, read_settings, watch_changes, watch_settings,
};
pub use source::{
    ApiServer, ApiServerTimes, ControlServer, ControlSettings, FILES, KubernetesSettings, Received,
    SourceAges, SourceError, SourceErrors, SourceRevision, WatchSettings, XdsNode, XdsServer,
    XdsSettings, is_resource_file,
};
pub use store::{Delta, Quarantined};
pub use validate::istio::parse_log_format;
pub use written_proxies::WrittenProxy;
