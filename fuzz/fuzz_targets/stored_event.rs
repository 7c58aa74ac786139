//! See `jungle_referee_fuzz::stored_event`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| jungle_referee_fuzz::stored_event(data));
