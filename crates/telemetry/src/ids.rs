//! Ids of traces and spans. They follow from the journal alone, so exporting a run twice, or from
//! two processes, gives the same ids.

use gyrus_contract::{Digest, EffectId, RunId};

pub(crate) type SpanId = [u8; 8];

/// Returns the id of the trace of the runs below `root`, itself included: its own 16 bytes.
pub(crate) fn trace_id(root: RunId) -> Vec<u8> {
    let digits = root.to_string().replace('-', "");
    digits
        .parse::<Digest>()
        .map(|id| id.as_bytes().to_vec())
        .expect("a run id has 32 hexadecimal digits")
}

/// Returns the id of the span of a run that begins with the entry `seq`; `role` tells the spans
/// that begin with one entry apart.
pub(crate) fn span_id(run: RunId, role: &str, seq: u64) -> SpanId {
    hashed(&format!("{run} {role} {seq}"))
}

/// Returns the id of the span during which `effect` of `run` waits for a child run.
pub(crate) fn child_span_id(run: RunId, effect: &EffectId) -> SpanId {
    hashed(&format!("{run} child {effect}"))
}

/// Returns the id of the first span of a run, the ancestor of all its other spans.
pub(crate) fn first_span_id(run: RunId) -> SpanId {
    span_id(run, "run", 1)
}

fn hashed(text: &str) -> SpanId {
    let mut id = [0; 8];
    id.copy_from_slice(&Digest::of(text.as_bytes()).as_bytes()[..8]);
    // The format reserves the id of zeros.
    id[7] |= u8::from(id == [0; 8]);
    id
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_never_change() {
        let run: RunId = "01a209d7-58ec-7388-beb6-0c0ecdda0614".parse().unwrap();
        assert_eq!(trace_id(run)[..4], [0x01, 0xa2, 0x09, 0xd7]);
        assert_eq!(trace_id(run).len(), 16);
        // A backend that has half of a run gets the other half from a later version.
        let ids = [first_span_id(run), span_id(run, "tool", 9)];
        assert_eq!(
            format!("{ids:02x?}"),
            "[[1b, 35, 5d, bf, d5, 37, f4, 5e], [5c, 24, d7, ea, 98, 33, 60, 8f]]"
        );
    }
}
