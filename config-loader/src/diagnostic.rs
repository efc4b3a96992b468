//! Findings about configuration, and their renderers.
