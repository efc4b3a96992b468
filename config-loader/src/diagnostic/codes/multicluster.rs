//! Codes of the multi-cluster kinds: GTP, SI, SX, MCS, GD.

codes! {}
