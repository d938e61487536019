//! The skills that come with gyrus at work: each is loaded by a goal that does not name it, and the
//! task is done and checked. Seven on the practice sites, in a real browser; six on real files.

use std::fs;

use gyrus_contract::Origin;
use gyrus_contract::Part;
use gyrus_kernel::{Entry, Inline};
use gyrus_player::Player;

use crate::{
    browsing::{browsing, has_browser},
    support::{World, said},
};

/// The tasks on the practice sites.
const ON_SITES: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../lab/suite-of-skills/tasks.toml"
);

/// A task on files, as a scripted model does it.
struct FileTask {
    skill: &'static str,
    goal: &'static str,
    files: &'static [(&'static str, &'static str)],
    /// The command line that does it.
    line: &'static str,
    answer: &'static str,
    checks: &'static [&'static str],
}

const ON_FILES: [FileTask; 6] = [
    FileTask {
        skill: "spreadsheet-cleanup",
        goal: "clean up the table sales.csv: no line twice",
        files: &[("sales.csv", "name,sum\nAda,3\nMary,4\nAda,3\n")],
        line: "awk '!seen[$0]++' sales.csv > sales-clean.csv",
        answer: "One line was there twice; sales-clean.csv has each once.",
        checks: &[
            "cmd:test \"$(cat sales-clean.csv | tr '\\n' ';')\" = 'name,sum;Ada,3;Mary,4;'",
            "cmd:test $(grep -c '' sales.csv) = 4",
        ],
    },
    FileTask {
        skill: "photo-sorting",
        goal: "rename the photos in this folder by the date in their names",
        files: &[
            ("IMG_20310605.jpg", "a"),
            ("IMG_20310606.jpg", "b"),
            ("notes.txt", "c"),
        ],
        line: "mv -n IMG_20310605.jpg 2031-06-05.jpg && mv -n IMG_20310606.jpg 2031-06-06.jpg",
        answer: "Two pictures were renamed; two are there.",
        checks: &[
            "cmd:test \"$(cat 2031-06-05.jpg 2031-06-06.jpg)\" = ab",
            "cmd:test $(ls *.jpg | grep -c '') = 2",
            "file:notes.txt",
        ],
    },
    FileTask {
        skill: "log-analysis",
        goal: "look through the logs and find why the server crashed",
        files: &[(
            "server.log",
            "10:00 start\n10:02 disk full on /var\n10:03 cannot write queue\n10:03 crash\n",
        )],
        line: "grep -n -m1 -B1 'cannot write' server.log",
        answer: "The disk was full: server.log, line 2, a minute before the crash.",
        checks: &["cmd:test $(grep -c '' server.log) = 4"],
    },
    FileTask {
        skill: "dependency-update",
        goal: "update the dependencies of this project",
        files: &[
            ("requirements.txt", "left==1.0\nright==2.0\n"),
            (
                "test.sh",
                "grep -q '^left==1.1$' requirements.txt && grep -q '^right==2.0$' requirements.txt\n",
            ),
        ],
        line: "sed -i 's/^left==1.0$/left==1.1/' requirements.txt && sh test.sh",
        answer: "left went from 1.0 to 1.1; right is the newest.",
        checks: &["cmd:sh test.sh"],
    },
    FileTask {
        skill: "repository-onboarding",
        goal: "explain this repository to me",
        files: &[
            ("README.md", "# Pump\nRun `sh pump.sh`.\n"),
            ("pump.sh", "echo pumping\n"),
        ],
        line: "cat README.md && sh pump.sh && ls",
        answer: "Pump is started by pump.sh, which prints one line.",
        checks: &["cmd:test \"$(ls | tr '\\n' ' ')\" = 'README.md pump.sh '"],
    },
    FileTask {
        skill: "meeting-notes",
        goal: "turn these meeting notes into tasks: notes.md",
        files: &[(
            "notes.md",
            "Ada: I write the letter by Friday. Agreed: no fees.\n",
        )],
        line: "printf '## Decisions\\n- no fees\\n## Tasks\\n- [ ] write the letter (Ada, Friday)\\n' > notes-tasks.md",
        answer: "One decision and one task are in notes-tasks.md.",
        checks: &[
            "file:notes-tasks.md contains - [ ] write the letter (Ada, Friday)",
            "file:notes.md contains Agreed: no fees.",
        ],
    },
];

/// Returns the names of the skills whose texts a run got.
fn skills_of(entries: &[Entry]) -> Vec<String> {
    let Some(Entry::RunStarted(started)) = entries.first() else {
        panic!("a run begins with its start");
    };
    let names = started.context.iter().filter_map(|part| match part {
        Inline::Is(Part::Text(text)) => match &text.origin {
            Origin::Skill { name, .. } => Some(name.clone()),
            _ => None,
        },
        _ => None,
    });
    names.collect()
}

#[test]
fn six_skills_on_files() {
    for task in ON_FILES {
        let line = toml::Value::from(task.line);
        let answer = toml::Value::from(task.answer);
        let world = World::new(&format!(
            "[[reply]]\ncalls = [{{ tool = \"shell\", arguments = {{ command = {line} }} }}]\n\
             [[reply]]\ncalls = [{{ tool = \"finish\", arguments = {{ reached = true, answer = {answer} }} }}]\n"
        ));
        for (name, content) in task.files {
            fs::write(world.work().join(name), content).unwrap();
        }
        let mut arguments = vec!["run", task.goal, "--workdir", ".", "--approve", "auto"];
        arguments.extend(["--require", "checked"]);
        for check in task.checks {
            arguments.extend(["--check", check]);
        }
        let done = world.gyrus(&arguments).exits(0);
        assert!(done.out.contains(task.answer), "{}: {done:#?}", task.skill);
        assert_eq!(skills_of(&world.entries()), [task.skill]);
    }
}

#[test]
fn seven_skills_on_the_practice_sites() {
    let tasks = gyrus_player::read(ON_SITES.as_ref()).unwrap();
    assert_eq!(tasks.len(), 7);
    let world = World::new("");
    for task in &tasks {
        let why = world.gyrus(&["skills", "why", &task.goal]).exits(0).out;
        assert!(
            why.starts_with(&format!("{} is loaded: ", task.id)),
            "{}: {why}",
            task.goal
        );
    }
    if !has_browser() {
        return;
    }
    let player = Player::start(tasks).unwrap();
    let (model, report) = (player.model(), world.path("report"));
    let report = report.to_str().unwrap();
    let evaluate = ["eval", "skills", "--model", &model, "--report", report];
    let told = said(browsing(&world, &evaluate).output().unwrap()).exits(0);
    assert!(told.out.contains("7 of 7 passed"), "{told:#?}");
}
