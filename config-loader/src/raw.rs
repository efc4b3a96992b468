//! What was written, field for field as each API has it; no logic.
