//! A line that tells a person on a terminal how far a run is. Nothing when piped, nothing under `--json`.

use std::io::{self, IsTerminal as _, Write as _};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use protocol::projection::RunView;

use crate::output::Output;

/// Before the first line: short work shows none.
const PATIENCE: Duration = Duration::from_millis(700);
/// Between two looks.
const LOOK: Duration = Duration::from_millis(250);

/// Does `work`; meanwhile says what `look` sees, if somebody is there to read it.
pub(crate) fn during<T>(
    out: &Output,
    look: impl Fn() -> Option<RunView> + Sync,
    work: impl FnOnce() -> T,
) -> T {
    if out.json() || !io::stderr().is_terminal() {
        return work();
    }
    let (done, ended) = (Mutex::new(false), Condvar::new());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut shown = false;
            let mut wait = PATIENCE;
            loop {
                let guard = done.lock().unwrap_or_else(PoisonError::into_inner);
                let (guard, _) = ended
                    .wait_timeout_while(guard, wait, |done| !*done)
                    .unwrap_or_else(PoisonError::into_inner);
                if *guard {
                    break;
                }
                drop(guard);
                wait = LOOK;
                if let Some(run) = look() {
                    shown = true;
                    // Nobody has to read it.
                    let _ = write!(
                        io::stderr(),
                        "\r\u{1b}[Kworking on step {} of {} …",
                        run.step_number,
                        run.step_count
                    );
                }
            }
            if shown {
                let _ = write!(io::stderr(), "\r\u{1b}[K");
            }
        });
        // Also when `work` panics: a scope waits for its threads.
        let _told = Told { done: &done, ended: &ended };
        work()
    })
}

struct Told<'a> {
    done: &'a Mutex<bool>,
    ended: &'a Condvar,
}

impl Drop for Told<'_> {
    fn drop(&mut self) {
        *self.done.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.ended.notify_all();
    }
}
