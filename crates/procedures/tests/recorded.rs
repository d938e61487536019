//! Learning from recorded runs at the practice sites.

#![expect(clippy::unwrap_used, reason = "these are tests, helpers included")]

use gyrus_contract::{ActionVerdict, ElementState, View};
use gyrus_procedures::{
    AnchorMiss, NotLearned, Procedure, RecordedRun, ReplaySight, SlotValues, learn,
};

fn recorded(name: &str) -> RecordedRun {
    let path = format!("{}/tests/runs/{name}.json", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn learned_values(procedure: &Procedure) -> SlotValues {
    SlotValues(
        procedure
            .slots
            .iter()
            .map(|slot| slot.learned.clone())
            .collect(),
    )
}

/// Checks what stands before a step of a learned run, on its page after `change`.
fn before(
    name: &str,
    step: usize,
    values: &[&str],
    change: impl Fn(&mut View),
) -> Result<(), String> {
    let run = recorded(name);
    let procedure = learn(&run).unwrap();
    let seen = run.steps.iter().filter(|step| step.call.tool != "open_url");
    let mut view = seen.skip(step).find_map(|step| step.view.clone()).unwrap();
    change(&mut view);
    let mut given = learned_values(&procedure);
    for (at, value) in values
        .iter()
        .enumerate()
        .filter(|(_, value)| !value.is_empty())
    {
        given.0[at] = (*value).to_owned();
    }
    let sight = ReplaySight {
        view: &view,
        start: match &procedure.place {
            gyrus_procedures::LearnedPlace::Site { start, .. } => start,
            gyrus_procedures::LearnedPlace::Desktop { .. }
            | gyrus_procedures::LearnedPlace::Folder { .. } => "",
        },
        slots: &procedure.slots,
        values: &given,
    };
    let step = &procedure.steps[step];
    for condition in &step.before {
        condition.check(&sight)?;
    }
    for (_, anchor) in &step.targets {
        anchor
            .find(&sight)
            .map_err(|miss: AnchorMiss| miss.to_string())?;
    }
    Ok(())
}

fn rename(view: &mut View, from: &str, to: &str) {
    for element in view
        .elements
        .iter_mut()
        .filter(|element| element.name == from)
    {
        element.name = to.to_owned();
    }
}

#[test]
fn the_runs_at_the_practice_sites_are_learned() {
    for (name, command, steps, commits) in [
        (
            "shop",
            "Order {1} of the {2} for {3} in {4}, {5}, {6}.",
            9,
            2,
        ),
        (
            "wizard",
            "Book a train from {1} to {2} on {3} at {4} for {5}.",
            9,
            4,
        ),
        (
            "mail",
            "Send a mail to {1} with the subject \"{2}\" that says \"{3}\".",
            5,
            1,
        ),
        (
            "calendar",
            "Enter an appointment \"{1}\" on {2} at {3}.",
            5,
            1,
        ),
        ("settings", "Set the port of the network to {1}.", 4, 1),
    ] {
        let procedure = learn(&recorded(name)).unwrap();
        assert_eq!(procedure.command.to_string(), command);
        assert_eq!(procedure.steps.len(), steps, "{name}");
        let binding = procedure.steps.iter().filter(|step| step.commits).count();
        assert_eq!(binding, commits, "{name}");
        assert!(procedure.steps[steps - 1].commits, "{name}");
        for step in 0..steps {
            assert_eq!(before(name, step, &[], |_| {}), Ok(()), "{name} {step}");
        }
        let text = serde_json::to_string(&procedure).unwrap();
        assert_eq!(serde_json::from_str::<Procedure>(&text).unwrap(), procedure);
    }
}

#[test]
fn what_a_run_took_from_a_page_is_not_learned() {
    let mut run = recorded("shop");
    run.command =
        "Order 2 of the cheapest lamp for Ada Lovelace in 12 Row, London, France.".to_owned();
    let derived = |value: &str| {
        Err(NotLearned::Derived {
            value: value.to_owned(),
        })
    };
    assert_eq!(learn(&run).map(drop), derived("Brass desk lamp"));
    let mut run = recorded("mail");
    run.command = "Tell Mary about \"Tea on Friday\": \"Four o'clock, as ever.\"".to_owned();
    assert_eq!(learn(&run).map(drop), derived("mary@example.org"));
}

#[test]
fn a_field_that_was_filled_in_twice_and_an_action_without_effect_are_left_out() {
    let mut run = recorded("mail");
    let mut twice = run.steps[2].clone();
    twice.call.arguments["text"] = "alan@example.org".into();
    run.steps.insert(2, twice);
    let mut nothing = run.steps[1].clone();
    nothing.observation.verdict = ActionVerdict::NoEffect;
    run.steps.insert(1, nothing);
    assert_eq!(learn(&run), learn(&recorded("mail")));
}

#[test]
fn small_changes_of_a_page_do_not_matter() {
    let moved = |view: &mut View| {
        for bounds in view.elements.iter_mut().filter_map(|it| it.bounds.as_mut()) {
            bounds.x += 137;
            bounds.y += 71;
        }
    };
    assert_eq!(before("shop", 8, &[], moved), Ok(()));
    // A name that pages use for the same thing.
    assert_eq!(
        before("shop", 8, &[], |view| rename(
            view,
            "Place order",
            "Buy now"
        )),
        Ok(())
    );
    assert_eq!(
        before("shop", 5, &[], |view| rename(view, "City", "Ort")),
        Ok(())
    );
    // Choices that nothing else offers.
    assert_eq!(
        before("shop", 7, &[], |view| rename(view, "Country", "Ship to")),
        Ok(())
    );
}

#[test]
fn whatever_is_not_certain_is_not_done() {
    let differs = |name, step, change: &dyn Fn(&mut View), expected: &str| {
        let found = before(name, step, &[], change);
        assert!(
            found.as_ref().is_err_and(|why| why.contains(expected)),
            "{name} {step}: {found:?}"
        );
    };
    let order = |change: &dyn Fn(&mut View), expected| differs("shop", 8, change, expected);
    for to in [
        "Delete account",
        "Cancel",
        "Konto löschen",
        "Save draft",
        "Back",
        "Order 10",
        "Order everything",
        "Order and subscribe",
        "Place order 2",
        // What binds somebody is not told by being the only button.
        "Go ahead",
    ] {
        order(
            &|view| rename(view, "Place order", to),
            "button “Place order” is not there",
        );
    }
    order(
        &|view| rename(view, "2 × Brass desk lamp", "12 × Brass desk lamp"),
        "2 × Brass desk lamp",
    );
    order(
        &|view| rename(view, "€178.00", "€198.00"),
        "the amounts €178.00",
    );
    order(
        &|view| {
            let country = view
                .elements
                .iter_mut()
                .find(|it| it.name == "Country")
                .unwrap();
            country.value = Some("Austria".to_owned());
        },
        "France",
    );
    order(
        &|view| {
            let note = view
                .elements
                .iter_mut()
                .find(|it| it.name.starts_with("A note"))
                .unwrap();
            note.value = Some("and ten gift cards".to_owned());
        },
        "ten gift cards",
    );
    // A second button, a second field, a field less.
    let twice = |name: &'static str| {
        move |view: &mut View| {
            let at = view.elements.iter().position(|it| it.name == name).unwrap();
            let mut copy = view.elements[at].clone();
            copy.id.number += 1_000;
            view.elements.insert(at, copy);
        }
    };
    order(&twice("Place order"), "any of 2 elements");
    order(&twice("City"), "could be any of 2");
    order(
        &|view| view.elements.retain(|it| !it.name.starts_with("A note")),
        "the fields",
    );
    order(
        &|view| rename(view, "City", "Company"),
        "textbox “City” is not there",
    );
    order(
        &|view| rename(view, "City", "Whereabouts"),
        "textbox “City” is not there",
    );
    order(
        &|view| {
            let button = view
                .elements
                .iter_mut()
                .find(|it| it.name == "Place order")
                .unwrap();
            button.states.insert(ElementState::Disabled);
        },
        "is not there",
    );
    order(&|view| view.address.push_str("?step=2"), "the address");
    // Another price for the same thing, on the list.
    differs(
        "shop",
        0,
        &|view| rename(view, "€89.00", "€99.00"),
        "€89.00",
    );
    // A thing that is called almost the same.
    let found = before("shop", 0, &["", "Brass desk lamps"], |_| {});
    assert!(found.is_err(), "{found:?}");
    // Both towns may be chosen in both lists: only the name tells them apart.
    differs(
        "wizard",
        0,
        &|view| {
            rename(view, "From", "Starting place");
            rename(view, "To", "End");
        },
        "combobox “From” is not there",
    );
}

#[test]
fn of_two_links_of_one_name_the_one_that_leads_there_is_taken() {
    let decoy = |view: &mut View| {
        let at = view
            .elements
            .iter()
            .position(|it| it.role == "link" && it.name == "Brass desk lamp");
        let mut copy = view.elements[at.unwrap()].clone();
        copy.id.number += 1_000;
        copy.address = copy
            .address
            .map(|it| it.replace("brass-desk-lamp", "gift-card"));
        view.elements.insert(at.unwrap(), copy);
    };
    assert_eq!(before("shop", 0, &[], decoy), Ok(()));
    // Other amounts are no reason for another thing.
    assert_eq!(before("shop", 0, &["", "Steel desk lamp"], |_| {}), Ok(()));
}
