//! The payload of a record of any kind, and what the machine makes of it.

use engine::machine::{State, apply};
use engine::service::codec;
use engine::service::story::Chapter;
use journal::{Draft, Record, own};
use protocol::canonical_json;
use protocol::event::{Entry, Event, PAYLOAD_VERSION};
use protocol::ids::{Epoch, InstanceId, Seq};
use protocol::time::UnixMillis;

use super::base::broken;
use super::input::Input;
use crate::{Judged, rule};

/// A payload decodes to one value or to none; the value survives its bytes and its JSON; the machine folds it whatever
/// it says. The first byte is the kind: an event's, one of the journal's own, or one that nobody knows.
///
/// # Errors
/// The rule that was broken.
pub fn payload(bytes: &[u8]) -> Judged {
    let mut input = Input::new(bytes);
    let pick = usize::from(input.byte());
    let kinds = Event::KINDS.len();
    let kind = match pick % (kinds + 3) {
        n if n < kinds => Event::KINDS[n].0,
        n if n == kinds => own::EPOCH_STARTED,
        n if n == kinds + 1 => own::TAIL_CUT,
        _ => u16::MAX,
    };
    let record = record(kind, pick > 0xf0, input.rest());
    if let Ok(chapter) = Chapter::of(record.clone()) {
        let line = serde_json::to_value(&chapter).map_err(broken("a chapter as JSON"))?;
        rule(line["kind"] == kind, || format!("a chapter of kind {kind} says {line}"))?;
    }
    let Ok(Some(entry)) = codec::entry(&record) else { return Ok(()) };
    survives(&entry, record.payload.len())?;
    let mut state = State::default();
    apply(&mut state, &entry);
    apply(&mut state, &entry);
    let _ = (state.digest(), state.reserved_bytes(), state.watched());
    Ok(())
}

fn record(kind: u16, optional: bool, payload: &[u8]) -> Record {
    Record {
        seq: Seq(3),
        kind,
        version: PAYLOAD_VERSION,
        optional,
        time: UnixMillis(5),
        producer: InstanceId([7; 16]),
        epoch: Epoch(1),
        keys: Vec::new(),
        payload: payload.to_vec(),
    }
}

fn survives(entry: &Entry, len: usize) -> Judged {
    let Draft { kind, payload, .. } =
        codec::draft(&entry.event, entry.time).map_err(broken("encoding again"))?;
    // Numbers may have been written longer than need be.
    rule(payload.len() <= len, || format!("{len} bytes became {}", payload.len()))?;
    let again = codec::entry(&record(kind, false, &payload)).map_err(broken("decoding again"))?;
    rule(again.as_ref() == Some(entry), || format!("{entry:?} became {again:?}"))?;
    let json = canonical_json::value_of(&entry.event);
    let from_json: Event = serde_json::from_value(json).map_err(broken("an event from its JSON"))?;
    rule(from_json == entry.event, || format!("{entry:?} became {from_json:?} by its JSON"))
}
