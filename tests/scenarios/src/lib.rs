//! Readable scripts with golden output, on the embedded and on the real server.
