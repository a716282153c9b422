//! Golden files of every event kind: bytes that a journal may hold, and what they say. Made once from fixed values, kept
//! for ever: `UPDATE_GOLDEN=1` writes a file that is missing and never changes one that is there.
//!
//! `tests/golden/events_v1/<kind>_<name>.jsonl`: one case a line, `{"payload": hex, "keys": [hex], "fields": {…}}`.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::OnceLock;

use engine::service::codec;
use engine::service::story::Chapter;
use journal::{LookupKey, Record};
use protocol::bundle::{Attended, Profile};
use protocol::capability::{CAPABILITY_FORMAT, Capability, CapabilityClaims, Transition};
use protocol::cursor::Cursor;
use protocol::decision::{Action, DecidedVia, Disposition, Operator};
use protocol::delivery::{DeliveryState, EffectStatus, ReceiptOutcome, Settlement};
use protocol::digest::{MacDigest, Sha256Digest, StateDigest};
use protocol::event::{
    Author, CancelRequested, CapabilityIssued, Checkpoint, CheckpointKind, DecisionFinished, DecisionOutcome,
    DecisionPrepared, DecisionRecorded, DecisionStarted, DeliverySettled, DeliveryUncertain, EffectReading,
    Event, KeyRegistered, LeaseGranted, LeaseReleased, PAYLOAD_VERSION, PauseClosed, PauseExpired,
    PauseOpened, RefusalRecorded, RefusalsCounted, RunAdmitted, RunFinished, StandDownRequested,
    StateRecorded, StepFacts, StepIntent, StepReceipt, Under,
};
use protocol::ids::{
    AttentionId, BootId, DecisionId, DeliveryId, Epoch, IdempotencyKey, InstanceId, JournalId, KeyId,
    LeaseToken, PauseId, RequestId, RunId, Seq, StepId, WorkflowId,
};
use protocol::outcome::{RecordChanged, RunOutcome};
use protocol::pause::{Category, IdentityStatus, Reason, Resolution};
use protocol::refusal::RefusalCode;
use protocol::time::{BootMillis, Deadline, Millis, UnixMillis};
use protocol::vocabulary::Description;
use serde_json::{Value, json};

use crate::events_doc::members;

/// Numbers on both sides of each width that the payload codec has.
const NUMBERS: [u64; 9] = [0, 1, 250, 251, 65_535, 65_536, 4_294_967_295, 4_294_967_296, u64::MAX];

/// Values of the `n`th case, all different, all fixed.
struct Sample(usize);

impl Sample {
    fn bytes<const N: usize>(&self, tag: u8) -> [u8; N] {
        std::array::from_fn(|at| {
            tag.wrapping_mul(31) ^ (at as u8).wrapping_mul(7) ^ (self.0 as u8).wrapping_mul(101)
        })
    }

    fn number(&self, tag: usize) -> u64 {
        NUMBERS[(self.0 + tag) % NUMBERS.len()]
    }

    fn small(&self, tag: usize) -> u32 {
        u32::try_from(self.number(tag)).unwrap_or(u32::MAX)
    }

    fn flag(&self, tag: usize) -> bool {
        (self.0 + tag).is_multiple_of(2)
    }

    fn pick<T: Copy>(&self, all: &[T]) -> T {
        all[self.0 % all.len()]
    }

    /// Present in every other case, so that both forms are there.
    fn maybe<T>(&self, tag: usize, value: T) -> Option<T> {
        self.flag(tag).then_some(value)
    }

    fn text(&self, longest: usize) -> String {
        const ALPHABET: &[u8] = b"abcdefghijklmnopqrstuvwxyz0123456789";
        let len = if self.0 == 0 { longest } else { 16 + self.0 };
        (0..len.min(longest)).map(|at| char::from(ALPHABET[(at * 5 + self.0) % 26])).collect()
    }

    fn sha(&self, tag: u8) -> Sha256Digest {
        Sha256Digest(self.bytes(tag))
    }

    fn mac(&self, tag: u8) -> MacDigest {
        MacDigest(self.bytes(tag))
    }

    fn run(&self) -> RunId {
        RunId(self.bytes(1))
    }

    fn pause(&self) -> PauseId {
        PauseId(self.bytes(2))
    }

    fn decision(&self, tag: u8) -> DecisionId {
        DecisionId(self.bytes(tag))
    }

    fn delivery(&self) -> DeliveryId {
        DeliveryId(self.bytes(5))
    }

    fn instance(&self) -> InstanceId {
        InstanceId(self.bytes(6))
    }

    fn attention(&self) -> AttentionId {
        format!("{:024x}", 0x00c0_ffee_u64 + self.0 as u64).parse().expect("an attention id")
    }

    fn workflow(&self) -> WorkflowId {
        format!("wf_{:024x}", 0x00ab_cdef_u64 + self.0 as u64).parse().expect("a workflow id")
    }

    fn key(&self) -> IdempotencyKey {
        self.text(200).parse().expect("a key")
    }

    fn request(&self) -> RequestId {
        self.text(128).parse().expect("a request id")
    }

    fn step_id(&self) -> StepId {
        self.text(64).parse().expect("a step id")
    }

    fn deadline(&self, tag: usize) -> Deadline {
        let (wall, boot) = (UnixMillis(self.number(tag)), BootMillis(self.number(tag + 1)));
        Deadline { wall, boot_id: BootId(self.bytes(9)), boot }
    }

    fn under(&self) -> Under {
        Under { token: LeaseToken(Seq(self.number(3))), until: self.deadline(4) }
    }

    fn author(&self) -> Author {
        let name = self.pick(&["anna", "b", "jürgen müller", "DOMAIN\\op-7"]);
        Author { operator: Operator::new(name).expect("an operator"), via: self.pick(DecidedVia::ALL) }
    }

    fn step(&self) -> StepFacts {
        StepFacts {
            index: self.small(0),
            id: self.step_id(),
            attended: self.pick(Attended::ALL),
            acts: self.flag(0),
            consequential: self.flag(1),
            skippable: self.flag(0),
            postconditions: self.small(1),
            relative: self.small(2),
            effects: self.small(3),
            attested: self.small(4),
            identity_required: self.flag(1),
            limit: Millis(self.number(5)),
        }
    }

    fn cursor(&self) -> Cursor {
        let frames: Vec<Value> = (0..=self.0 % 3)
            .map(|at| json!({ "block": self.small(at), "step": self.small(at + 1), "row": self.number(at + 2) }))
            .collect();
        serde_json::from_value(Value::Array(frames)).expect("a cursor")
    }

    fn effects(&self) -> Vec<EffectReading> {
        (0..self.0 % 3)
            .map(|at| EffectReading {
                effect: format!("effect-{at}"),
                status: Sample(self.0 + at).pick(EffectStatus::ALL),
                evidence: self.maybe(at, self.mac(20 + at as u8)),
            })
            .collect()
    }

    fn capability(&self) -> Capability {
        let claims = CapabilityClaims {
            format: CAPABILITY_FORMAT,
            sequence: self.number(0),
            journal: JournalId(self.bytes(30)),
            pause: self.pause(),
            run: self.run(),
            workflow: self.workflow(),
            bundle: self.sha(31),
            step_index: self.small(1),
            step_id: self.step_id(),
            cursor: self.sha(32),
            resume_from: self.small(2),
            pause_digest: self.sha(33),
            lineage_head: self.maybe(0, self.sha(34)),
            parameters: self.mac(35),
            policy: self.sha(36),
            transition: self.pick(Transition::ALL),
            transition_digest: self.sha(37),
            delivery: self.pick(DeliveryState::ALL),
            identity_required: self.flag(0),
            identity_status: self.pick(IdentityStatus::ALL),
            issued_at: UnixMillis(self.number(3)),
            expires: self.deadline(4),
            allowed: Action::ALL[..self.0 % (Action::ALL.len() + 1)].to_vec(),
        };
        Capability { claims, key: KeyId(self.bytes(38)), signature: self.mac(39) }
    }

    fn event(&self, kind: u16) -> Option<Event> {
        let run = self.run();
        Some(match kind {
            100 => RunAdmitted {
                run,
                workflow: self.workflow(),
                bundle: self.sha(10),
                profile: self.pick(Profile::ALL),
                parameters: self.mac(11),
                policy: self.sha(12),
                steps: self.small(0),
                effects: self.small(1),
                settle: Millis(self.number(2)),
                request: self.maybe(0, self.request()),
                request_digest: self.mac(13),
                author: self.author(),
            }
            .into(),
            101 => LeaseGranted { run, holder: self.instance(), until: self.deadline(0) }.into(),
            102 => LeaseReleased { run, token: LeaseToken(Seq(self.number(0))) }.into(),
            103 => StepIntent {
                run,
                step: self.step(),
                cursor: self.cursor(),
                delivery: self.delivery(),
                action: self.mac(14),
                absent_after: self.deadline(6),
                reserve: self.small(7),
                under: self.under(),
            }
            .into(),
            104 => StepReceipt {
                run,
                delivery: self.delivery(),
                outcome: self.pick(ReceiptOutcome::ALL),
                evidence: self.maybe(0, self.mac(15)),
                under: self.under(),
            }
            .into(),
            105 => Checkpoint {
                run,
                step: self.step(),
                cursor: self.cursor(),
                kind: self.pick(CheckpointKind::ALL),
                parent: self.maybe(1, self.sha(16)),
                bundle: self.sha(10),
                parameters: self.mac(11),
                effects: self.effects(),
                identity_status: self.pick(IdentityStatus::ALL),
                identity: self.maybe(0, self.mac(17)),
                delivery: self.maybe(1, self.delivery()),
                delivery_attempted: self.flag(1),
                decision: self.maybe(0, self.decision(4)),
                under: self.under(),
            }
            .into(),
            106 => PauseOpened {
                run,
                pause: self.pause(),
                attention: self.attention(),
                step: self.step(),
                cursor: self.cursor(),
                category: self.pick(Category::ALL),
                reason: self.pick(Reason::ALL),
                delivery: self.pick(DeliveryState::ALL),
                last_delivery: self.maybe(0, self.delivery()),
                lineage_head: self.maybe(1, self.sha(16)),
                evidence: (0..self.0 % 3).map(|at| self.mac(40 + at as u8)).collect(),
                identity_status: self.pick(IdentityStatus::ALL),
                identity: self.maybe(0, self.mac(17)),
                baseline: self.flag(1),
                expires: self.deadline(8),
            }
            .into(),
            107 => CapabilityIssued { run, capability: Box::new(self.capability()) }.into(),
            108 => PauseExpired { run, pause: self.pause() }.into(),
            109 => PauseClosed {
                run,
                pause: self.pause(),
                resolution: self.pick(Resolution::ALL),
                author: self.author(),
            }
            .into(),
            110 => DecisionRecorded {
                decision: self.decision(4),
                run,
                pause: self.pause(),
                attention: self.attention(),
                key: self.key(),
                request: self.sha(18),
                capability: self.sha(19),
                action: self.pick(Action::ALL),
                disposition: self.maybe(0, self.pick(Disposition::ALL)),
                author: self.author(),
            }
            .into(),
            111 => DecisionPrepared {
                decision: self.decision(4),
                run,
                pause: self.pause(),
                attention: self.attention(),
                key: self.key(),
                request: self.sha(18),
                capability: self.sha(19),
                action: self.pick(Action::ALL),
                disposition: self.maybe(1, self.pick(Disposition::ALL)),
                author: self.author(),
                under: self.under(),
            }
            .into(),
            112 => DecisionStarted {
                decision: self.decision(4),
                run,
                absent_after: self.deadline(6),
                reserve: self.small(7),
                under: self.under(),
                absence_provable: self.flag(0),
            }
            .into(),
            113 => DecisionFinished {
                decision: self.decision(4),
                run,
                key: self.key(),
                outcome: self.pick(DecisionOutcome::ALL),
                refusal: self.maybe(0, self.pick(RefusalCode::ALL)),
                settled_by: self.maybe(1, self.decision(8)),
            }
            .into(),
            114 => DeliveryUncertain {
                run,
                delivery: self.maybe(0, self.delivery()),
                decision: self.maybe(1, self.decision(4)),
                holder: self.instance(),
                reason: self.pick(Reason::ALL),
            }
            .into(),
            115 => DeliverySettled {
                run,
                delivery: self.maybe(0, self.delivery()),
                settlement: self.pick(Settlement::ALL),
                decision: self.decision(4),
                effects: self.effects(),
            }
            .into(),
            116 => CancelRequested { run, author: self.author() }.into(),
            117 => StandDownRequested { run, by: self.instance() }.into(),
            118 => RunFinished {
                run,
                outcome: self.pick(RunOutcome::ALL),
                reason: self.pick(Reason::ALL),
                changed: self.pick(RecordChanged::ALL),
                confirmed: self.small(0),
            }
            .into(),
            119 => RefusalRecorded {
                code: self.pick(RefusalCode::ALL),
                run: self.maybe(0, run),
                pause: self.maybe(1, self.pause()),
                action: self.maybe(0, self.pick(Action::ALL)),
                author: self.maybe(1, self.author()),
            }
            .into(),
            120 => RefusalsCounted { count: self.number(0), since: UnixMillis(self.number(1)) }.into(),
            121 => StateRecorded {
                through: Seq(self.number(0)),
                digest: StateDigest(self.bytes(50)),
                snapshot: self.maybe(1, self.sha(51)),
            }
            .into(),
            122 => KeyRegistered { key: KeyId(self.bytes(38)) }.into(),
            _ => return None,
        })
    }
}

/// The fixed events of a kind: as many as it takes to hold every variant of the enumerations that stand only in it.
pub(crate) fn samples(kind: u16) -> Vec<Event> {
    let cases = match kind {
        106 => Category::ALL.len(),
        107 => Action::ALL.len() + 1,
        110 => 2 * Disposition::ALL.len(),
        118 => Reason::ALL.len(),
        119 => RefusalCode::ALL.len(),
        _ => 6,
    };
    (0..cases).filter_map(|case| Sample(case).event(kind)).collect()
}

fn file(kind: u16, name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join(format!("golden/events_v{PAYLOAD_VERSION}/{kind}_{name}.jsonl"))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Vec<u8> {
    assert!(text.len().is_multiple_of(2), "whole bytes");
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).expect("hex")).collect()
}

/// A record that holds these bytes, decoded as a journal's would be.
fn read(kind: u16, payload: Vec<u8>) -> Chapter {
    Chapter::of(Record {
        seq: Seq(7),
        kind,
        version: PAYLOAD_VERSION,
        optional: false,
        time: UnixMillis(1_000),
        producer: InstanceId([0xaa; 16]),
        epoch: Epoch(1),
        keys: Vec::new(),
        payload,
    })
    .expect("golden bytes decode")
}

fn event_in(chapter: &Chapter) -> &Event {
    match chapter {
        Chapter::Fact(entry) => &entry.event,
        Chapter::EpochStarted(..) | Chapter::TailCut(..) | Chapter::Unknown(_) => panic!("an event"),
    }
}

fn case(event: &Event) -> String {
    let draft = codec::draft(event, UnixMillis(1_000)).expect("a record");
    let mut keys: Vec<LookupKey> = draft.keys.clone();
    keys.sort_unstable();
    let keys: Vec<String> = keys.iter().map(|key| hex(&key.to_bytes())).collect();
    let fields = fields_of(&read(event.kind(), draft.payload.clone()));
    // By hand, so that the members stand in this order and the fields in theirs.
    format!("{{\"payload\":\"{}\",\"keys\":{},\"fields\":{fields}}}\n", hex(&draft.payload), json!(keys))
}

/// The text of `fields` in the line of JSON, members in their stored order.
fn fields_of(chapter: &Chapter) -> String {
    let line = serde_json::to_string(chapter).expect("JSON");
    let at = line.find("\"fields\":").expect("fields") + "\"fields\":".len();
    line[at..line.len() - 1].to_owned()
}

/// A kind with its name and the cases in its file.
type Golden = (u16, &'static str, Vec<String>);

/// Every kind. Missing files are made once, before any test reads them.
fn golden() -> &'static [Golden] {
    static GOLDEN: OnceLock<Vec<Golden>> = OnceLock::new();
    GOLDEN
        .get_or_init(|| Event::KINDS.iter().map(|(kind, name)| (*kind, *name, cases(*kind, name))).collect())
}

fn cases(kind: u16, name: &str) -> Vec<String> {
    let path = file(kind, name);
    if !path.exists() && std::env::var_os("UPDATE_GOLDEN").is_some_and(|value| value == "1") {
        let cases: String = samples(kind).iter().map(case).collect();
        assert!(!cases.is_empty(), "kind {kind} has no sample in {}", file!());
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(&path, cases).expect("a file");
    }
    let text = fs::read_to_string(&path).unwrap_or_else(|error| {
        panic!("kind {kind} `{name}` has no golden file ({error}); make it with UPDATE_GOLDEN=1 and keep it for ever")
    });
    text.lines().map(str::to_owned).collect()
}

#[test]
fn every_kind_has_golden_bytes_that_read_and_write_the_same_for_ever() {
    for (kind, name, cases) in golden() {
        let kind = *kind;
        assert!(!cases.is_empty(), "{name}");
        for (n, line) in cases.iter().enumerate() {
            let golden: Value = serde_json::from_str(line).expect("JSON");
            let payload = unhex(golden["payload"].as_str().expect("a payload"));
            let chapter = read(kind, payload.clone());
            let event = event_in(&chapter);
            assert_eq!(
                serde_json::from_str::<Value>(&fields_of(&chapter)).expect("JSON"),
                golden["fields"],
                "{name}, case {n}: the bytes say something else than they did"
            );
            let draft = codec::draft(event, UnixMillis(1_000)).expect("a record");
            assert_eq!(
                hex(&draft.payload),
                hex(&payload),
                "{name}, case {n}: the event has other bytes than it had"
            );
            assert_eq!(format!("{line}\n"), case(event), "{name}, case {n}: keys or form differ");
            // The event's own JSON form is the same with its name.
            let mut tagged = golden["fields"].clone();
            tagged["event"] = json!(name);
            assert_eq!(serde_json::to_value(event).expect("JSON"), tagged, "{name}, case {n}");
            assert_eq!(
                &serde_json::from_value::<Event>(tagged).expect("an event"),
                event,
                "{name}, case {n}"
            );
        }
    }
}

#[test]
fn every_variant_of_every_enumeration_is_in_a_golden_file() {
    let descriptions = Event::descriptions();
    let mut missing: BTreeMap<&str, Vec<&str>> = descriptions
        .iter()
        .filter_map(|(name, description)| match description {
            Description::Enumeration(texts) => Some((*name, texts.to_vec())),
            Description::Structure(_) => None,
        })
        .collect();
    for ((_, _, cases), structure) in golden().iter().zip(Event::STRUCTURES) {
        for line in cases {
            let golden: Value = serde_json::from_str(line).expect("JSON");
            for (enumeration, text) in members(structure, &golden["fields"]) {
                if let Some(texts) = missing.get_mut(enumeration.as_str()) {
                    texts.retain(|missing| *missing != text);
                }
            }
        }
    }
    missing.retain(|_, texts| !texts.is_empty());
    assert!(missing.is_empty(), "no golden file holds {missing:?}");
}

#[test]
fn no_golden_file_is_without_a_kind() {
    let folder = file(0, "").parent().expect("a folder").to_owned();
    for entry in fs::read_dir(folder).expect("a folder") {
        let name = entry.expect("an entry").file_name().into_string().expect("UTF-8");
        let known = Event::KINDS.iter().any(|(kind, text)| name == format!("{kind}_{text}.jsonl"));
        assert!(known, "{name} is of no kind; a kind is never taken away");
    }
}

#[test]
fn bytes_cut_short_or_with_more_behind_them_are_no_event() {
    for (kind, name, cases) in golden() {
        let kind = *kind;
        let golden: Value = serde_json::from_str(&cases[0]).expect("JSON");
        let payload = unhex(golden["payload"].as_str().expect("a payload"));
        let decoded = |payload: Vec<u8>| {
            Chapter::of(Record {
                seq: Seq(7),
                kind,
                version: PAYLOAD_VERSION,
                optional: false,
                time: UnixMillis(1_000),
                producer: InstanceId([0xaa; 16]),
                epoch: Epoch(1),
                keys: Vec::new(),
                payload,
            })
        };
        for len in 0..payload.len() {
            assert!(decoded(payload[..len].to_vec()).is_err(), "{name} cut to {len} bytes");
        }
        assert!(decoded([payload, vec![0]].concat()).is_err(), "{name} and a byte more");
    }
}
