//! The built-in HTTP executor.
