//! A sample of the sweep, and cuts at every byte.

use gyrus_contract::{Reply, StopReason};
use gyrus_models::SPECIMENS;

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
fn a_stream_cut_at_any_byte_is_a_beginning_of_its_reply() {
    for specimen in SPECIMENS {
        let stream = specimen.stream.as_bytes();
        assert_eq!(judge(specimen, stream, &[1]), Ok(true), "{}", specimen.name);
        let read = |length: usize| (specimen.read)(&mut std::iter::once(&stream[..length]));
        let whole = read(stream.len()).unwrap();
        let calls = |reply: &Reply| -> Vec<_> {
            let calls = reply.tool_calls();
            let calls = calls.map(|call| (call.tool.clone(), call.arguments.clone()));
            calls.collect()
        };
        for length in 0..stream.len() {
            let Ok(reply) = read(length) else {
                continue;
            };
            let place = format!("{} at {length}: {reply:?}", specimen.name);
            let mut calls_so_far = calls(&reply);
            // Arguments that are cut off are not those of a call that can be carried out.
            let cut = calls_so_far.pop_if(|(_, arguments)| arguments.is_string());
            assert!(
                cut.is_none() || reply.stop == StopReason::MaxTokens,
                "{place}"
            );
            assert!(whole.text().starts_with(&reply.text()), "{place}");
            assert!(calls(&whole).starts_with(&calls_so_far), "{place}");
        }
    }
}
