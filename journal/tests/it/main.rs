//! The rules of the journal, tested from outside.

mod append;
mod disk;
mod support;
mod tail;
