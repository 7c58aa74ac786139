//! See `jungle_referee_fuzz::position_text`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| jungle_referee_fuzz::position_text(data));
