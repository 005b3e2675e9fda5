//! Structured merge and diff: the algorithm of server-side apply.
