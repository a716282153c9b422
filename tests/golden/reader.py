#!/usr/bin/env python3
"""An independent reader of an opjournal journal.

Written from journal/FORMAT.md and protocol/EVENTS.md alone: their tables are parsed and give every layout below, and no
code of opjournal is used. Needs Python 3.9 and `blake3` from PyPI, nothing else.

    reader.py [--dump] [--boot HEX] FOLDER...

For each folder one line of JSON, {"verdict": {...}}. With --dump the records before it, one line each, as EVENTS.md,
"JSON lines", describes them. --boot is the boot id by which the synced mark is judged (32 hex digits; default: this
machine's, where the kernel tells it; `none` judges without). Exit code: 0 if every folder is intact and, with --dump,
understood; 1 if not; 2 if a folder cannot be read.
"""

import argparse
import hashlib
import json
import os
import re
import struct
import sys
from pathlib import Path

from blake3 import blake3

PROJECT = Path(__file__).resolve().parents[2]
BLOCK_MAX = 1 << 20
RECORD_MAX = 256 << 10
KEYS_MAX = 15
FIRST_EVENT_KIND = 100


class Document:
    """A Markdown document: the tables under its headings."""

    def __init__(self, path):
        self.sections = {}
        heading = ""
        for line in path.read_text(encoding="utf-8").splitlines():
            if line.startswith("#"):
                heading = line.lstrip("#").strip()
            self.sections.setdefault(heading, []).append(line)

    def tables(self, heading):
        """The tables under a heading, each a list of rows; a row maps column to cell."""
        tables, columns = [], None
        for line in self.sections[heading]:
            if not line.startswith("|"):
                columns = None
                continue
            cells = [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
            if columns is None:
                columns = cells
                tables.append([])
            elif set(line) - set("|-: "):
                tables[-1].append(dict(zip(columns, cells)))
        return tables

    def layout(self, heading):
        """Offset and length of every field with a fixed place."""
        return {
            row["field"]: (int(row["offset"]), int(row["bytes"]))
            for row in self.tables(heading)[0]
            if row["offset"].isdigit() and row["bytes"].isdigit()
        }


FORMAT = Document(PROJECT / "journal/FORMAT.md")
EVENTS = Document(PROJECT / "protocol/EVENTS.md")
HEADER = FORMAT.layout("Segment header")
BLOCK = FORMAT.layout("Block header")
TABLE = {**BLOCK, **FORMAT.layout("Table block")}
RECORD = FORMAT.layout("Record")
MARK = FORMAT.layout("The synced mark")


def size(layout):
    return max(offset + length for offset, length in layout.values())


HEADER_BYTES, BLOCK_BYTES, MARK_BYTES, RECORD_BYTES = size(HEADER), size(BLOCK), size(MARK), size(RECORD)
KEY_BYTES, ENTRY_BYTES = 16, 24
ENTRIES_MAX = (BLOCK_MAX - BLOCK_BYTES) // ENTRY_BYTES


def field(layout, name, data, at=0):
    """A field: bytes longer than eight as they are, else a number."""
    offset, length = layout[name]
    raw = data[at + offset : at + offset + length]
    return raw if length > 8 or name == "magic" else int.from_bytes(raw, "little")


# --- checksums and chain ---------------------------------------------------------------------------------------------


def crc_table():
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = (byte >> 1) ^ 0x82F63B78 if byte & 1 else byte >> 1
        table.append(byte)
    return table


CRC_TABLE = crc_table()


def crc32c(*parts):
    crc = 0xFFFFFFFF
    table = CRC_TABLE
    for part in parts:
        for byte in part:
            crc = table[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    return crc ^ 0xFFFFFFFF


def derive(context, data):
    return blake3(data, derive_key_context="opjournal 2026 v1 " + context).digest()


# --- payloads --------------------------------------------------------------------------------------------------------


class Malformed(Exception):
    """Bytes that are no value of their type."""


class Codec:
    """FORMAT.md, "Payload codec", over the types of EVENTS.md."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, count):
        if count > len(self.data) - self.at:
            raise Malformed("the payload is cut short")
        self.at += count
        return self.data[self.at - count : self.at]

    def number(self, bits):
        first = self.take(1)[0]
        if first < 251:
            return first
        width = {251: 2, 252: 4, 253: 8}.get(first)
        if width is None or width * 8 > bits:
            raise Malformed("a number is wider than its type")
        value = int.from_bytes(self.take(width), "little")
        if value < (251 if width == 2 else 1 << (width * 4)):
            raise Malformed("a number is not in its shortest form")
        return value

    def flag(self):
        value = self.take(1)[0]
        if value > 1:
            raise Malformed("a flag is neither 0 nor 1")
        return value == 1

    def text(self):
        try:
            return self.take(self.number(64)).decode("utf-8")
        except UnicodeDecodeError as error:
            raise Malformed("a text is not UTF-8") from error

    def value(self, of):
        if of.startswith("option of "):
            return self.value(of[len("option of ") :]) if self.flag() else None
        if of.startswith("list of "):
            return [self.value(of[len("list of ") :]) for _ in range(self.number(64))]
        if of == "bool":
            return self.flag()
        if of in ("u16", "u32", "u64"):
            return self.number(int(of[1:]))
        if of == "text":
            return self.text()
        if of in SCALARS:
            stored, prefix = SCALARS[of]
            if stored in ("u64", "text"):
                return self.value(stored)
            return prefix + self.take(int(stored.split()[0])).hex()
        if of in ENUMERATIONS:
            number = self.number(32)
            if number not in ENUMERATIONS[of]:
                raise Malformed(f"{number} is no variant of {of}")
            return ENUMERATIONS[of][number]
        return {name: self.value(of) for name, of in STRUCTURES[of]}

    def whole(self, of):
        value = self.value(of)
        if self.at != len(self.data):
            raise Malformed("bytes follow the payload's end")
        return value


def scalars():
    found = {}
    for row in next(table for table in EVENTS.tables("Reading a payload") if table and table[0].get("type") == "JournalId"):
        prefix = re.match(r"`([^`]*)`", row["in JSON"])
        found[row["type"]] = (row["stored as"], prefix.group(1) if prefix else "")
    return found


def described():
    """Structures and enumerations: every section of EVENTS.md whose table is one."""
    structures, enumerations = {}, {}
    for heading in EVENTS.sections:
        for rows in EVENTS.tables(heading):
            if rows and list(rows[0]) == ["field", "type", "meaning"]:
                structures[heading] = [(row["field"], row["type"]) for row in rows]
            elif rows and list(rows[0]) == ["number", "text", "meaning"]:
                enumerations[heading] = {int(row["number"]): row["text"] for row in rows}
    return structures, enumerations


SCALARS = scalars()
STRUCTURES, ENUMERATIONS = described()
KINDS = {
    (int(row["kind"]), int(row["version"])): (row["name"], row["structure"]) for row in EVENTS.tables("Kinds")[0]
}
LOOKUP = {}
for row in EVENTS.tables("Look-up keys")[0]:
    LOOKUP.setdefault(row["name"], []).append((int(row["class"]), row["field"]))
for row in FORMAT.tables("Kinds of the journal itself")[0]:
    own = f"own {row['name']}"
    STRUCTURES[own] = []
    for name, number, variants in re.findall(r"(\w+): (?:(u32|u64)|enum \{([^}]*)\})", row["fields"]):
        if variants:
            ENUMERATIONS[f"{own} {name}"] = dict(enumerate(text.strip() for text in variants.split(",")))
        STRUCTURES[own].append((name, number or f"{own} {name}"))
    KINDS[(int(row["kind"]), int(row["version"]))] = (row["name"], own)


def lookup_keys(name, fields):
    """The look-up keys that EVENTS.md says a record of these fields has."""
    keys = set()
    for number, member in LOOKUP.get(name, []):
        value = fields[member]
        if value is not None:
            text = bytes.fromhex(value[-32:]) if member == "run" else value.encode("utf-8")
            keys.add(derive("lookup key", bytes([number]) + text)[:KEY_BYTES])
    return sorted(keys)


def canonical(value):
    """RFC 8785, for values without floats."""
    if isinstance(value, dict):
        members = sorted(value.items(), key=lambda item: item[0].encode("utf-16-be"))
        return "{" + ",".join(f"{canonical(name)}:{canonical(member)}" for name, member in members) + "}"
    if isinstance(value, list):
        return "[" + ",".join(canonical(item) for item in value) + "]"
    return json.dumps(value, ensure_ascii=False)


def checkpoint_digest(fields):
    kept = {name: value for name, value in fields.items() if name != "under"}
    return "sha256:" + hashlib.sha256(canonical(kept).encode("utf-8")).hexdigest()


# --- segments --------------------------------------------------------------------------------------------------------


class Fault(Exception):
    """What is wrong at a place. `verified`: the block's checksum, first sequence and chain fit all the same."""

    def __init__(self, offset, reason, verified=False):
        super().__init__(reason)
        self.offset, self.reason, self.verified = offset, reason, verified


class Place:
    """Between two blocks, and what the next one must say."""

    def __init__(self, offset, seq, epoch, synced, chain):
        self.offset, self.seq, self.epoch, self.synced, self.chain = offset, seq, epoch, synced, chain


class Segment:
    """One file."""

    def __init__(self, path):
        self.name = path.name
        self.data = path.read_bytes()
        data = self.data
        if len(data) < HEADER_BYTES:
            raise Fault(0, "the segment header is cut short")
        header = data[:HEADER_BYTES]
        get = lambda name: field(HEADER, name, header)
        if get("magic") != b"OPJSEG\r\n":
            raise Fault(0, "the segment header does not start with the magic of a segment")
        if get("crc") != crc32c(header[: HEADER["crc"][0]]):
            raise Fault(0, "the checksum of the segment header does not fit")
        known = {"major": 1, "header_len": HEADER_BYTES, "incompatible": 0, "checksum_id": 1, "hash_id": 1, "codec_id": 1}
        for name, value in {**known, "zero_a": 0, "zero_b": 0, "zero_c": 0}.items():
            if get(name) != value:
                raise Fault(0, f"newer format: {name}")
        if get("align_log2") not in (3, 9, 12):
            raise Fault(0, "newer format: align_log2")
        self.align = 1 << get("align_log2")
        self.journal, self.number, self.first = get("journal_id"), get("segment"), get("first_seq")
        self.epoch, self.chain = get("epoch"), get("chain")
        self.seed = self.journal + struct.pack("<I", self.number)
        start = -(-HEADER_BYTES // self.align) * self.align
        if len(data) < start:
            raise Fault(0, "the segment header is cut short")
        if any(data[HEADER_BYTES:start]):
            raise Fault(0, "the bytes between the segment header and the first block are not zero")
        if self.name != f"{self.first:020}.seg":
            raise Fault(0, "the file's name and its header name different sequences")
        self.place = Place(start, self.first, self.epoch, self.first, derive("segment header", header))
        self.records_end = self.place
        self.table = "none"
        self.keys, self.compared = [], 0

    def block_at(self, offset):
        """The layout and bytes of a block with a possible length, or why there is none."""
        head = self.data[offset : offset + BLOCK_BYTES]
        if len(head) < BLOCK_BYTES:
            raise Fault(offset, "a block header is cut short")
        layout = {b"OPBK": BLOCK, b"OPTB": TABLE}.get(field(BLOCK, "magic", head))
        if layout is None:
            raise Fault(offset, "there is no block where one must start")
        length = field(BLOCK, "len", head)
        if not BLOCK_BYTES <= length <= BLOCK_MAX or length % self.align:
            raise Fault(offset, "a block's length is out of range")
        block = self.data[offset : offset + length]
        if len(block) < length:
            raise Fault(offset, "a block is cut short")
        return layout, block

    def checksum_fits(self, block):
        at, length = BLOCK["crc"]
        return field(BLOCK, "crc", block) == crc32c(self.seed, block[:at], block[at + length :])

    def step(self):
        """Goes over the block at the current place and gives its records; none at the end."""
        place = self.place
        if not any(self.data[place.offset :]):
            return None
        if self.table == "complete":
            raise Fault(place.offset, "bytes follow the end of a closed segment")
        layout, block = self.block_at(place.offset)
        get = lambda name: field(layout, name, block)

        def wrong(reason):
            return Fault(place.offset, reason, verified=True)

        if not self.checksum_fits(block):
            raise Fault(place.offset, "a block's checksum does not fit")
        if get("first_seq") != place.seq:
            raise Fault(place.offset, "a block's first sequence is not the next one")
        if get("chain") != place.chain:
            raise Fault(place.offset, "a block does not continue the chain")
        if get("epoch") < place.epoch:
            raise wrong("a block's epoch is smaller than the one before")
        if not place.synced <= get("synced") <= get("first_seq"):
            raise wrong("a block's synced sequence is out of range")
        used, count = get("used"), get("count")
        if BLOCK_BYTES + used > len(block):
            raise wrong("a block's counts do not fit its content")
        content = block[BLOCK_BYTES : BLOCK_BYTES + used]
        records = []
        if layout is BLOCK:
            if get("zero") != 0:
                raise wrong("newer format: zero")
            if self.table != "none":
                raise wrong("records follow the key table")
            records = list(split_records(content, place.seq, wrong))
            if len(records) != count or count == 0:
                raise wrong("a block's counts do not fit its content")
            self.keys += [(key, record["seq"]) for record in records for key in record["keys"]]
        else:
            self.check_table(get("last"), count, content, wrong)
        if any(block[BLOCK_BYTES + used :]):
            raise wrong("a block's padding is not zero")
        self.place = Place(
            place.offset + len(block), place.seq + len(records), get("epoch"), get("synced"), derive("block", block)
        )
        if layout is BLOCK:
            self.records_end = self.place
        else:
            self.table = "complete" if get("last") else "begun"
        return records

    def check_table(self, last, count, content, wrong):
        if last > 1:
            raise wrong("newer format: last")
        if len(content) != count * ENTRY_BYTES or (not last and count != ENTRIES_MAX):
            raise wrong("a block's counts do not fit its content")
        if self.table == "none":
            self.keys.sort()
        entries = [
            (content[at : at + KEY_BYTES], int.from_bytes(content[at + KEY_BYTES : at + ENTRY_BYTES], "little"))
            for at in range(0, len(content), ENTRY_BYTES)
        ]
        if entries != self.keys[self.compared : self.compared + count]:
            raise wrong("the key table is not that of the segment's records")
        self.compared += count
        if last and self.compared != len(self.keys):
            raise wrong("the key table is not that of the segment's records")

    def end(self):
        """After the key table if it is whole, else after the last records."""
        return self.place if self.table == "complete" else self.records_end


def split_records(content, seq, wrong):
    at = 0
    while at < len(content):
        if len(content) - at < RECORD_BYTES:
            raise wrong("a record's length is out of range")
        get = lambda name: field(RECORD, name, content, at)
        length, keys = get("len"), get("keys")
        if keys > KEYS_MAX:
            raise wrong("a record's look-up keys are out of range or order")
        start = RECORD_BYTES + keys * KEY_BYTES
        if not start <= length <= min(RECORD_MAX, len(content) - at):
            raise wrong("a record's length is out of range")
        if get("flags") & ~1 or get("zero"):
            raise wrong("newer format: a record's flag")
        found = [content[at + RECORD_BYTES + n * KEY_BYTES :][:KEY_BYTES] for n in range(keys)]
        if any(one >= next_one for one, next_one in zip(found, found[1:])):
            raise wrong("a record's look-up keys are out of range or order")
        yield {
            "seq": seq,
            "kind": get("kind"),
            "version": get("version"),
            "optional": bool(get("flags") & 1),
            "time_ms": get("time_ms"),
            "producer": get("producer"),
            "keys": found,
            "payload": content[at + start : at + length],
        }
        at, seq = at + length, seq + 1


# --- the journal -----------------------------------------------------------------------------------------------------


class Mark:
    """The synced mark, as far as this boot may believe it."""

    def __init__(self, folder, boot):
        path = folder / "lock"
        data = path.read_bytes() if path.exists() else b""
        self.state, self.position, self.readable = None, None, True
        if not data:
            return
        get = lambda name: field(MARK, name, data)
        self.readable = (
            len(data) == MARK_BYTES
            and get("magic") == b"OPJMARK1"
            and get("crc") == crc32c(data[: MARK["crc"][0]])
            and get("state") in (1, 2)
            and not get("zero_a")
            and not get("zero_b")
        )
        if self.readable and get("boot_id") == boot:
            self.state = {1: "clean", 2: "dirty"}[get("state")]
            self.position = (get("segment"), get("offset"), get("next_seq"), get("chain"), get("epoch"))

    def beyond(self, seq):
        return self.position is not None and self.position[2] > seq


class Journal:
    """One folder: what can be read, and everything that is not as it should be."""

    def __init__(self, folder, boot, dump):
        self.folder, self.boot, self.dump = folder, boot, dump
        self.findings, self.unknown, self.records, self.seq = [], [], 0, 0
        self.lineage, self.broken, self.checkpoints = {}, [], 0

    def find(self, verdict, file, offset, reason, first_lost=None):
        finding = {"verdict": verdict, "file": file, "offset": offset, "reason": reason}
        if first_lost is not None:
            finding["first_lost"] = first_lost
        self.findings.append(finding)

    def read(self):
        mark = Mark(self.folder, self.boot)
        names = sorted(name for name in os.listdir(self.folder) if re.fullmatch(r"[0-9]{20}\.seg", name))
        if not names:
            if not mark.beyond(0):
                raise FileNotFoundError("there is no journal here")
            self.find("damaged", f"{0:020}.seg", 0, "there is no segment although the synced mark says so", 0)
        if not mark.readable:
            self.find("intact", "lock", 0, "the synced mark is not readable")
        before = None
        for number, name in enumerate(names):
            before = self.segment(number, name, before, number + 1 == len(names), mark)
        return self

    def segment(self, number, name, before, last, mark):
        """Reads a segment. `before` is the one before, with whether it was read to its end; none if its header is bad."""
        try:
            segment = Segment(self.folder / name)
            self.check_place(number, segment, before)
        except Fault as fault:
            self.find("damaged", name, fault.offset, fault.reason, int(name[:20]))
            return None
        fault = None
        try:
            while (records := segment.step()) is not None:
                self.tell(name, records)
        except Fault as stopped:
            fault = stopped
        self.seq = segment.place.seq
        if last:
            self.judge(segment, fault, mark)
            return segment, True
        if fault is None and segment.table != "complete":
            fault = Fault(segment.place.offset, "the segment ends without its key table")
        elif fault is None and segment.place.offset != len(segment.data):
            fault = Fault(segment.place.offset, "bytes follow the end of a closed segment")
        if fault is not None:
            self.find("damaged", name, fault.offset, fault.reason, segment.place.seq)
        return segment, fault is None

    @staticmethod
    def check_place(number, segment, before):
        if segment.number != number:
            raise Fault(0, "the segment before this one is missing")
        if number == 0:
            if segment.chain != derive("journal root", segment.journal) or segment.first != 0:
                raise Fault(0, "the segment does not begin its journal")
        elif before is not None:
            previous, whole = before
            if (segment.journal, segment.align) != (previous.journal, previous.align):
                raise Fault(0, "the segment is of another journal")
            if segment.first <= previous.first or segment.epoch < previous.epoch:
                raise Fault(0, "the segment does not continue the one before")
            end = previous.place
            if whole and (segment.chain != end.chain or segment.first != end.seq or segment.epoch < end.epoch):
                raise Fault(0, "the segment does not continue the one before")

    def judge(self, segment, fault, mark):
        """FORMAT.md, "Recovery", for the end of the last segment."""
        end = segment.end()
        if mark.beyond(end.seq):
            reason = fault.reason if fault else "the journal ends before what the synced mark says was synced"
            return self.find("damaged", segment.name, end.offset, reason, end.seq)
        exact = (segment.number, end.offset, end.seq, end.chain, end.epoch)
        if fault is not None and fault.verified:
            return self.find("damaged", segment.name, segment.place.offset, fault.reason, end.seq)
        if fault is not None or segment.table == "begun":
            if self.later_block_proves_loss(segment, end):
                reason = fault.reason if fault else "the key table does not end"
                return self.find("damaged", segment.name, end.offset, reason, end.seq)
            if mark.state == "clean" and mark.position == exact:
                self.find("torn_tail", segment.name, end.offset, "stray bytes after everything that was acknowledged")
            elif segment.table == "none" and self.resembles(segment, end):
                reason = "a block that is not whole; nothing says whether it was ever acknowledged"
                self.find("cannot_tell", segment.name, end.offset, reason, end.seq)
            else:
                self.find("torn_tail", segment.name, end.offset, "a write that did not end")
        if mark.state == "clean" and mark.position != exact:
            self.find("intact", "lock", 0, "the synced mark speaks of another place than the end of the journal")
        return None

    @staticmethod
    def later_block_proves_loss(segment, end):
        for offset in range(end.offset, len(segment.data), segment.align):
            try:
                _, block = segment.block_at(offset)
            except Fault:
                continue
            if field(BLOCK, "synced", block) > end.seq and segment.checksum_fits(block):
                return True
        return False

    @staticmethod
    def resembles(segment, end):
        head = segment.data[end.offset : end.offset + BLOCK_BYTES]
        if len(head) < BLOCK_BYTES:
            return False
        fits = (
            field(BLOCK, "magic", head) in (b"OPBK", b"OPTB"),
            field(BLOCK, "first_seq", head) == end.seq,
            field(BLOCK, "chain", head) == end.chain,
        )
        return sum(fits) >= 2

    def tell(self, file, records):
        for record in records:
            self.records += 1
            line = self.line(file, record)
            if self.dump and line is not None:
                print(json.dumps(line, ensure_ascii=False, separators=(",", ":")))

    def line(self, file, record):
        name, of = KINDS.get((record["kind"], record["version"]), (None, None))
        line = {
            "seq": record["seq"],
            "time_ms": record["time_ms"],
            "producer": SCALARS["InstanceId"][1] + record["producer"].hex(),
            "kind": record["kind"],
            "name": name,
            "version": record["version"],
            "fields": None,
        }
        if name is None:
            if not record["optional"]:
                self.unknown.append(record["seq"])
                return None
            line["payload"] = record["payload"].hex()
            return line
        try:
            line["fields"] = Codec(record["payload"]).whole(of)
        except Malformed as malformed:
            self.find("damaged", file, 0, f"record {record['seq']}: {malformed}", record["seq"])
            return None
        if record["kind"] >= FIRST_EVENT_KIND and lookup_keys(name, line["fields"]) != record["keys"]:
            self.find("damaged", file, 0, f"record {record['seq']}: its look-up keys are not those of its fields")
        if name == "checkpoint":
            self.follow(record["seq"], line["fields"])
        return line

    def follow(self, seq, fields):
        """The lineage: each checkpoint of a run names the digest of the one before."""
        self.checkpoints += 1
        if fields["parent"] != self.lineage.get(fields["run"]):
            self.broken.append(seq)
        self.lineage[fields["run"]] = checkpoint_digest(fields)

    def verdict(self):
        order = ("damaged", "cannot_tell", "torn_tail", "intact")
        worst = min((order.index(finding["verdict"]) for finding in self.findings), default=3)
        return {
            "folder": str(self.folder),
            "verdict": order[worst],
            "records": self.records,
            "next_seq": self.seq,
            "findings": self.findings,
            "not_understood": self.unknown,
            "checkpoints": self.checkpoints,
            "lineage_broken_at": self.broken,
        }


def boot_id(given):
    if given == "none":
        return None
    if given is not None:
        return bytes.fromhex(given)
    try:
        text = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii")
    except OSError:
        return None
    return bytes.fromhex(text.strip().replace("-", ""))


def main():
    parser = argparse.ArgumentParser(description="Reads and verifies journals, independently of opjournal.")
    parser.add_argument("--dump", action="store_true", help="print every record as a line of JSON")
    parser.add_argument("--boot", help="boot id that the synced mark is judged by: 32 hex digits, or none")
    parser.add_argument("folder", nargs="+", type=Path, help="folder with segments")
    args = parser.parse_args()
    assert crc32c(b"123456789") == 0xE3069283, "the check value of FORMAT.md"
    sys.stdout.reconfigure(encoding="utf-8")
    code = 0
    for folder in args.folder:
        try:
            verdict = Journal(folder, boot_id(args.boot), args.dump).read().verdict()
        except OSError as error:
            print(json.dumps({"verdict": {"folder": str(folder), "verdict": "unreadable", "reason": str(error)}}))
            code = 2
            continue
        print(json.dumps({"verdict": verdict}, ensure_ascii=False))
        if verdict["verdict"] != "intact" or (args.dump and verdict["not_understood"]):
            code = max(code, 1)
        for finding in verdict["findings"]:
            print(f"{folder}/{finding['file']} at byte {finding['offset']}: {finding['reason']}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
