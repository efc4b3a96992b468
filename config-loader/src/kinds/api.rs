//! Kubernetes API names of a kind: plural, short names, categories and table columns.

/// Kubernetes API names and table columns of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Api {
    /// Plural, as used in URL paths.
    pub plural: &'static str,
    /// Short names, which `kubectl` accepts instead of the plural.
    pub short_names: &'static [&'static str],
    /// Categories, such as `istio-io`.
    pub categories: &'static [&'static str],
    /// Whether objects of the kind are namespaced.
    pub is_namespaced: bool,
    /// Whether the kind has a `/status` subresource.
    pub has_status: bool,
    /// Table columns after the name.
    pub columns: &'static [Column],
}

/// Column of a table of objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// Header of the column.
    pub name: &'static str,
    /// JSON path of the value, as in `additionalPrinterColumns` of a CustomResourceDefinition: `.spec.host`.
    pub json_path: &'static str,
    /// Type of the value: `string`, or `date` for a time that is shown as an age.
    pub holds: &'static str,
}

/// Column with the age of an object: the last column of most kinds.
pub(super) const AGE: Column = Column {
    name: "Age",
    json_path: ".metadata.creationTimestamp",
    holds: "date",
};

/// Creates a text column.
pub(super) const fn text(name: &'static str, json_path: &'static str) -> Column {
    Column {
        name,
        json_path,
        holds: "string",
    }
}

impl Api {
    /// Creates a namespaced kind with a status and `AGE` as its only column.
    pub(super) const fn of(plural: &'static str) -> Api {
        Api {
            plural,
            short_names: &[],
            categories: &[],
            is_namespaced: true,
            has_status: true,
            columns: &[AGE],
        }
    }

    /// Sets the short names.
    pub(super) const fn short(self, short_names: &'static [&'static str]) -> Api {
        Api {
            short_names,
            ..self
        }
    }

    /// Sets the categories.
    pub(super) const fn categories(self, categories: &'static [&'static str]) -> Api {
        Api { categories, ..self }
    }

    /// Sets the columns.
    pub(super) const fn columns(self, columns: &'static [Column]) -> Api {
        Api { columns, ..self }
    }

    /// Removes the `/status` subresource.
    pub(super) const fn without_status(self) -> Api {
        Api {
            has_status: false,
            ..self
        }
    }

    /// Makes the kind cluster-scoped.
    pub(super) const fn cluster_scoped(self) -> Api {
        Api {
            is_namespaced: false,
            ..self
        }
    }
}
