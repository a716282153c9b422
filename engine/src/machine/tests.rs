//! The machine's rules as tables, one file per subject. `Bench` stands in for the service: it lends the clock, the ids
//! and the facts, and folds what `decide` says.

mod absence;
mod actions;
mod bench;
mod cancel;
mod crash;
mod expiry;
mod lease;
mod outcomes;
mod phases;
mod runs;
mod table;
mod totality;
