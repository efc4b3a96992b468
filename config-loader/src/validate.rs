//! Raw types to checked resources, with every finding as a diagnostic.
