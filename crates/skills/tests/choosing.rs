//! Counts of goals that load the right skill of those that come with gyrus: over goals whose skill is known, and over
//! the everyday goals.

use gyrus_skills::{COMMON_GOALS, Library, SkillFolders};

/// Maximum number of skills of one run.
const MAX_LOADED: usize = 2;

fn built_in() -> Library {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../skills");
    let places = SkillFolders {
        user: vec![folder.into()],
        ..SkillFolders::default()
    };
    let library = Library::read(&places, &|_| true);
    assert_eq!(library.skills.len(), 13, "{:?}", library.misread);
    library
}

fn loads(library: &Library, goal: &str) -> Vec<String> {
    let nominated = library.nominate(goal).into_iter().take(MAX_LOADED);
    nominated.map(|choice| choice.skill.name).collect()
}

#[test]
fn goals_load_the_skill_that_they_are_for() {
    let library = built_in();
    let (mut right, mut missed, mut wrong) = (0, Vec::new(), Vec::new());
    for line in include_str!("goals.txt").lines() {
        let (wanted, goal) = line.split_once('\t').unwrap();
        let loaded = loads(&library, goal);
        if loaded.iter().any(|name| name != wanted) {
            wrong.push(format!("{line}: {loaded:?}"));
        } else if loaded.is_empty() && wanted != "-" {
            missed.push(line);
        } else {
            right += 1;
        }
    }
    // A change that is worse is noticed.
    assert_eq!(
        (right, missed.len(), wrong.len()),
        (56, 13, 0),
        "{missed:#?} {wrong:#?}"
    );
}

/// The everyday goals that are for a skill, of two hundred, with it.
const EVERYDAY: [(&str, &str); 13] = [
    (
        "add a meeting with Tom to the calendar on Tuesday",
        "calendar-entry",
    ),
    ("check the log for errors since yesterday", "log-analysis"),
    ("compare the prices of three laptops", "compare-prices"),
    (
        "download the invoice from the shop and put it into the tax folder",
        "file-document",
    ),
    ("fill in the registration form with my data", "fill-form"),
    ("find papers about sleep and memory", "web-research"),
    (
        "find the cheapest flight from Vienna to Lisbon in May",
        "compare-prices",
    ),
    ("find three sources for this claim", "web-research"),
    ("post \"hello world\" on my blog", "social-post"),
    (
        "rename all photos in this folder by the date they were taken",
        "photo-sorting",
    ),
    (
        "sort the photos of the holiday into folders by place",
        "photo-sorting",
    ),
    ("turn these meeting notes into tasks", "meeting-notes"),
    (
        "update all dependencies of this project",
        "dependency-update",
    ),
];

#[test]
fn everyday_goals_load_the_right_skill_or_none() {
    let library = built_in();
    let mut found: Vec<(&str, String)> = Vec::new();
    for goal in COMMON_GOALS.lines() {
        found.extend(loads(&library, goal).into_iter().map(|name| (goal, name)));
    }
    found.sort();
    assert_eq!(found, EVERYDAY.map(|(goal, name)| (goal, name.to_owned())));
}
