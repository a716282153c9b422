//! What the tests with real processes share: the program under test, a clinic of its own for each of them, the
//! scenarios, an operator who goes by what the program says, and the judge of what is left in the end.

pub(crate) mod clinic;
pub(crate) mod host;
pub(crate) mod journal_events;
pub(crate) mod judge;
pub(crate) mod operator;
pub(crate) mod process;
pub(crate) mod scenario;
