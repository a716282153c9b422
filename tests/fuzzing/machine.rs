//! A fleet of processes over one journal, as `workload` draws it. Each thing that happens is drawn from three bytes of its
//! own, so that a change of the bytes changes one of them and leaves the others.

use proptest::strategy::{Strategy as _, ValueTree as _};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use crate::workload::{Happening, happening, judge};
use crate::{Judged, Violation};

/// Most things that happen in one input.
const HAPPENINGS_MAX: usize = 120;
const BYTES: usize = 3;

/// Whatever happens, the machine agrees with the reference model; see [`judge`].
///
/// # Errors
/// The rule that was broken.
pub fn machine(bytes: &[u8]) -> Judged {
    let happenings: Vec<Happening> =
        bytes.chunks_exact(BYTES).take(HAPPENINGS_MAX).map(draw).collect::<Result<_, _>>()?;
    judge(&happenings).map_err(|Violation(broken)| Violation(format!("{broken}\nafter {happenings:#?}")))
}

fn draw(bytes: &[u8]) -> Result<Happening, Violation> {
    let mut seed = [0; 32];
    seed[..BYTES].copy_from_slice(bytes);
    let random = TestRng::from_seed(RngAlgorithm::ChaCha, &seed);
    let mut runner =
        TestRunner::new_with_rng(Config { failure_persistence: None, ..Config::default() }, random);
    let drawn = happening().new_tree(&mut runner);
    drawn.map(|tree| tree.current()).map_err(|reason| Violation(format!("the draw failed: {reason}")))
}
