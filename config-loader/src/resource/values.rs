//! Small values that several kinds share.

use std::sync::Arc;

/// Percentage of requests, with a resolution of a ten-thousandth of a percent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Percent {
    parts_per_million: u32,
}

impl Percent {
    /// All requests: 100 %.
    pub const ALL: Percent = Percent {
        parts_per_million: 1_000_000,
    };

    /// Creates a percentage, rounded down to a ten-thousandth and limited to 0..100.
    pub fn new(value: f64) -> Percent {
        // A cast from a float saturates, and NaN becomes 0. The small term undoes what binary fractions lose: 0.0003
        // is held as a bit less, and must still be 3 in a million.
        let parts = (value.clamp(0.0, 100.0) * 10_000.0 + 1e-6).floor();
        Percent {
            parts_per_million: parts as u32,
        }
    }

    /// Number of requests per million.
    pub fn parts_per_million(self) -> u32 {
        self.parts_per_million
    }
}

/// Namespaces that may use a resource (`exportTo`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ExportTo {
    /// Every namespace.
    #[default]
    All,
    /// Sorted list of namespaces. The resource's own namespace is listed by name, not as `.`.
    Namespaces(Vec<Arc<str>>),
    /// No namespace.
    NoNamespace,
}

/// Namespaces that may use a resource without `exportTo`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DefaultExport {
    /// Every namespace.
    #[default]
    All,
    /// No namespace.
    NoNamespace,
    /// The resource's own namespace.
    Own,
}

impl DefaultExport {
    /// Returns the namespaces of a resource in the namespace `own`.
    pub fn of(self, own: &str) -> ExportTo {
        match self {
            DefaultExport::All => ExportTo::All,
            DefaultExport::NoNamespace => ExportTo::NoNamespace,
            DefaultExport::Own => ExportTo::Namespaces(vec![own.into()]),
        }
    }
}

/// Namespaces that may use resources without `exportTo`, by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DefaultExports {
    /// Default of DestinationRules.
    pub destination_rules: DefaultExport,
    /// Default of Services and ServiceEntries.
    pub services: DefaultExport,
    /// Default of VirtualServices.
    pub virtual_services: DefaultExport,
}

impl ExportTo {
    /// Whether this includes every namespace that `other` includes.
    pub fn covers(&self, other: &ExportTo) -> bool {
        match (self, other) {
            (ExportTo::All, _) | (_, ExportTo::NoNamespace) => true,
            (_, ExportTo::All) => false,
            (_, ExportTo::Namespaces(namespaces)) => {
                namespaces.iter().all(|namespace| self.includes(namespace))
            }
        }
    }

    /// Whether proxies and resources in `namespace` may use the resource.
    pub fn includes(&self, namespace: &str) -> bool {
        match self {
            ExportTo::All => true,
            ExportTo::Namespaces(list) => list.iter().any(|entry| &**entry == namespace),
            ExportTo::NoNamespace => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_are_stored_in_parts_per_million() {
        for (percent, parts) in [
            (0.0, 0),
            (0.0001, 1),
            (0.0003, 3),
            (0.00019, 1),
            (33.3333, 333_333),
            (100.0, 1_000_000),
            (f64::NAN, 0),
        ] {
            assert_eq!(
                Percent::new(percent).parts_per_million(),
                parts,
                "{percent}"
            );
        }
    }

    #[test]
    fn export_to_decides_visibility_by_namespace() {
        assert!(ExportTo::All.includes("a"));
        assert!(ExportTo::Namespaces(vec!["a".into()]).includes("a"));
        assert!(!ExportTo::Namespaces(vec!["a".into()]).includes("b"));
        assert!(!ExportTo::NoNamespace.includes("a"));
    }
}
