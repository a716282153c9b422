//! The full check of closed segments, for opening and for `verify`.

use std::sync::Mutex;

use crate::error::{Damage, Fault, IoFailure, OpenError};
use crate::format::block::{BlockFault, Entry, Place, Shape};
use crate::log::continues;
use crate::segment::Segment;
use crate::walk::{Block, End, Step, TableState};

/// Threads that check segments at once, at most. Each holds the keys of one segment in memory.
const THREADS_MAX: usize = 4;

/// Compares the key table of a segment with the keys of its records as both go by.
#[derive(Default)]
pub(crate) struct TableCheck {
    /// Whether a record has gone by: a segment without one is never closed, and the next would take its name.
    has_records: bool,
    keys: Vec<Entry>,
    sorted: bool,
    compared: usize,
}

impl TableCheck {
    /// Takes note of a block; says whether a table block holds what it must.
    pub(crate) fn note(&mut self, block: &Block<'_>) -> Result<(), BlockFault> {
        match block.header.shape {
            Shape::Records => {
                self.has_records = true;
                self.keys.extend(block.keys());
                Ok(())
            }
            Shape::Table if !self.has_records => Err(BlockFault::Table),
            Shape::Table => {
                if !self.sorted {
                    self.keys.sort_unstable();
                    self.sorted = true;
                }
                let want = self.keys.get(self.compared..).unwrap_or_default().iter().copied();
                let before = self.compared;
                for (have, want) in block.entries().zip(want) {
                    if have != want {
                        return Err(BlockFault::Table);
                    }
                    self.compared += 1;
                }
                let all = self.compared - before == block.header.count as usize;
                let ended = !block.header.is_last() || self.compared == self.keys.len();
                if all && ended { Ok(()) } else { Err(BlockFault::Table) }
            }
        }
    }

    /// The keys of the records gone by.
    pub(crate) fn into_keys(self) -> Vec<Entry> {
        self.keys
    }
}

/// Walks all of a closed segment. `went` is told the bytes gone by. The inner error is what is wrong, and where.
pub(crate) fn walk_closed(
    segment: &mut Segment,
    went: &(dyn Fn(u64) + Sync),
) -> Result<Result<Place, Damage>, IoFailure> {
    let failed = || IoFailure::new("reading a segment");
    let len = segment.file.len().map_err(failed())?;
    let (mut walk, mut table) = (segment.walk(segment.start(), len), TableCheck::default());
    loop {
        match walk.step().map_err(failed())? {
            Step::Block(block) => {
                if let Err(fault) = table.note(&block) {
                    return Ok(Err(segment.damage(&block.place, fault)));
                }
                if block.header.shape == Shape::Records {
                    segment.note(&block.place);
                }
                went(block.header.len as u64);
            }
            Step::End(End::Fault(fault)) => return Ok(Err(segment.damage(walk.place(), fault))),
            Step::End(End::AfterTable) => return Ok(Err(segment.damage(walk.place(), Fault::AfterEnd))),
            Step::End(End::Zeros) => {
                let place = *walk.place();
                return Ok(match walk.table() {
                    TableState::Complete if place.offset == len => Ok(place),
                    TableState::Complete => Err(segment.damage(&place, Fault::AfterEnd)),
                    TableState::None | TableState::Begun => Err(segment.damage(&place, Fault::Unclosed)),
                });
            }
        }
    }
}

/// Calls `act` on each item, from several threads, in order of the items as far as that goes.
pub(crate) fn in_parallel<T: Send>(items: impl Iterator<Item = T> + Send, act: impl Fn(T) + Sync) {
    let items = Mutex::new(items);
    let next = || items.lock().ok().and_then(|mut items| items.next());
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(THREADS_MAX);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(item) = next() {
                    act(item);
                }
            });
        }
    });
}

/// Checks closed segments, newest first, up to `bytes_max`, and that each leads to the next.
pub(crate) fn check_closed(closed: &mut [Segment], open: &Segment, bytes_max: u64) -> Result<(), OpenError> {
    let mut picked = 0;
    let mut left = bytes_max;
    for segment in closed.iter().rev() {
        let len = segment.len()?;
        if len > left {
            break;
        }
        left -= len;
        picked += 1;
    }
    if picked == 0 {
        return Ok(());
    }
    let first = closed.len() - picked;
    let found = Mutex::new(Vec::with_capacity(picked));
    in_parallel(closed[first..].iter_mut().enumerate(), |(n, segment)| {
        let checked = walk_closed(segment, &|_| {});
        if let Ok(mut found) = found.lock() {
            found.push((n, checked));
        }
    });
    let mut found = found.into_inner().unwrap_or_default();
    found.sort_unstable_by_key(|(n, _)| *n);
    for (n, checked) in found {
        let end = checked?.map_err(OpenError::Damaged)?;
        let segment = &closed[first + n];
        let next = closed.get(first + n + 1).unwrap_or(open);
        continues(segment, &end, next).map_err(|fault| OpenError::Damaged(next.damage_at_start(fault)))?;
    }
    Ok(())
}
