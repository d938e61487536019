use gyrus_contract::RunId;
use tempfile::TempDir;

use super::*;

fn run(number: u128) -> RunId {
    format!("{:08x}-0000-7000-8000-{number:012x}", 1)
        .parse()
        .unwrap()
}

fn lesson(number: u128, goal: &str) -> Lesson {
    Lesson {
        number: 0,
        run: run(number),
        at_ms: 1_000,
        goal: goal.to_owned(),
        workspace: "/work".to_owned(),
        site: String::new(),
        outcome: "checked".to_owned(),
        worked: format!("way {number}"),
        did_not: String::new(),
        exposed: true,
        direct: false,
    }
}

fn learned(goals: &[&str]) -> Vec<LessonFact> {
    let lessons = (1..).zip(goals).map(|(number, goal)| lesson(number, goal));
    lessons.map(LessonFact::Learned).collect()
}

fn counted(lesson: u64, number: u128, reached: bool) -> LessonFact {
    let run = run(number);
    LessonFact::Counted {
        lesson,
        given: GivenTo { run, reached },
    }
}

fn decided(lesson: u64, decision: LessonDecision) -> LessonFact {
    LessonFact::Decided { lesson, decision }
}

fn lessons() -> (TempDir, Lessons) {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&folder.path().join("journal")).unwrap();
    let lessons = Lessons::of(&store, &folder.path().join("lessons"));
    (folder, lessons)
}

fn add(lessons: &Lessons, facts: Vec<LessonFact>) {
    lessons.change(|_| Ok::<_, LessonError>(facts)).unwrap();
}

fn found(lessons: &Lessons, goal: &str) -> Vec<u64> {
    let subject = LessonSubject {
        goal,
        workspace: "/elsewhere",
        site: "",
    };
    let found = lessons.similar(&subject, 3).unwrap();
    found.iter().map(|lesson| lesson.number).collect()
}

#[test]
fn lessons_of_similar_goals_are_found_and_others_are_not() {
    let (_folder, lessons) = lessons();
    assert!(found(&lessons, "order 3 pizzas for Ada").is_empty());
    add(
        &lessons,
        learned(&[
            "order 3 pizzas for Ada",
            "write a poem about cats",
            "compare the prices of this kettle in three shops",
        ]),
    );
    for (goal, expected) in [
        ("order 5 pizzas for Bob", vec![1]),
        ("Order 3 PIZZAS, for ada!", vec![1]),
        ("compare prices of laptops in shops", vec![3]),
        ("write a report about sales", vec![]),
        ("the of and", vec![]),
        ("", vec![]),
        ("3 5 7", vec![]),
    ] {
        assert_eq!(found(&lessons, goal), expected, "{goal}");
    }
    // A goal with all words there are is about none of them in particular.
    let everything = "order pizzas ada write poem cats compare prices kettle shops ".repeat(1_000);
    assert!(found(&lessons, &everything).len() <= 3);
}

#[test]
fn lessons_of_the_same_place_come_first_and_equal_ones_once() {
    let (_folder, lessons) = lessons();
    let mut here = lesson(1, "order pizzas");
    here.workspace = "/here".to_owned();
    let mut site = lesson(2, "order pizzas");
    site.site = "shop.example".to_owned();
    let mut again = lesson(3, "order pizzas");
    again.worked = here.worked.clone();
    let other = lesson(4, "order pizzas");
    let all = [here, site, again, other];
    add(&lessons, all.map(LessonFact::Learned).to_vec());
    let subject = LessonSubject {
        goal: "order pizzas",
        workspace: "/here",
        site: "shop.example",
    };
    let best = lessons.similar(&subject, 4).unwrap();
    let numbers: Vec<u64> = best.iter().map(|lesson| lesson.number).collect();
    assert_eq!(numbers, [2, 1, 4]);
}

#[test]
fn a_lesson_that_runs_fail_with_is_retired_and_can_be_brought_back() {
    let (_folder, lessons) = lessons();
    add(&lessons, learned(&["order pizzas"]));
    let given = |lessons: &Lessons| found(lessons, "order pizzas") == [1];
    for (facts, expected) in [
        (vec![counted(1, 10, false)], true),
        // The same run again is not another one.
        (vec![counted(1, 10, false)], true),
        (vec![counted(1, 11, false)], false),
        // It was resumed after its limit, and reached its goal.
        (vec![counted(1, 11, true)], true),
        (vec![counted(1, 12, false), counted(1, 13, false)], false),
        (vec![decided(1, LessonDecision::Restore)], true),
        (vec![counted(1, 14, false)], true),
        (vec![decided(1, LessonDecision::Retire)], false),
        (vec![counted(1, 15, true)], false),
        (vec![decided(1, LessonDecision::Restore)], true),
        (vec![counted(1, 16, false), counted(1, 17, false)], false),
        // Nobody has heard of it.
        (vec![counted(9, 18, false)], false),
    ] {
        let last = format!("{facts:?}");
        add(&lessons, facts);
        assert_eq!(given(&lessons), expected, "{last}");
        // What is written when the ledger begins a new generation is the same state.
        let book = lessons.all().unwrap();
        let mut again = LessonBook::default();
        let facts = crate::ledger::Fold::facts(&book);
        facts
            .into_iter()
            .for_each(|fact| crate::ledger::Fold::apply(&mut again, fact));
        assert_eq!(again, book, "{last}");
    }
}

#[test]
fn lessons_that_processes_add_at_once_are_all_kept() {
    let (_folder, lessons) = lessons();
    thread::scope(|scope| {
        for of in 0..4_u128 {
            let lessons = lessons.clone();
            scope.spawn(move || {
                for number in 0..5 {
                    let lesson = lesson(of * 100 + number, "order pizzas");
                    add(&lessons, vec![LessonFact::Learned(lesson)]);
                }
            });
        }
    });
    assert_eq!(lessons.all().unwrap().lessons().count(), 20);
    let nothing = lessons.change(|_| Ok::<_, LessonError>(Vec::new()));
    nothing.unwrap();
}

/// Everyday goals, no two of which are about the same thing.
const GOALS: &str = include_str!("../../../skills/src/common_goals.txt");

#[test]
fn everyday_goals_are_seldom_taken_for_each_other() {
    let goals: Vec<&str> = GOALS.lines().filter(|line| !line.is_empty()).collect();
    let words: Vec<Vec<u32>> = goals.iter().map(|goal| similar::words(goal)).collect();
    let mut taken = Vec::new();
    for (number, goal) in goals.iter().enumerate() {
        let others = || {
            words
                .iter()
                .enumerate()
                .filter(|(other, _)| *other != number)
        };
        let weights = similar::Weights::of(goal, others().map(|(_, words)| &**words));
        for (other, words) in others() {
            if weights.similarity(words) >= similar::SIMILAR {
                taken.push((*goal, goals[other]));
            }
        }
    }
    assert!(
        taken.len() <= goals.len() / 20,
        "{}: {taken:#?}",
        taken.len()
    );
}

#[test]
fn ten_thousand_lessons_are_searched() {
    let (_folder, lessons) = lessons();
    let goals: Vec<String> = (0..10_000)
        .map(|number| {
            format!(
                "order item{number} in shop{} for person{}",
                number % 97,
                number % 7
            )
        })
        .collect();
    let goals: Vec<&str> = goals.iter().map(String::as_str).collect();
    add(&lessons, learned(&goals));
    let best = found(&lessons, "order item4711 in shop55 for person0");
    assert_eq!(best[0], 4_712);
}

#[test]
fn a_goal_whose_last_run_was_direct_needs_no_lesson() {
    let (_folder, lessons) = lessons();
    let mut direct = lesson(1, "order 3 pizzas for Ada");
    direct.direct = true;
    add(&lessons, vec![LessonFact::Learned(direct)]);
    for (goal, expected) in [
        ("order 3 pizzas for Ada", vec![]),
        (" order 3\npizzas for  Ada", vec![]),
        ("order 4 pizzas for Ada", vec![1]),
        ("Order 3 pizzas for Ada", vec![1]),
    ] {
        assert_eq!(found(&lessons, goal), expected, "{goal}");
    }
    // Then it went wrong.
    let failed = lesson(2, "order 3 pizzas for Ada");
    add(&lessons, vec![LessonFact::Learned(failed)]);
    assert_eq!(found(&lessons, "order 3 pizzas for Ada"), [2, 1]);
}
