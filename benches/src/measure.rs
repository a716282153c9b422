//! What is measured: each file gives rows of the table.

pub mod append;
pub mod command;
pub mod decision;
pub mod journal;
