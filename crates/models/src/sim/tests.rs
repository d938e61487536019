//! A sample of the sweep, and cuts at every byte.

use super::{oracle::judge, *};

/// About a second of the unoptimised readers.
const SAMPLE_BYTES: u64 = 4_000_000;

#[test]
fn broken_streams_are_replies_or_errors() {
    let done = sweep(SAMPLE_BYTES, 1).unwrap_or_else(|failure| panic!("{failure}"));
    // A sweep that breaks all streams, or none, proves nothing.
    assert!(done.accepted > done.streams / 50, "{done}");
    assert!(done.refused > done.streams / 50, "{done}");
}

#[test]
fn a_stream_cut_at_any_byte_is_no_call() {
    for specimen in specimens() {
        let stream = specimen.stream.as_bytes();
        assert_eq!(judge(specimen, stream, &[1]), Ok(true), "{}", specimen.name);
        for length in 0..stream.len() {
            let reply = (specimen.read)(&mut std::iter::once(&stream[..length]));
            // Some protocols have no data after the marker that closes a reply.
            let has_closed = length * 10 > stream.len() * 8;
            if reply.is_ok() {
                assert!(has_closed, "{} at {length}: {reply:?}", specimen.name);
            }
        }
    }
}
