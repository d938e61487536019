use gyrus_contract::{ActionVerdict, BlobId};

use super::{
    super::{
        samples,
        state::{ActionLine, ActionOutput},
    },
    *,
};

/// Number of tokens of a picture of 1280 by 800 at a provider that counts squares of 28 pixels,
/// which is the most expensive.
const PICTURE: usize = 46 * 29;

const GOAL: &str = "The goal:\nFind the cheapest brass lamp that is in stock and put two of them \
                    into the cart. Do not order.";

/// Returns the state of a run in progress.
fn state() -> ReactiveState {
    let mut state = ReactiveState::default();
    state
        .memo
        .change("cheapest", "Lamp 1 of brass, 13,00 EUR, in stock");
    state.memo.change("cart", "had 2 things in it before");
    for (cycle, action) in [
        (1, "gyrus: open_url \"https://shop.test/\""),
        (1, "click b12 \"Lamps\""),
        (2, "select_option on b30 \"Sort by\" option \"Price\""),
        (3, "scroll \"down\" pages 1"),
        (4, "click b41 \"Add to cart\""),
        (5, "click b41 \"Add to cart\""),
    ] {
        state.log.add(ActionLine {
            cycle,
            action: action.to_owned(),
            verdict: ActionVerdict::Changed,
            note: String::new(),
        });
    }
    state.expects = "The cart shows 4".to_owned();
    state
}

fn image() -> Image {
    Image {
        blob: BlobId::of(b"a picture"),
        media_type: "image/jpeg".to_owned(),
        width: 1280,
        height: 800,
    }
}

fn size(view: &View, picture: bool) -> usize {
    let image = image();
    let message = turn(
        &state(),
        None,
        GOAL,
        ScreenInTurn::View(view, picture.then_some(&image)),
    );
    tokens(GOAL) + tokens(&message.text()) + if picture { PICTURE } else { 0 }
}

#[test]
fn a_turn_costs_what_it_should() {
    let views = [
        samples::form(),
        samples::shop(),
        samples::article(),
        samples::table(),
        samples::board(),
    ];
    let mut sizes: Vec<_> = views
        .iter()
        .map(|view| (size(view, false), size(view, true)))
        .collect();
    sizes.sort_unstable();
    let tree = sizes[sizes.len() / 2].0;
    let mut seen: Vec<_> = sizes.iter().map(|(_, seen)| *seen).collect();
    seen.sort_unstable();
    assert!(tree <= 1_000, "{sizes:?}");
    assert!(seen[seen.len() / 2] <= 1_650, "{sizes:?}");
}

#[test]
fn the_parts_stand_in_their_order() {
    let mut state = state();
    state.output = Some(ActionOutput {
        tool: "find".to_owned(),
        text: "nothing".to_owned(),
    });
    let message = turn(
        &state,
        Some("Do something else."),
        GOAL,
        ScreenInTurn::View(&samples::form(), None),
    );
    let text = message.text();
    let sections: Vec<_> = text
        .lines()
        .filter(|line| line.starts_with("==="))
        .collect();
    assert_eq!(
        sections,
        [
            "=== your memo ===",
            "=== your last actions ===",
            "=== `find` returned (data) ===",
            "=== mind ===",
            "=== the screen (data) ===",
            "=== end of the screen ===",
        ]
    );
    let untrusted = message.parts.iter().filter(|part| match part {
        Part::Text(text) => !text.origin.is_trusted(),
        _ => false,
    });
    assert_eq!(untrusted.count(), 4);
}

#[test]
fn a_picture_is_sent_where_it_helps() {
    let mut view = samples::form();
    let mut state = ReactiveState::default();
    let sends = |state: &ReactiveState, view: &View| {
        [
            PerceptionMode::Tree,
            PerceptionMode::Auto,
            PerceptionMode::Vision,
        ]
        .map(|mode| sends_picture(mode, state, view))
    };
    assert_eq!(sends(&state, &view), [false; 3], "there is none");
    view.frame = Some(image());
    assert_eq!(sends(&state, &view), [false, false, true]);
    state.last.had_no_effect = true;
    assert_eq!(sends(&state, &view), [false, true, true]);
    let mut board = samples::board();
    board.frame = Some(image());
    assert_eq!(
        sends(&ReactiveState::default(), &board),
        [false, true, true]
    );
}

#[test]
fn the_token_stands_in_the_instructions_only() {
    let actions: Vec<_> = super::super::actions::ACTIONS.iter().collect();
    let system = system(&CognitiveConfig::reactive(), &actions, "12ab 34cd");
    let with_token = system.iter().filter(|part| part.text.contains("12ab 34cd"));
    assert_eq!(with_token.count(), 1);
    let words = &system[0].text;
    assert!(
        words.contains("- click {on|at,") && !words.contains("{{actions}}"),
        "{words}"
    );
    assert!(tokens(words) < 1_200, "{}", tokens(words));
}
