//! Revisioned object store with watch, in memory or durable.
