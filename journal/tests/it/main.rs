//! The rules of the journal, tested from outside.

mod append;
mod damage;
mod disk;
mod faults;
mod support;
mod tail;
