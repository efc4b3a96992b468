//! IngressClass, checked.

use std::sync::Arc;

use crate::resource::Object;
use crate::span::Line;

/// Annotation of the class of Ingresses without one.
const IS_DEFAULT: &str = "ingressclass.kubernetes.io/is-default-class";

/// Checked IngressClass.
#[derive(Clone, Debug, Default)]
pub struct IngressClass {
    /// Name of the controller: a domain and a path.
    pub controller: Arc<str>,
    /// Source line of `parameters`, if they are set. No parameters are supported.
    pub parameters: Option<Line>,
}

impl Object<IngressClass> {
    /// Whether it is the class of Ingresses without one.
    pub fn is_default(&self) -> bool {
        self.annotations
            .get(IS_DEFAULT)
            .is_some_and(|value| value == "true")
    }
}
