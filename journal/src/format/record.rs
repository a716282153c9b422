//! FORMAT.md, "Record".

use std::fmt;

use protocol::ids::{Epoch, InstanceId, Seq};
use protocol::time::UnixMillis;

use super::{Field, RECORD_BYTES_MAX, all_zero, array_at, u16_at, u32_at, u64_at};
use crate::chain;

/// Bytes of a record before its keys and payload.
pub const HEADER_BYTES: usize = KEY_AT;
/// Look-up keys in one record, at most.
pub const KEYS_MAX: usize = 15;
/// Bytes of a look-up key.
pub const KEY_BYTES: usize = 16;
/// Kinds below are the journal's own.
pub const FIRST_ENGINE_KIND: u16 = 100;

const KIND_AT: usize = 4;
const VERSION_AT: usize = KIND_AT + 2;
const FLAGS_AT: usize = VERSION_AT + 1;
const TIME_MS_AT: usize = FLAGS_AT + 1;
const PRODUCER_AT: usize = TIME_MS_AT + 8;
const KEYS_AT: usize = PRODUCER_AT + 16;
const ZERO_AT: usize = KEYS_AT + 1;
const KEY_AT: usize = ZERO_AT + 3;

/// The rows of fixed length in the table of FORMAT.md.
pub const FIELDS: [Field; 8] = [
    Field::new("len", 0, 4),
    Field::new("kind", KIND_AT, 2),
    Field::new("version", VERSION_AT, 1),
    Field::new("flags", FLAGS_AT, 1),
    Field::new("time_ms", TIME_MS_AT, 8),
    Field::new("producer", PRODUCER_AT, 16),
    Field::new("keys", KEYS_AT, 1),
    Field::new("zero", ZERO_AT, 3),
];

const FLAG_OPTIONAL: u8 = 1;

/// A look-up key: a digest, so that a table of keys shows no text. Compare and search only.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LookupKey(pub(crate) [u8; KEY_BYTES]);

impl LookupKey {
    /// The key of `text` among those of `class` (run ids, request ids, …: the engine gives classes their meaning).
    #[must_use]
    pub fn new(class: u8, text: &[u8]) -> Self {
        Self(array_at(&chain::lookup_key(class, text), 0))
    }

    /// As stored.
    #[must_use]
    pub const fn to_bytes(self) -> [u8; KEY_BYTES] {
        self.0
    }
}

impl fmt::Debug for LookupKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// A record that is not yet in the journal; the journal adds its sequence, epoch and producer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Draft {
    /// Stable number of what it says; from [`FIRST_ENGINE_KIND`].
    pub kind: u16,
    /// Version of the kind's payload.
    pub version: u8,
    /// Whether a reader that does not know the kind may skip it.
    pub optional: bool,
    /// Wall clock of the producer.
    pub time: UnixMillis,
    /// At most [`KEYS_MAX`]; a key given twice is stored once.
    pub keys: Vec<LookupKey>,
    /// At most [`super::PAYLOAD_BYTES_MAX`] bytes.
    pub payload: Vec<u8>,
}

/// One durable record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Its position.
    pub seq: Seq,
    /// Stable number of what it says; below [`FIRST_ENGINE_KIND`] the journal's own.
    pub kind: u16,
    /// Version of the kind's payload.
    pub version: u8,
    /// Whether a reader that does not know the kind may skip it.
    pub optional: bool,
    /// Wall clock of the producer.
    pub time: UnixMillis,
    /// The process that wrote it.
    pub producer: InstanceId,
    /// Writer epoch of its block.
    pub epoch: Epoch,
    /// Look-up keys, ascending.
    pub keys: Vec<LookupKey>,
    /// What it says, encoded.
    pub payload: Vec<u8>,
}

/// Why bytes are not a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordFault {
    /// The length is below the header's and the keys', or above what the block holds or a record may have.
    #[error("a record's length is out of range")]
    Length,
    /// More keys than a record may have, or not in ascending order.
    #[error("a record's look-up keys are out of range or order")]
    Keys,
    /// A flag or zero field that is not known: a newer format.
    #[error("a record has a flag of a newer format")]
    Unsupported,
}

/// Bytes of the record that `draft` becomes.
#[must_use]
pub fn encoded_len(draft: &Draft) -> usize {
    HEADER_BYTES + draft.keys.len() * KEY_BYTES + draft.payload.len()
}

/// Appends the record's bytes. `keys` are sorted and within [`KEYS_MAX`]; the caller has checked the length.
pub(crate) fn encode_into(out: &mut Vec<u8>, draft: &Draft, keys: &[LookupKey], producer: InstanceId) {
    let len = HEADER_BYTES + keys.len() * KEY_BYTES + draft.payload.len();
    let flags = if draft.optional { FLAG_OPTIONAL } else { 0 };
    out.reserve(len);
    out.extend_from_slice(&(len as u32).to_le_bytes());
    out.extend_from_slice(&draft.kind.to_le_bytes());
    out.extend_from_slice(&[draft.version, flags]);
    out.extend_from_slice(&draft.time.0.to_le_bytes());
    out.extend_from_slice(&producer.0);
    out.extend_from_slice(&[keys.len() as u8, 0, 0, 0]);
    for key in keys {
        out.extend_from_slice(&key.0);
    }
    out.extend_from_slice(&draft.payload);
}

/// A record inside a block's bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RecordView<'a> {
    bytes: &'a [u8],
}

impl<'a> RecordView<'a> {
    /// The record at the start of `bytes`, and what follows it. Validates every length before using it.
    pub(crate) fn split(bytes: &'a [u8]) -> Result<(Self, &'a [u8]), RecordFault> {
        if bytes.len() < HEADER_BYTES {
            return Err(RecordFault::Length);
        }
        let len = u32_at(bytes, 0) as usize;
        let keys = usize::from(bytes[KEYS_AT]);
        if keys > KEYS_MAX {
            return Err(RecordFault::Keys);
        }
        if len > bytes.len() || len > RECORD_BYTES_MAX || len < HEADER_BYTES + keys * KEY_BYTES {
            return Err(RecordFault::Length);
        }
        if bytes[FLAGS_AT] & !FLAG_OPTIONAL != 0 || !all_zero(&bytes[ZERO_AT..KEY_AT]) {
            return Err(RecordFault::Unsupported);
        }
        let (own, rest) = bytes.split_at(len);
        let view = Self { bytes: own };
        let ascending = view.keys().zip(view.keys().skip(1)).all(|(one, next)| one < next);
        if ascending { Ok((view, rest)) } else { Err(RecordFault::Keys) }
    }

    pub(crate) fn keys(self) -> impl Iterator<Item = LookupKey> + 'a {
        let keys = usize::from(self.bytes[KEYS_AT]);
        self.bytes[KEY_AT..KEY_AT + keys * KEY_BYTES]
            .chunks_exact(KEY_BYTES)
            .map(|key| LookupKey(array_at(key, 0)))
    }

    pub(crate) fn to_record(self, seq: Seq, epoch: Epoch) -> Record {
        let keys = usize::from(self.bytes[KEYS_AT]);
        Record {
            seq,
            kind: u16_at(self.bytes, KIND_AT),
            version: self.bytes[VERSION_AT],
            optional: self.bytes[FLAGS_AT] & FLAG_OPTIONAL != 0,
            time: UnixMillis(u64_at(self.bytes, TIME_MS_AT)),
            producer: InstanceId(array_at(self.bytes, PRODUCER_AT)),
            epoch,
            keys: self.keys().collect(),
            payload: self.bytes[KEY_AT + keys * KEY_BYTES..].to_vec(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes_of(keys: usize, payload: &[u8]) -> (Draft, Vec<u8>) {
        let mut keys: Vec<_> = (0..keys).map(|n| LookupKey::new(1, &[n as u8])).collect();
        keys.sort_unstable();
        let draft = Draft {
            kind: 300,
            version: 2,
            optional: true,
            time: UnixMillis(77),
            keys,
            payload: payload.to_vec(),
        };
        let mut out = Vec::new();
        encode_into(&mut out, &draft, &draft.keys, InstanceId([3; 16]));
        (draft, out)
    }

    #[test]
    fn a_record_survives_its_bytes() {
        for (keys, payload) in [(0, &b""[..]), (1, b"x"), (15, &[9; 1000])] {
            let (draft, mut bytes) = bytes_of(keys, payload);
            assert_eq!(bytes.len(), encoded_len(&draft));
            bytes.extend_from_slice(b"next");
            let (view, rest) = RecordView::split(&bytes).expect("a record");
            assert_eq!(rest, b"next");
            let record = view.to_record(Seq(5), Epoch(2));
            assert_eq!((record.seq, record.epoch, record.producer), (Seq(5), Epoch(2), InstanceId([3; 16])));
            let Record { kind, version, optional, time, keys, payload, .. } = record;
            assert_eq!(Draft { kind, version, optional, time, keys, payload }, draft);
        }
    }

    #[test]
    fn each_wrong_field_is_refused() {
        for (case, at, value, want) in [
            ("length too small", 0, 35_u8, RecordFault::Length),
            ("length beyond the block", 1, 1, RecordFault::Length),
            ("length beyond every record", 3, 0xff, RecordFault::Length),
            ("too many keys", KEYS_AT, 16, RecordFault::Keys),
            ("more keys than bytes", KEYS_AT, 15, RecordFault::Length),
            ("unknown flag", FLAGS_AT, 2, RecordFault::Unsupported),
            ("zero field", ZERO_AT, 1, RecordFault::Unsupported),
            ("keys out of order", KEY_AT, 0xff, RecordFault::Keys),
        ] {
            let (_, mut bytes) = bytes_of(2, b"payload");
            bytes[at] = value;
            assert_eq!(RecordView::split(&bytes).map(|_| ()), Err(want), "{case}");
        }
        assert_eq!(RecordView::split(&[0; HEADER_BYTES - 1]).map(|_| ()), Err(RecordFault::Length));
    }
}
