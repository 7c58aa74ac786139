//! See `jungle_referee_fuzz::game_commands`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| jungle_referee_fuzz::game_commands(data));
