//! ProxyConfig: validation.

use super::proxy_settings::variables;
use super::{Check, shared};
use crate::diagnostic::codes::istio::PX001;
use crate::raw;
use crate::resource::istio::ProxyConfig;
use crate::validate::scalar;

/// Maximum number of workers.
const CONCURRENCY_MAX: i64 = 1024;

/// Checks a ProxyConfig.
pub fn proxy_config(raw: &raw::istio::ProxyConfig, check: &mut Check<'_>) -> ProxyConfig {
    let selector = raw.selector.get();
    let selector =
        selector.map(|one| shared::selector(&one.match_labels, raw.selector.span(), check));
    let range = 0..=CONCURRENCY_MAX;
    let concurrency = scalar::in_range(&raw.concurrency, range, "number of workers", PX001, check);
    ProxyConfig {
        selector: selector.unwrap_or_default(),
        concurrency: concurrency.and_then(|workers| workers.try_into().ok()),
        variables: variables(&raw.environment_variables),
    }
}

#[cfg(test)]
mod tests {
    use crate::validate::istio::testing::{check_of, load};

    fn document(body: &str) -> String {
        format!(
            "apiVersion: networking.istio.io/v1beta1\nkind: ProxyConfig\nmetadata: {{name: own, namespace: ns}}\n\
             spec: {{{body}}}\n"
        )
    }

    #[test]
    fn fields_are_checked() {
        for (body, expected) in [
            ("", &[][..]),
            ("concurrency: 2", &[]),
            ("concurrency: 0", &[]),
            ("concurrency: -1", &["E PX001 4"]),
            ("selector: {matchLabels: {app: '*'}}", &["E CM012 4"]),
            ("concurency: 2", &["E CM021 4"]),
        ] {
            check_of(&document(body), expected);
        }
        let (set, _) = load(&document(
            "selector: {matchLabels: {app: a}}, concurrency: 3",
        ));
        let config = &set.proxy_configs.values().next().expect("it is good").spec;
        assert_eq!(config.selector["app"], "a");
        assert_eq!(config.concurrency, Some(3));
    }
}
