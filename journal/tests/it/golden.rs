//! The golden journal of format 1.0: read for ever, and still written to the byte.

#[path = "../../examples/make_golden.rs"]
mod make_golden;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use opjournal_journal::own::{CutFinding, EpochReason, EpochStarted, TailCut};
use opjournal_journal::payload::{decode, encode};
use opjournal_journal::verify::{Integrity, verify};
use opjournal_journal::vfs::os::OsVfs;
use opjournal_journal::{LookupKey, Reader};
use protocol::ids::{Epoch, InstanceId, JournalId, Seq};

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/golden/journal_v1")
}

fn files(dir: &Path, prefix: &str) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).expect("names") {
        let entry = entry.expect("a name");
        let name = format!("{prefix}{}", entry.file_name().to_str().expect("a name"));
        if entry.file_type().expect("a type").is_dir() {
            found.extend(files(&entry.path(), &format!("{name}/")));
        } else {
            found.push((name, std::fs::read(entry.path()).expect("bytes")));
        }
    }
    found.sort();
    found
}

#[test]
fn the_same_drafts_still_give_the_same_bytes() {
    let dir = tempfile::tempdir().expect("a directory");
    make_golden::write(dir.path());
    let (ours, want) = (files(dir.path(), ""), files(&golden(), ""));
    let names = |files: &[(String, Vec<u8>)]| files.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
    assert_eq!(names(&ours), names(&want));
    for ((name, ours), (_, want)) in ours.iter().zip(&want) {
        let first = ours.iter().zip(want).position(|(one, other)| one != other);
        assert_eq!((first, ours.len()), (None, want.len()), "{name}: the first byte that differs");
    }
}

#[test]
fn the_golden_journal_is_read_record_by_record() {
    let verdict = verify(&OsVfs, &golden(), make_golden::BOOT, &mut |_, _| {}).expect("a verdict");
    assert_eq!((verdict.integrity, verdict.segments), (Integrity::Intact, 2), "{:?}", verdict.findings);
    let reader = Reader::open(Arc::new(OsVfs), &golden(), make_golden::BOOT).expect("a reader");
    let info = reader.info().expect("info");
    assert_eq!((info.journal_id, info.confirmed, info.epoch), (JournalId([0x17; 16]), true, Epoch(2)));
    assert_eq!((info.chain, info.next_seq), (verdict.head, verdict.next_seq));

    let records: Result<Vec<_>, _> = reader.from(Seq(0)).expect("records").collect();
    let records = records.expect("records");
    let said: Vec<_> = records.iter().filter(|record| record.kind >= 100).collect();
    let mut drafts = make_golden::drafts().concat();
    drafts.push(drafts[0].clone());
    assert_eq!(said.len(), drafts.len());
    for (record, mut draft) in said.into_iter().zip(drafts) {
        draft.keys.sort_unstable();
        assert_eq!(
            (record.kind, record.version, record.optional),
            (draft.kind, draft.version, draft.optional)
        );
        assert_eq!((record.time, &record.keys, &record.payload), (draft.time, &draft.keys, &draft.payload));
        assert_eq!(record.producer, InstanceId([0xa1; 16]));
        assert_eq!(reader.read(record.seq).as_ref(), Ok(record));
        for key in &record.keys {
            assert_eq!(reader.lookup(key), Ok(vec![record.seq]));
        }
    }
    let own: Vec<_> =
        records.iter().filter(|record| record.kind < 100).map(|record| record.payload.clone()).collect();
    assert_eq!(decode(&own[0]), Ok(EpochStarted { epoch: Epoch(1), reason: EpochReason::Created }));
    assert_eq!(decode(&own[1]), Ok(EpochStarted { epoch: Epoch(2), reason: EpochReason::OtherBoot }));
    let cut: TailCut = decode(&own[2]).expect("a cut");
    assert_eq!((cut.segment, cut.bytes, cut.finding), (1, 31, CutFinding::Torn));
    assert_eq!(own.len(), 3);
    assert_eq!(encode(&cut).as_ref(), Ok(&own[2]));
    assert_eq!(reader.lookup(&LookupKey::new(0, b"nobody said this")), Ok(vec![]));
}
