//! The lineage: every checkpoint names its parent, and all of them belong to one bundle version, one set of parameters
//! and one order of steps. Source: DESIGN §4.1.

use super::state::Run;

/// Whether the run's checkpoints prove their lineage up to the cursor. A journal that this machine wrote always does;
/// one that somebody rewrote may not, and then nothing goes on from it.
#[must_use]
pub fn is_proven(run: &Run) -> bool {
    let mut parent = None;
    let mut index = 0_u32;
    for link in &run.lineage {
        let fits = link.parent == parent
            && link.index == index
            && link.bundle == run.admitted.bundle
            && link.parameters == run.admitted.parameters;
        if !fits {
            return false;
        }
        parent = Some(link.digest);
        index = index.saturating_add(1);
    }
    index == run.cursor.step()
}
