//! What the disk itself costs: `pwrite` and `fdatasync` on a file that was filled with zeros and synced before, so that
//! neither its length nor its extents change. No journal that syncs can be faster with one producer.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

/// A file of zeros.
pub struct Raw {
    file: File,
    block: Vec<u8>,
    next: u64,
    len: u64,
}

impl Raw {
    /// A file in `dir` with room for `blocks` writes of `block_bytes`; then it starts again at its beginning.
    #[must_use]
    pub fn new(dir: &Path, block_bytes: usize, blocks: usize) -> Self {
        let file = File::create(dir.join("raw")).expect("a file");
        let len = (block_bytes * blocks) as u64;
        let zeros = vec![0; 1 << 20];
        let mut at = 0;
        while at < len {
            let bytes = zeros.len().min((len - at) as usize);
            file.write_all_at(&zeros[..bytes], at).expect("a write");
            at += bytes as u64;
        }
        file.sync_all().expect("a sync");
        Self { file, block: vec![7; block_bytes], next: 0, len }
    }

    /// One durable write.
    pub fn write(&mut self) -> Duration {
        let start = Instant::now();
        self.file.write_all_at(&self.block, self.next).expect("a write");
        self.file.sync_data().expect("a sync");
        let took = start.elapsed();
        self.next += self.block.len() as u64;
        if self.next + self.block.len() as u64 > self.len {
            self.next = 0;
        }
        took
    }

    /// Several.
    pub fn turn(&mut self, writes: usize) -> Vec<Duration> {
        (0..writes).map(|_| self.write()).collect()
    }
}
