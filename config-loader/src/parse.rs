//! Text to raw types, strictly; knows no meaning.
