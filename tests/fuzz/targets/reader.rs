//! Any bytes as a recording.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    observer::stream::hostile::take(bytes);
});
