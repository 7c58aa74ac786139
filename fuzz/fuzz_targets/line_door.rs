//! See `jungle_referee_fuzz::line_door`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| jungle_referee_fuzz::line_door(data));
