//! Schemas of built-in and custom kinds: pruning, defaults, validation, CEL.
