//! Status of GatewayClasses: their parameters, and the version of the CRDs.

use super::condition::Condition;
use crate::resource::gateway_api::GatewayClass;

/// Oldest supported version of the CRDs, major and minor. Versions of another major are not supported.
const OLDEST: (u32, u32) = (1, 5);

/// CRDs of the Gateway API in an API server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CrdBundle {
    /// Whether they are of the experimental channel.
    pub is_experimental: bool,
    /// Version, as written; empty for CRDs without one, and `None` if it is unknown.
    pub version: Option<String>,
}

impl CrdBundle {
    fn is_supported(&self) -> bool {
        let Some(version) = &self.version else {
            return true;
        };
        let mut parts = version
            .trim_start_matches('v')
            .split('.')
            .map(str::parse::<u32>);
        let version = (parts.next(), parts.next());
        matches!(version, (Some(Ok(major)), Some(Ok(minor))) if major == OLDEST.0 && minor >= OLDEST.1)
    }
}

/// Returns the conditions of a class.
pub(super) fn conditions(class: &GatewayClass, crds: &CrdBundle) -> Vec<Condition> {
    let is_supported = crds.is_supported();
    let message = || {
        let (found, (major, minor)) = (crds.version.as_deref().unwrap_or_default(), OLDEST);
        format!(
            "the CRDs of the Gateway API are of the version `{found}`: versions from v{major}.{minor} to v{major} are supported"
        )
    };
    let unsupported = |name| Condition::new(name, false, "UnsupportedVersion").because(message());
    let accepted = match class.parameters {
        Some(_) => Condition::new("Accepted", false, "InvalidParameters")
            .because("spec.parametersRef: no parameters are supported; remove it"),
        None if !is_supported => unsupported("Accepted"),
        None => Condition::new("Accepted", true, "Accepted"),
    };
    // experimental, like the condition itself
    let supported = crds.is_experimental.then(|| match is_supported {
        true => Condition::new("SupportedVersion", true, "SupportedVersion"),
        false => unsupported("SupportedVersion"),
    });
    [Some(accepted), supported].into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_from_1_5_of_the_same_major_are_supported() {
        for (version, expected) in [
            (Some("v1.5.0"), true),
            (Some("v1.6.1"), true),
            (Some("v1.10.0-rc.1"), true),
            (Some("v1.4.1"), false),
            (Some("v0.8.0"), false),
            (Some("v2.0.0"), false),
            (Some(""), false),
            (Some("main"), false),
            (None, true),
        ] {
            let crds = CrdBundle {
                is_experimental: true,
                version: version.map(str::to_owned),
            };
            let conditions = conditions(&GatewayClass::default(), &crds);
            let held: Vec<_> = conditions.iter().map(Condition::is_true).collect();
            assert_eq!(held, [expected; 2], "{version:?}");
            if !expected {
                assert_eq!(conditions[1].reason, "UnsupportedVersion");
                let version = version.unwrap_or_default();
                assert!(conditions[0].message.contains(&format!("`{version}`")));
            }
        }
        let standard = conditions(&GatewayClass::default(), &CrdBundle::default());
        assert_eq!(standard.len(), 1);
    }
}
