//! The shell around the machine: clock, ids, leases, executors, journal. The loop is always
//! catch up → read clock and ids → `decide` → append (durable, or an error) → `apply` → act.

mod args;
pub mod bundle;
pub mod codec;
mod driver;
mod engine;
mod error;
pub mod executor;
pub mod history;
mod home;
mod inputs;
mod keys;
pub mod platform;
pub mod ports;
mod probe;
pub mod project;
mod shell;
mod snapshot;
pub mod story;
mod view;

pub use args::check_executor_args;
pub use engine::{DecisionAnswer, Engine, EngineOptions, StartRequest, Started};
pub use error::EngineError;
pub use executor::Deployment;
pub use home::Home;
pub use keys::KeyError;
pub use view::View;
