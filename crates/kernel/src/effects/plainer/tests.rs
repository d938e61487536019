use Simplification::{
    CallsInText, FewParameters, NoPictures, NoThinking, PlainSchemas, SmallerPictures, UnboundReply,
};

use super::*;

fn features(pictures: &[&str], tools: &[&str]) -> Features {
    Features {
        pictures: pictures
            .iter()
            .map(|it| BlobId::of(it.as_bytes()))
            .collect(),
        tools: tools.iter().map(|&it| it.to_owned()).collect(),
        ..Features::default()
    }
}

fn without(step: Simplification) -> Option<Remedy> {
    Some(Remedy::Without(step))
}

#[test]
fn the_words_of_a_server_name_what_is_left_out() {
    let mut sent = features(&["a"], &["shell"]);
    sent.has_thinking = true;
    sent.is_bound = true;
    let none = Plainness::default();
    let said = |words| remedy(&sent, &none, None, words);
    for (words, expected) in [
        (
            "image input is not supported - hint: you may need the mmproj",
            without(NoPictures),
        ),
        (
            "No endpoints found that support image input",
            without(NoPictures),
        ),
        ("image exceeds 5 MB maximum", without(SmallerPictures)),
        (
            "messages.1.content.0: Invalid `signature` in `thinking` block",
            without(NoThinking),
        ),
        (
            "Invalid schema for function 'x': anyOf is not permitted",
            without(PlainSchemas),
        ),
        (
            "tool_choice 'required' is not supported by this model",
            without(UnboundReply),
        ),
        (
            "Unrecognized request argument supplied: stream_options",
            without(FewParameters),
        ),
        ("qwen:0.5b does not support tools", without(CallsInText)),
        ("The model `gpt-9` does not exist", None),
    ] {
        let expected = match expected {
            Some(Remedy::Without(NoPictures)) if !is_about_eyes(&words.to_lowercase()) => {
                Some(Remedy::WithoutPictures(sent.pictures.clone()))
            }
            other => other,
        };
        assert_eq!(said(words), expected, "{words}");
    }
}

#[test]
fn without_such_words_each_step_is_taken_once_until_nothing_is_left() {
    let mut sent = features(&["a"], &["shell"]);
    sent.has_thinking = true;
    sent.is_bound = true;
    let mut left_out = Plainness::default();
    let mut taken = Vec::new();
    while let Some(remedy) = remedy(&sent, &left_out, None, "Bad Request (HTTP 400)") {
        match remedy {
            Remedy::Without(step) => {
                assert!(left_out.steps.insert(step), "{step:?} twice");
                taken.push(step);
            }
            Remedy::WithoutPictures(pictures) => {
                assert!(left_out.pictures.is_empty());
                left_out.pictures = pictures;
                sent.pictures.clear();
            }
            Remedy::Compact => panic!("nothing to summarise"),
        }
        match taken.last() {
            Some(NoThinking) => sent.has_thinking = false,
            Some(UnboundReply) => sent.is_bound = false,
            _ => {}
        }
    }
    assert_eq!(
        taken,
        [
            NoThinking,
            PlainSchemas,
            UnboundReply,
            FewParameters,
            CallsInText
        ]
    );
}

#[test]
fn only_what_is_new_is_left_out() {
    let accepted = features(&["a"], &["shell"]);
    let none = Plainness::default();
    let mut sent = features(&["a", "b"], &["shell"]);
    let words = "Bad Request (HTTP 400)";
    let new = BTreeSet::from([BlobId::of(b"b")]);
    assert_eq!(
        remedy(&sent, &none, Some(&accepted), words),
        Some(Remedy::WithoutPictures(new))
    );
    // The same request was accepted before: it is not the reason.
    sent = features(&["a"], &["shell"]);
    assert_eq!(remedy(&sent, &none, Some(&accepted), words), None);
    // It is only longer.
    sent.bytes = 2 * WORTH_A_SUMMARY;
    assert_eq!(
        remedy(&sent, &none, Some(&accepted), words),
        Some(Remedy::Compact)
    );
    assert_eq!(
        remedy(&sent, &none, None, "input is too long for requested model"),
        Some(Remedy::Compact)
    );
}
