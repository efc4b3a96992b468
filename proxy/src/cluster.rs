//! A compiled service: its endpoints, splits and picks; pure decisions.
