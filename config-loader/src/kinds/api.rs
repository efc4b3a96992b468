//! How a kind is served by an API server: plural, short names, categories and the columns of a table.

/// The names and the columns of a kind in the API of Kubernetes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Api {
    /// The plural, as it stands in paths.
    pub plural: &'static str,
    /// What may be typed instead of the plural.
    pub short_names: &'static [&'static str],
    /// The groups of kinds that it is listed with, such as `istio-io`.
    pub categories: &'static [&'static str],
    /// Whether its objects are in namespaces.
    pub is_namespaced: bool,
    /// Whether `status` is written by itself, through `/status`.
    pub has_status: bool,
    /// The columns of a table, without the name, which is the first.
    pub columns: &'static [Column],
}

/// One column of a table of objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its head.
    pub name: &'static str,
    /// What it shows, as `additionalPrinterColumns` of a CustomResourceDefinition names it: `.spec.host`.
    pub json_path: &'static str,
    /// `string`, or `date` for a time that is shown as an age.
    pub holds: &'static str,
}

/// How old an object is: the last column of most kinds.
pub(super) const AGE: Column = Column {
    name: "Age",
    json_path: ".metadata.creationTimestamp",
    holds: "date",
};

/// A column that holds a text.
pub(super) const fn text(name: &'static str, json_path: &'static str) -> Column {
    Column {
        name,
        json_path,
        holds: "string",
    }
}

impl Api {
    /// A kind with objects in namespaces, a status, and its age as the only column.
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

    /// The same with these short names.
    pub(super) const fn short(self, short_names: &'static [&'static str]) -> Api {
        Api {
            short_names,
            ..self
        }
    }

    /// The same in these categories.
    pub(super) const fn categories(self, categories: &'static [&'static str]) -> Api {
        Api { categories, ..self }
    }

    /// The same with these columns.
    pub(super) const fn columns(self, columns: &'static [Column]) -> Api {
        Api { columns, ..self }
    }

    /// The same without a status.
    pub(super) const fn without_status(self) -> Api {
        Api {
            has_status: false,
            ..self
        }
    }

    /// The same with objects outside of namespaces.
    pub(super) const fn cluster_scoped(self) -> Api {
        Api {
            is_namespaced: false,
            ..self
        }
    }
}
