//! Entries about access logs.

use super::entries::{mode_of, providers};
use crate::diagnostic::codes::istio::{TL013, TL014, TL016, TL017};
use crate::raw::Field;
use crate::raw::istio::telemetry::AccessLogging as Raw;
use crate::resource::istio::telemetry::AccessLogging;
use crate::validate::istio::expression::expression;
use crate::validate::istio::shared;
use crate::validate::{Check, scalar};

/// Returns the entries about access logs.
pub(super) fn access_logging(
    field: &Field<Vec<Field<Raw>>>,
    check: &mut Check<'_>,
) -> Vec<AccessLogging> {
    let mut entries: Vec<AccessLogging> = Vec::new();
    for (entry, raw) in scalar::items(field, check) {
        let filter = raw.filter.get().map(|filter| &filter.expression);
        let expression = filter.and_then(|field| {
            let expression = expression(field, "every request is logged", check)?;
            advise(&expression, field, check);
            Some(expression)
        });
        let one = AccessLogging {
            mode: mode_of(&raw.matched, check),
            providers: providers(&raw.providers, check),
            disabled: shared::flag(&raw.disabled),
            filter: expression,
            line: check.line(entry.span()),
        };
        if one.filter.is_some() && one.providers.is_empty() {
            let message = "a filter without providers has no effect";
            let found = check.warning(TL013, raw.filter.span(), message);
            found.help("write the providers in the same entry, without `-` before `filter`");
        }
        entries.push(one);
    }
    entries
}

/// Warns about requests that an expression loses.
fn advise(expression: &traffic::filter::Expression, field: &Field<String>, check: &mut Check<'_>) {
    if let Some(always) = expression.fixed() {
        let message = match always {
            true => "the expression is true for every request",
            false => "the expression is true for no request",
        };
        let found = check.warning(TL016, field.span(), message);
        found.help("remove the filter, or write `disabled: true`");
        return;
    }
    for (attribute, lacking) in expression.unguarded() {
        let message = format!("`{attribute}` is absent for {lacking}: they are not logged");
        let found = check.warning(TL014, field.span(), message);
        found.help(match attribute.split_once("['") {
            Some((headers, name)) => {
                let name = name.trim_end_matches("']");
                format!("if they are meant, write `!('{name}' in {headers}) || ..`")
            }
            None => format!("if they are meant, write `!has({attribute}) || ..`"),
        });
    }
    if expression.is_beyond_envoy() {
        let message = "Envoy refuses functions of texts, and `+` on texts, in a filter";
        let found = check.note(TL017, field.span(), message);
        found.help("if Istio's proxies read this resource too, compare texts as they are");
    }
}
