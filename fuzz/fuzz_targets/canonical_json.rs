#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| opjournal_tests::fuzzing::canonical_json(bytes).expect("the rules hold"));
