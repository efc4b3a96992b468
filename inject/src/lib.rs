//! Injector: a pure function from a pod and settings to the pod with a proxy, and back.
//!
//! It works on JSON values, so that fields of any version of Kubernetes survive. Injecting twice gives the same pod, and
//! [`uninject`] gives back the pod as it was.

pub mod stream;

pub mod documents;

mod injector;

mod containers;

mod probes;

mod choices;

mod selection;

mod record;

mod patch;

mod context;

mod settings;

mod selector;

mod grammar;

mod report;

mod json;

pub use context::{Caller, Context, Namespace, Owner, Version};
pub use injector::{Injected, Outcome, inject};
pub use patch::between as patch_between;
pub use record::{INJECTED, is_injected, uninject};
pub use report::{Finding, Refusal, Skip};
pub use settings::{
    Capture, ContainerNames, Control, Identity, IdentitySource, Mode, Native, Selected,
    SettingError, Settings, Token,
};
