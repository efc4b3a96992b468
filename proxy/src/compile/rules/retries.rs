//! A rule's retries and mirrors, as requests use them.

use std::sync::Arc;

use config_loader::resource::istio::{Destination, HttpAction, HttpRule};
use config_loader::resource::{Line, Percent};

use crate::compile::policies::retries;
use traffic::filter::RetryPolicy;

/// Returns the retry policy of a rule; that of the mesh if the rule has none, `None` if the rule does not retry.
pub(in crate::compile) fn policy(
    rule: &HttpRule,
    mesh: Option<&Arc<RetryPolicy>>,
) -> Option<Arc<RetryPolicy>> {
    if !matches!(rule.action, HttpAction::Route(_)) {
        return None;
    }
    let Some(written) = rule.retries.as_deref() else {
        return mesh.cloned();
    };
    retries::policy(written).map(Arc::new)
}

/// Returns the mirrors of a rule: share, destination and line.
pub(in crate::compile) fn mirrors(
    rule: &HttpRule,
) -> impl Iterator<Item = (Percent, &Destination, Line)> {
    let one = rule.mirror.as_deref().map(|mirror| {
        let share = rule.mirror_percentage.unwrap_or(Percent::ALL);
        (share, mirror, rule.line)
    });
    let several = rule.mirrors.iter();
    one.into_iter()
        .chain(several.map(|mirror| (mirror.percentage, &mirror.destination, mirror.line)))
}
