//! Opening, starting, asking, closing.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use protocol::ids::{BootId, JournalId, Seq};

use crate::error::{AppendError, IoFailure, OpenError};
use crate::lock::{CommitLock, LockFailure};
use crate::log::Log;
use crate::options::Options;
use crate::reader::Reader;
use crate::recovery::{OpenReport, recover};
use crate::vfs::{FileSystem, Vfs};
use crate::writer::{Machine, Query, Shared, Writer, promise};

/// Opens the journal in `dir` for writing; creates it when absent. Takes the commit lock, recovers as FORMAT.md says,
/// and gives the lock back.
///
/// # Errors
/// [`OpenError`]; on [`OpenError::Damaged`], [`OpenError::Busy`] and [`OpenError::NetworkFileSystem`] no segment was
/// changed.
pub fn open(vfs: Arc<dyn Vfs>, dir: &Path, options: Options) -> Result<Opened, OpenError> {
    make_directory(vfs.as_ref(), dir)?;
    match vfs.file_system(dir).map_err(IoFailure::new("asking for the file system"))? {
        FileSystem::Network(name) => return Err(OpenError::NetworkFileSystem { name }),
        FileSystem::Local | FileSystem::UserSpace => {}
    }
    let mut lock = CommitLock::open(Arc::clone(&vfs), dir).map_err(IoFailure::new("opening the lock"))?;
    lock.acquire(options.lock_wait).map_err(|failure| match failure {
        LockFailure::Busy => OpenError::Busy { waited: options.lock_wait },
        LockFailure::Io(error) => OpenError::Io(IoFailure::new("locking the journal")(error)),
    })?;
    // On an error the lock ends with its file.
    let recovered = recover(&vfs, dir, &options, &lock)?;
    lock.release().map_err(IoFailure::new("unlocking the journal"))?;
    Ok(Opened { log: recovered.log, report: recovered.report, lock })
}

fn make_directory(vfs: &dyn Vfs, dir: &Path) -> Result<(), IoFailure> {
    let failed = || IoFailure::new("making the journal's directory");
    if vfs.exists(dir).map_err(failed())? {
        return Ok(());
    }
    // The topmost directory that is there already gets a new name in it.
    let mut above: Vec<PathBuf> = Vec::new();
    for ancestor in dir.ancestors().skip(1) {
        let ancestor = if ancestor.as_os_str().is_empty() { Path::new(".") } else { ancestor };
        above.push(ancestor.to_owned());
        if vfs.exists(ancestor).map_err(failed())? {
            break;
        }
    }
    vfs.create_dir_all(dir).map_err(failed())?;
    above.iter().try_for_each(|dir| vfs.sync_dir(dir)).map_err(failed())
}

/// A journal that was recovered and has no writer thread yet.
pub struct Opened {
    log: Log,
    report: OpenReport,
    lock: CommitLock,
}

impl Opened {
    /// What opening found and did.
    #[must_use]
    pub const fn report(&self) -> &OpenReport {
        &self.report
    }

    /// Names the journal for ever.
    #[must_use]
    pub const fn journal_id(&self) -> JournalId {
        self.log.open.header.journal_id
    }

    /// Sequence of the next record, when it was opened.
    #[must_use]
    pub const fn next_seq(&self) -> Seq {
        self.log.place.next_seq
    }

    /// A reader, to look at records before starting.
    #[must_use]
    pub fn reader(&self) -> Reader {
        Reader::new(Arc::clone(&self.log.vfs), &self.log.dir, self.log.options.boot_id)
    }

    /// Folds every record from `from` on into the machine, then starts the writer thread.
    ///
    /// # Errors
    /// [`OpenError::Ahead`] if `from` is beyond the end; [`OpenError::UnknownRecord`] as the machine says; damage or a
    /// failure on the way.
    pub fn start<M: Machine>(mut self, from: Seq, mut machine: M) -> Result<Journal<M>, OpenError> {
        self.log.replay(from, None, &mut |record| machine.apply(&record))?;
        let place = (Arc::clone(&self.log.vfs), self.log.dir.clone(), self.log.options.boot_id);
        let (journal_id, log, lock) = (self.journal_id(), self.log, self.lock);
        let shared = Arc::new(Shared::new(Writer::new(log, lock, machine)));
        let writer = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("journal-writer".to_owned())
            .spawn(move || writer.run())
            .map_err(IoFailure::new("starting the writer thread"))?;
        let (vfs, dir, boot_id) = place;
        let inner = Inner { shared, vfs, dir, boot_id, journal_id, thread: Mutex::new(Some(thread)) };
        Ok(Journal { inner: Arc::new(inner) })
    }
}

/// A journal open for writing. Cheap to clone; safe from many threads. The last clone to go closes it.
pub struct Journal<M: Machine> {
    inner: Arc<Inner<M>>,
}

struct Inner<M: Machine> {
    shared: Arc<Shared<M>>,
    vfs: Arc<dyn Vfs>,
    dir: PathBuf,
    boot_id: BootId,
    journal_id: JournalId,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl<M: Machine> Clone for Journal<M> {
    fn clone(&self) -> Self {
        Self { inner: Arc::clone(&self.inner) }
    }
}

impl<M: Machine> Journal<M> {
    /// Has one command decided; returns its answer once everything it pushed is durable. Commands that wait at the
    /// same time are served by the writer thread and share a sync; one that comes alone is served by the calling
    /// thread. Not to be called from the machine or a query.
    ///
    /// # Errors
    /// [`AppendError`]. After one that [`AppendError::is_final`] every later call fails too.
    pub fn submit(&self, command: M::Command) -> Result<M::Answer, AppendError> {
        self.inner.shared.submit(command)
    }

    /// Runs `f` on the writer thread on the durable machine, after reading on to what other processes synced. Takes no
    /// lock.
    ///
    /// # Errors
    /// As [`Journal::submit`], but never that the journal is busy or the disk full.
    pub fn query<R: Send + 'static>(
        &self,
        f: impl FnOnce(&mut M) -> R + Send + 'static,
    ) -> Result<R, AppendError> {
        let (promise, slot) = promise();
        let query: Query<M> = Box::new(move |machine| promise.keep(machine.map(f)));
        self.inner.shared.query(query)?;
        slot.wait()
    }

    /// Names the journal for ever.
    #[must_use]
    pub fn journal_id(&self) -> JournalId {
        self.inner.journal_id
    }

    /// A reader of what is durable.
    #[must_use]
    pub fn reader(&self) -> Reader {
        Reader::new(Arc::clone(&self.inner.vfs), &self.inner.dir, self.inner.boot_id)
    }

    /// Serves what was handed over before, then ends the writer thread, also for all clones.
    ///
    /// # Errors
    /// Why the journal had stopped, if it had.
    pub fn close(self) -> Result<(), AppendError> {
        self.inner.end();
        self.inner.shared.end().filter(|end| *end != AppendError::Closed).map_or(Ok(()), Err)
    }
}

impl<M: Machine> Inner<M> {
    fn end(&self) {
        self.shared.close();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread.filter(|thread| thread.thread().id() != std::thread::current().id()) {
            // A panic of the machine has told every waiter; there is nobody left to tell.
            let _ = thread.join();
        }
    }
}

impl<M: Machine> Drop for Inner<M> {
    fn drop(&mut self) {
        self.end();
    }
}
