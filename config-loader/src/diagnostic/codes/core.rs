//! Codes of the Kubernetes core kinds: SVC, EPS, SEC.

codes! {}
