//! Reading of the annotations of ingress-nginx of one Ingress.

use std::sync::Arc;

use super::annotations::{KNOWN, Treatment, treatment};
use super::nginx::{Canary, Nginx, Written, boolean};
use super::outcome::{Outcome, Verdict};
use super::route_parts;
use crate::diagnostic::suggest;
use crate::resource::gateway_api::RouteExtensions;
use crate::resource::networking::Ingress;
use crate::resource::{Object, ResourceSet};

/// Largest body of a request in ingress-nginx without `proxy-body-size`.
const BODY_MAX: u64 = 1 << 20;
/// Seconds without a byte of the response in ingress-nginx without `proxy-read-timeout`.
const READ_SECONDS: u32 = 60;

/// Reads the annotations of an Ingress of a set. `has_defaults`: it has the defaults of ingress-nginx.
pub(super) fn read(set: &ResourceSet, object: &Object<Ingress>, has_defaults: bool) -> Nginx {
    let spec = &object.spec;
    let own = spec.annotations.iter().filter_map(|annotation| {
        let name = annotation.key.strip_prefix(Ingress::NGINX)?;
        Some((name, annotation))
    });
    let written = Written(own.collect(), set);
    let mut nginx = Nginx {
        namespace: Arc::clone(&object.id.namespace),
        ..Nginx::default()
    };
    if has_defaults {
        nginx
            .annotations
            .insert("strait.io/max-request-bytes", BODY_MAX.to_string());
        nginx
            .annotations
            .insert(RouteExtensions::IDLE_TIMEOUT, format!("{READ_SECONDS}s"));
    }
    let is_canary = written.is_true("canary");
    if is_canary {
        nginx.canary = Some(Canary {
            total: 100,
            ..Canary::default()
        });
    }
    for (name, annotation) in &written.0 {
        let verdict = match is_canary && !name.starts_with("canary") {
            true => {
                Verdict::Dropped("a canary has the annotations of the stable Ingress".to_owned())
            }
            false => take(&mut nginx, name, annotation.value.trim(), &written),
        };
        nginx.is_closed |= matches!(verdict, Verdict::Closed(_));
        nginx.outcomes.push(Outcome {
            field: annotation.key.to_string(),
            value: Arc::clone(&annotation.value),
            line: annotation.line,
            verdict,
        });
    }
    nginx
}

fn take(nginx: &mut Nginx, name: &str, value: &str, written: &Written<'_>) -> Verdict {
    match treatment(name) {
        // an annotation that is switched off
        Some((Treatment::Closes, _)) if is_off(name, value) => {
            Verdict::Becomes("nothing".to_owned())
        }
        Some((Treatment::Closes, why)) => Verdict::Closed(why.to_owned()),
        Some((Treatment::Drops, why)) => Verdict::Dropped(why.to_owned()),
        Some((Treatment::Follows, effect)) => {
            let taken = route_parts::take(nginx, name, value, written);
            taken.unwrap_or_else(|| Verdict::Becomes(effect.to_owned()))
        }
        None => {
            let known = KNOWN.iter().map(|(known, ..)| *known);
            Verdict::Unknown(suggest::nearest(name, known))
        }
    }
}

/// Whether the value of an annotation that is not followed asks for nothing.
fn is_off(name: &str, value: &str) -> bool {
    let switches = ["enable-modsecurity", "enable-owasp-core-rules"];
    let is_false = || boolean(value) == Some(false);
    match name {
        _ if value.is_empty() => true,
        "proxy-redirect-from" | "proxy-redirect-to" => ["off", "default"].contains(&value),
        "proxy-cookie-domain" | "proxy-cookie-path" => value == "off",
        "satisfy" => value == "all",
        "limit-connections" | "global-rate-limit" => value == "0",
        name => switches.contains(&name) && is_false(),
    }
}
