//! Skills, through the whole program.

use std::fs;

use gyrus_contract::{Origin, Part};
use gyrus_kernel::{Entry, Inline, log_name};

use crate::support::{Said, World};

/// Finishes at once.
const FINISHES: &str = r#"
[[reply]]
calls = [{ tool = "finish", arguments = { reached = true, answer = "Done." } }]
"#;

/// A skill of the single-file form.
const TWEET: &str = "# SKILL: warble\n\n## Description\nPost a warble.\n\n## Triggers\n- `(?i)\\bwarble\\b`\n\n## Steps\nSay it kindly.\n\n## MaxIterations\n7\n";

/// Runs for a goal, with everything allowed in the working folder.
fn run(world: &World, goal: &str, more: &[&str]) -> Said {
    let arguments = ["run", goal, "--workdir", ".", "--approve", "auto"];
    world.gyrus(&[&arguments, more].concat())
}

/// Returns names and texts of the skills that the run got, and its limit of steps.
fn got(world: &World) -> (Vec<(String, String)>, Option<u64>) {
    // The names of runs are in the order of time.
    let last = *world.runs().iter().max().unwrap();
    let first = world
        .store()
        .reader(&log_name(last))
        .unwrap()
        .entry(1)
        .unwrap();
    let Entry::RunStarted(started) = gyrus_kernel::parse(&first.unwrap()).unwrap() else {
        panic!("a run begins with its start");
    };
    let texts = started.context.iter().filter_map(|part| match part {
        Inline::Is(Part::Text(text)) => Some(text),
        _ => None,
    });
    let skills = texts.filter_map(|text| match &text.origin {
        Origin::Skill { name, .. } => Some((name.clone(), text.text.clone())),
        _ => None,
    });
    (skills.collect(), started.settings.limits.steps)
}

fn with_skill(folder: &str) -> World {
    let world = World::new(&FINISHES.repeat(4));
    let folder = world.path(folder);
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("warble.md"), TWEET).unwrap();
    world
}

#[test]
fn a_goal_loads_the_skill_that_its_words_name_and_says_why() {
    let world = with_skill("home/skills");
    let said = run(&world, "warble hello to everybody", &[]).exits(0);
    assert!(
        said.err.contains(
            "skill `warble`, yours: \"warble\" matches its trigger `(?i)\\bwarble\\b`, \
             and its description says warble; leave it out with --no-skill warble"
        ),
        "{said:#?}"
    );
    let (skills, steps) = got(&world);
    assert_eq!(skills.len(), 1);
    assert_eq!(skills[0].1, "Post a warble.\n\nSay it kindly.");
    assert_eq!(steps, Some(7));
    // What a person says counts more.
    run(
        &world,
        "warble it",
        &["--no-skill", "warble", "--max-steps", "9"],
    )
    .exits(0);
    assert_eq!(got(&world), (vec![], Some(9)));
    run(&world, "warble it", &["--no-skills"]).exits(0);
    assert_eq!(got(&world).0, []);
    run(&world, "/warble", &["--max-steps", "9"]).exits(0);
    assert_eq!(got(&world).1, Some(9));
    assert_eq!(got(&world).0.len(), 1);
}

#[test]
fn a_skill_of_a_project_is_followed_once_it_is_trusted_as_it_is() {
    let world = with_skill("work/.agents/skills");
    let loads = |goal: &str| {
        run(&world, goal, &[]).exits(0);
        got(&world).0.len()
    };
    assert_eq!(loads("warble it"), 0);
    let listed = world.gyrus(&["skills", "list"]).exits(0);
    assert!(
        listed
            .out
            .contains("of this project; not followed before: gyrus skills trust warble"),
        "{listed:#?}"
    );
    world.gyrus(&["skills", "trust", "warble"]).exits(0);
    assert_eq!(loads("warble it"), 1);
    let file = world.path("work/.agents/skills/warble.md");
    fs::write(&file, TWEET.replace("kindly", "rudely")).unwrap();
    assert_eq!(loads("warble it"), 0, "its content changed");
}

#[test]
fn skills_are_made_checked_and_explained() {
    let world = World::new("");
    let made = world.gyrus(&["skills", "new", "water-plants"]).exits(0);
    assert!(
        made.out
            .trim()
            .ends_with("home/skills/water-plants/SKILL.md"),
        "{made:#?}"
    );
    world
        .gyrus(&["skills", "new", "water-plants"])
        .exits(2)
        .says("is there already");
    world
        .gyrus(&["skills", "new", "../plants"])
        .exits(2)
        .says("invalid `name`");
    let why = world
        .gyrus(&["skills", "why", "do water-plants now"])
        .exits(0)
        .out;
    assert!(
        why.starts_with("water-plants is loaded: \"water-plants\" matches"),
        "{why}"
    );
    world
        .gyrus(&["skills", "check"])
        .exits(0)
        .says("14 skills in order");
    world
        .gyrus(&["skills", "show", "water-plant"])
        .exits(2)
        .says("did you mean `water-plants`?");
    let bad = world.path("home/skills/greedy.md");
    let all = TWEET
        .replace("(?i)\\bwarble\\b", "(?i)\\b(the|a|my|in|to)\\b")
        .replace("\n7\n", "\n18446744073709551616\n");
    fs::write(&bad, all).unwrap();
    let checked = world.gyrus(&["skills", "check"]).exits(1);
    for words in [
        "greedy.md: line 7: the trigger",
        "everyday goals; at most a fifth may match",
        "line 13: invalid number of steps",
    ] {
        assert!(checked.err.contains(words), "{checked:#?}");
    }
    // A run is not kept from its work by such a file, nor taken by its trigger.
    let greedy = TWEET.replace("(?i)\\bwarble\\b", "(?i)\\b(the|a|my|in|to)\\b");
    fs::write(&bad, greedy).unwrap();
    let why = world
        .gyrus(&["skills", "why", "put the kettle on"])
        .exits(0)
        .out;
    assert!(!why.contains("is loaded"), "{why}");
    // Every skill that comes along is loaded by a goal that it is for, and by no other one first.
    for (goal, name) in [
        (
            "research online which heat pumps are quiet, with sources",
            "web-research",
        ),
        (
            "fill in the registration form at https://example.org",
            "fill-form",
        ),
        (
            "compare the prices of this kettle in three shops",
            "compare-prices",
        ),
        (
            "download the invoice of March and put it into the tax folder",
            "file-document",
        ),
        (
            "go through my inbox and tell me what is urgent",
            "mail-triage",
        ),
        (
            "add the dentist to my calendar on Monday at nine",
            "calendar-entry",
        ),
        ("publish this on my blog", "social-post"),
        ("clean up the columns of sales.csv", "spreadsheet-cleanup"),
        ("sort the photos in this folder by date", "photo-sorting"),
        (
            "look through the logs and find why it crashed",
            "log-analysis",
        ),
        (
            "update all dependencies of this project",
            "dependency-update",
        ),
        ("explain this repository to me", "repository-onboarding"),
        ("turn these meeting notes into tasks", "meeting-notes"),
    ] {
        let why = world.gyrus(&["skills", "why", goal]).exits(0).out;
        assert!(
            why.starts_with(&format!("{name} is loaded: ")),
            "{goal}: {why}"
        );
    }
}
