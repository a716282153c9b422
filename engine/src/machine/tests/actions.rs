//! What a pause allows, walked over every combination and judged by an independent statement of attended-contract §3.

use protocol::bundle::Attended;
use protocol::command::Finding;
use protocol::decision::Action;
use protocol::delivery::ReceiptOutcome;
use protocol::event::StepFacts;
use protocol::pause::{Category, IdentityStatus};

use super::bench::{Bench, acting, finding};
use crate::machine::pause::allowed_actions;

/// How the step at the cursor stands towards its delivery.
#[derive(Clone, Copy, Debug)]
enum Made {
    No,
    Says,
    Perhaps,
}

#[test]
fn every_combination_allows_what_the_contract_says() {
    let mut walked = 0_u32;
    let bit = |bits: u32, at: u32| bits >> at & 1;
    for bits in 0..1_u32 << 9 {
        for identity_status in IdentityStatus::ALL.iter().copied() {
            for made in [Made::No, Made::Says, Made::Perhaps] {
                let step = StepFacts {
                    attended: Attended::OnHalt,
                    consequential: bit(bits, 0) == 1,
                    skippable: bit(bits, 1) == 1,
                    postconditions: bit(bits, 2),
                    relative: bit(bits, 3),
                    effects: bit(bits, 4),
                    attested: bit(bits, 5),
                    identity_required: bit(bits, 6) == 1,
                    acts: bit(bits, 7) == 1,
                    ..acting(0)
                };
                let baseline = bit(bits, 8) == 1;
                let (mut bench, run) = Bench::paused_for(
                    &step,
                    Finding { identity_status, baseline, ..finding(Category::Postcondition) },
                );
                let held = bench.state.runs.get_mut(&run).unwrap();
                held.crossing = match made {
                    Made::No => None,
                    Made::Says => Some(crossing(&step, Some(ReceiptOutcome::Acted))),
                    Made::Perhaps => Some(crossing(&step, Some(ReceiptOutcome::Unclear))),
                };
                let pause = held.pause.clone().unwrap();
                let allowed = allowed_actions(held, &pause);
                for action in Action::ALL.iter().copied() {
                    let want = match action {
                        Action::Teach | Action::Escalate => true,
                        Action::Reject => matches!(made, Made::No),
                        Action::Reconcile => !matches!(made, Made::No),
                        Action::Continue => {
                            !matches!(made, Made::Perhaps)
                                && (step.postconditions > 0 || step.effects > 0)
                                && (step.relative == 0 || baseline)
                                && step.attested == 0
                                && identity_status != IdentityStatus::Mismatch
                                && (identity_status == IdentityStatus::Verified || !step.identity_required)
                        }
                        Action::Skip => step.skippable && !step.consequential && matches!(made, Made::No),
                    };
                    assert_eq!(
                        allowed.contains(&action),
                        want,
                        "{action} {step:?} {identity_status} {made:?}"
                    );
                }
                walked += 1;
            }
        }
    }
    assert_eq!(walked, 512 * 4 * 3);
}

fn crossing(step: &StepFacts, receipt: Option<ReceiptOutcome>) -> crate::machine::state::Crossing {
    crate::machine::state::Crossing {
        delivery: protocol::ids::DeliveryId([1; 16]),
        step: step.clone(),
        holder: super::bench::A,
        absent_after: Bench::new().now.after(super::bench::LIMIT),
        reserve: 0,
        receipt,
    }
}
