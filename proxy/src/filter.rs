//! What a rule does to a request and its response; pure values.
