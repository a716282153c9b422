//! Rules that cross crates, each told by the name of its test. One binary, so that it links once.

mod architecture;
mod events_doc;
mod golden_events;
mod machine;
mod reader;
