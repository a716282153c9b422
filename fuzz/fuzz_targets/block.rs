#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| opjournal_tests::fuzzing::block(bytes).expect("the rules hold"));
