//! Events as records and back: which kind, which payload, which look-up keys.

use journal::{Draft, LookupKey, Record, payload};
use protocol::event::{Entry, Event, PAYLOAD_VERSION, PayloadSource};
use protocol::ids::{AttentionId, IdempotencyKey, RequestId, RunId};
use protocol::time::UnixMillis;

/// Kinds below this are the journal's own.
pub const FIRST_EVENT_KIND: u16 = 100;

/// Classes of look-up keys, stored in the key's hash. Numbers are for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum KeyClass {
    Idempotency = 1,
    Request = 2,
    Run = 3,
    Attention = 4,
}

/// Look-up key of a decision's idempotency key.
#[must_use]
pub fn idempotency_lookup(key: &IdempotencyKey) -> LookupKey {
    LookupKey::new(KeyClass::Idempotency as u8, key.as_str().as_bytes())
}

/// Look-up key of a request id.
#[must_use]
pub fn request_lookup(request: &RequestId) -> LookupKey {
    LookupKey::new(KeyClass::Request as u8, request.as_str().as_bytes())
}

/// Look-up key of a run: its admission and its end.
#[must_use]
pub fn run_lookup(run: RunId) -> LookupKey {
    LookupKey::new(KeyClass::Run as u8, &run.0)
}

/// Look-up key of an attention id: its pause.
#[must_use]
pub fn attention_lookup(attention: &AttentionId) -> LookupKey {
    LookupKey::new(KeyClass::Attention as u8, attention.as_str().as_bytes())
}

/// Why a record is not an event that this version understands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CodecError {
    /// The kind, or its version, is of a newer opjournal.
    #[error(
        "record {seq} is of kind {kind} version {version}, which this version does not know; use a newer opjournal"
    )]
    Unknown {
        /// Position.
        seq: u64,
        /// Kind number.
        kind: u16,
        /// Version of the payload.
        version: u8,
    },
    /// The payload does not decode although its checksum fits.
    #[error("record {seq} of kind {kind} does not decode; run `opjournal verify`")]
    Malformed {
        /// Position.
        seq: u64,
        /// Kind number.
        kind: u16,
    },
    /// An event does not fit a record.
    #[error("an event of kind {kind} does not fit a record")]
    TooLarge {
        /// Kind number.
        kind: u16,
    },
}

/// Encodes an event.
///
/// # Errors
/// [`CodecError::TooLarge`].
pub fn draft(event: &Event, time: UnixMillis) -> Result<Draft, CodecError> {
    struct Fact<'a>(&'a Event);
    impl serde::Serialize for Fact<'_> {
        fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            self.0.serialize_payload(serializer)
        }
    }
    let payload = payload::encode(&Fact(event)).map_err(|_| CodecError::TooLarge { kind: event.kind() })?;
    Ok(Draft {
        kind: event.kind(),
        version: PAYLOAD_VERSION,
        optional: false,
        time,
        keys: lookup_keys(event),
        payload,
    })
}

fn lookup_keys(event: &Event) -> Vec<LookupKey> {
    match event {
        Event::RunAdmitted(admitted) => {
            let mut keys = vec![run_lookup(admitted.run)];
            keys.extend(admitted.request.as_ref().map(request_lookup));
            keys
        }
        Event::RunFinished(finished) => vec![run_lookup(finished.run)],
        Event::PauseOpened(opened) => vec![attention_lookup(&opened.attention)],
        Event::DecisionRecorded(recorded) => vec![idempotency_lookup(&recorded.key)],
        Event::DecisionPrepared(prepared) => vec![idempotency_lookup(&prepared.key)],
        Event::DecisionFinished(finished) => vec![idempotency_lookup(&finished.key)],
        Event::LeaseGranted(_)
        | Event::LeaseReleased(_)
        | Event::StepIntent(_)
        | Event::StepReceipt(_)
        | Event::Checkpoint(_)
        | Event::CapabilityIssued(_)
        | Event::PauseExpired(_)
        | Event::PauseClosed(_)
        | Event::DecisionStarted(_)
        | Event::DeliveryUncertain(_)
        | Event::DeliverySettled(_)
        | Event::CancelRequested(_)
        | Event::StandDownRequested(_)
        | Event::RefusalRecorded(_)
        | Event::RefusalsCounted(_)
        | Event::StateRecorded(_)
        | Event::KeyRegistered(_) => vec![],
    }
}

/// Decodes a record; `None` for the journal's own kinds and for optional kinds that this version does not know.
///
/// # Errors
/// [`CodecError::Unknown`] or [`CodecError::Malformed`].
pub fn entry(record: &Record) -> Result<Option<Entry>, CodecError> {
    if record.kind < FIRST_EVENT_KIND {
        return Ok(None);
    }
    let known =
        record.version == PAYLOAD_VERSION && Event::KINDS.iter().any(|(kind, _)| *kind == record.kind);
    if !known {
        return if record.optional {
            Ok(None)
        } else {
            Err(CodecError::Unknown { seq: record.seq.0, kind: record.kind, version: record.version })
        };
    }
    let event = Event::decode_payload(record.kind, Payload(&record.payload))
        .ok()
        .flatten()
        .ok_or(CodecError::Malformed { seq: record.seq.0, kind: record.kind })?;
    Ok(Some(Entry { seq: record.seq, time: record.time, producer: record.producer, event }))
}

/// A record's payload, decoded with the journal's codec.
struct Payload<'a>(&'a [u8]);

impl PayloadSource for Payload<'_> {
    type Error = payload::PayloadError;
    fn decode<T: serde::de::DeserializeOwned>(self) -> Result<T, Self::Error> {
        payload::decode(self.0)
    }
}
