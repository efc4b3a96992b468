//! Ingresses that are served, by their classes.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::nginx::Nginx;
use super::outcome::finding;
use super::reading::read;
use crate::diagnostic::codes::ingress::{IG001, IG003, IG004};
use crate::diagnostic::{Diagnostic, Severity};
use crate::kind::ObjectRef;
use crate::options::IngressSettings;
use crate::resource::networking::{Ingress, IngressClass};
use crate::resource::{Object, ResourceSet};
use crate::span::Line;

/// Ingress that is served, with the meaning of its annotations.
pub(super) struct Served {
    pub(super) object: Arc<Object<Ingress>>,
    pub(super) nginx: Nginx,
    /// Whether it has the defaults of ingress-nginx.
    pub(super) is_of_nginx: bool,
}

impl Served {
    pub(super) fn namespace(&self) -> &Arc<str> {
        &self.object.id.namespace
    }
}

/// Reason that an Ingress is served or not.
enum Choice {
    /// It is served; with `true` by the defaults of ingress-nginx.
    Served(bool),
    /// Its class belongs to another controller.
    Foreign,
    /// No IngressClass has this name.
    Unknown(Arc<str>),
    /// It has no class.
    Classless,
}

/// Returns the Ingresses that are served, the oldest first.
pub(super) fn served(
    set: &ResourceSet,
    settings: &IngressSettings,
    found_all: &mut Vec<Diagnostic>,
) -> Vec<Served> {
    let mut all: Vec<&Arc<Object<Ingress>>> = set.ingresses.values().collect();
    all.sort_by(|one, other| one.age().cmp(&other.age()));
    let mut served = Vec::new();
    for object in all {
        let annotation = object.spec.class_annotation();
        if let Some(annotation) = annotation.filter(|_| object.spec.class.is_some()) {
            let message =
                "the class is in `ingressClassName` and in an annotation: the annotation counts";
            let found = finding(
                object,
                IG003,
                Severity::Warning,
                annotation.line,
                message.to_owned(),
            );
            found_all.push(found.with_help(Some("remove the annotation".to_owned())));
        }
        let (line, message) = match choice(set, settings, object) {
            Choice::Served(is_of_nginx) => {
                served.push(Served {
                    object: Arc::clone(object),
                    nginx: read(set, object, is_of_nginx),
                    is_of_nginx,
                });
                continue;
            }
            Choice::Foreign => continue,
            Choice::Unknown(class) => {
                let message =
                    format!("no IngressClass `{class}` exists: the Ingress is not served");
                (annotation.map_or(Line(0), |one| one.line), message)
            }
            Choice::Classless => {
                let message =
                    "the Ingress has no class, and no class is the default one: it is not served";
                (Line(0), message.to_owned())
            }
        };
        let found = finding(object, IG001, Severity::Note, line, message);
        let help = "write an `ingressClassName` of `--ingress-controller`, or use `--ingress-without-class`";
        found_all.push(found.with_help(Some(help.to_owned())));
    }
    for class in set.ingress_classes.values() {
        if let Some(line) = class.spec.parameters.filter(|_| is_ours(class, settings)) {
            let message = "parameters of an IngressClass have no effect".to_owned();
            let found = finding(class, IG004, Severity::Warning, line, message);
            found_all.push(found.with_help(Some("remove `parameters`".to_owned())));
        }
    }
    served
}

/// Returns the Ingresses that are served by their classes.
pub fn served_names(set: &ResourceSet, settings: &IngressSettings) -> BTreeSet<ObjectRef> {
    let all = set.ingresses.values();
    let served = all.filter(|one| matches!(choice(set, settings, one), Choice::Served(_)));
    served.map(|one| one.id.clone()).collect()
}

fn is_ours(class: &Object<IngressClass>, settings: &IngressSettings) -> bool {
    settings
        .controllers
        .iter()
        .any(|one| **one == *class.spec.controller)
}

fn choice(set: &ResourceSet, settings: &IngressSettings, object: &Object<Ingress>) -> Choice {
    let of_nginx = |class: &Object<IngressClass>| {
        Choice::Served(*class.spec.controller == *IngressSettings::NGINX_CONTROLLER)
    };
    let is_named = |name: &str| settings.classes.iter().any(|one| one == name);
    if let Some(annotation) = object.spec.class_annotation() {
        return match is_named(&annotation.value) {
            true => Choice::Served(
                settings.takes_over_nginx() && *annotation.value != *IngressSettings::CLASS,
            ),
            false => Choice::Foreign,
        };
    }
    if let Some(name) = &object.spec.class {
        let class = set
            .ingress_classes
            .values()
            .find(|class| class.id.name == *name);
        return match class {
            Some(class) if is_ours(class, settings) => of_nginx(class),
            Some(_) => Choice::Foreign,
            None if is_named(name) => {
                Choice::Served(settings.takes_over_nginx() && **name != *IngressSettings::CLASS)
            }
            None => Choice::Unknown(Arc::clone(name)),
        };
    }
    let mut classes = set.ingress_classes.values();
    match classes.find(|class| class.is_default()) {
        Some(class) if is_ours(class, settings) => of_nginx(class),
        _ if settings.without_class => Choice::Served(settings.takes_over_nginx()),
        Some(_) => Choice::Foreign,
        None => Choice::Classless,
    }
}
