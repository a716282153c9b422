//! The reference model, the workload and the oracle that judge property tests, fuzzing and crash runs alike.
//!
//! - [`plan`]: the workflows that the simulated runs execute.
//! - [`world`]: the outside world, with true time, clocks that lie, and effects that appear late or never.
//! - [`model`]: what the machine should say, from a few maps. It knows nothing of the machine's state.
//! - [`fleet`]: several processes over one journal, each with its leases, executors and decisions under way.
//! - [`workload`]: what may happen to them, as a proptest strategy.
//!
//! Nothing here panics: a broken rule is a [`Violation`], so that every user can print its own seed beside it.

pub mod fleet;
#[path = "../fuzzing/targets.rs"]
pub mod fuzzing;
pub mod model;
pub mod plan;
pub mod workload;
pub mod world;

/// A rule that was broken, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation(pub String);

impl core::fmt::Display for Violation {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Violation {}

/// Whether the rules held.
pub type Judged = Result<(), Violation>;

/// Ends in a violation unless `holds`.
///
/// ```
/// use opjournal_tests::rule;
///
/// assert!(rule(true, || "never said".into()).is_ok());
/// assert_eq!(rule(false, || "two actuations".into()).map_err(|why| why.to_string()), Err("two actuations".into()));
/// ```
///
/// # Errors
/// The violation.
pub fn rule(holds: bool, broken: impl FnOnce() -> String) -> Judged {
    if holds { Ok(()) } else { Err(Violation(broken())) }
}
