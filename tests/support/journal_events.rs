//! What a journal says, read without the program.

use std::path::Path;
use std::sync::Arc;

use engine::service::codec;
use engine::service::platform::SystemClock;
use journal::Reader;
use journal::vfs::os::OsVfs;
use protocol::event::Entry;
use protocol::ids::Seq;

/// Every fact about runs, in order.
pub(crate) fn entries(home: &Path) -> Vec<Entry> {
    let reader = Reader::open(Arc::new(OsVfs), &home.join("journal"), SystemClock::new().boot_id())
        .expect("a journal that can be read");
    reader
        .from(Seq(0))
        .expect("records")
        .filter_map(|record| codec::entry(&record.expect("a whole record")).expect("a known kind"))
        .collect()
}
