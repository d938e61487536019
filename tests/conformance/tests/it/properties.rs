//! gyrus has the six properties, and the suite notices a runtime that lacks one.

use std::cell::Cell;

use gyrus_conformance::{
    ours::{Gyrus, OurRun, scenario},
    properties::{Property, check},
    subject::{Role, Step, Subject, Task},
};
use gyrus_contract::MessageBody;

#[tokio::test]
async fn gyrus_has_all_six() {
    for property in Property::ALL {
        check(&Gyrus, property)
            .await
            .unwrap_or_else(|violation| panic!("{violation}"));
    }
}

/// gyrus with one thing done wrong, as many a runtime does it.
struct Flawed {
    lacks: Property,
    count: Cell<usize>,
}

impl Flawed {
    /// Says something to the run that it was never told before.
    fn disturb(&self, run: &OurRun) {
        self.count.set(self.count.get() + 1);
        let text = format!("this is disturbance {}", self.count.get());
        run.send(MessageBody::steer(text));
    }
}

impl Subject for Flawed {
    type Run = OurRun;

    async fn start(&self, task: Task) -> OurRun {
        Gyrus.start(task).await
    }
    fn steps(&self, run: &OurRun) -> Vec<Step> {
        Gyrus.steps(run)
    }
    fn is_over(&self, run: &OurRun) -> bool {
        Gyrus.is_over(run)
    }
    fn performed(&self, run: &OurRun) -> Vec<String> {
        Gyrus.performed(run)
    }
    fn prompts(&self, run: &OurRun) -> Vec<String> {
        Gyrus.prompts(run)
    }
    fn approve(&self, run: &OurRun) {
        Gyrus.approve(run);
    }

    /// Forgets an outcome that it had acknowledged.
    fn crash(&self, run: &OurRun, kept: usize) -> OurRun {
        let last = &Gyrus.steps(run)[kept - 1];
        match (&last.role, self.lacks) {
            (Role::Settles(_), Property::ExactlyOnce) => Gyrus.crash_in(run, kept - 1, kept),
            _ => Gyrus.crash(run, kept),
        }
    }

    async fn resume(&self, run: &OurRun) -> Result<(), String> {
        match self.lacks {
            // Begins the task from its start, as a new run.
            Property::SamePrefix => {
                let bench = scenario(Task::Plain).bench();
                bench.start().await.map_err(|error| error.to_string())?;
                run.replace(bench);
                return Ok(());
            }
            // Only whole pairs of entries are understood.
            Property::ResumesAnywhere if Gyrus.steps(run).len() % 2 == 1 => {
                return Err("half an entry".to_owned());
            }
            // What it does next depends on something that is not recorded.
            Property::RecoversTheSame => self.disturb(run),
            _ => {}
        }
        Gyrus.resume(run).await
    }

    async fn resume_twice(&self, run: &OurRun) -> [Result<(), String>; 2] {
        if self.lacks != Property::ApprovedOnce {
            return Gyrus.resume_twice(run).await;
        }
        // Without a lock each works on what it read.
        let copy = Gyrus.crash(run, Gyrus.steps(run).len());
        [Gyrus.resume(run).await, Gyrus.resume(&copy).await]
    }

    fn fork(&self, run: &OurRun, cycle: u32) -> OurRun {
        let fork = Gyrus.fork(run, cycle);
        if self.lacks == Property::ForksAgree {
            self.disturb(&fork);
        }
        fork
    }
}

#[tokio::test]
async fn the_suite_notices_what_is_missing() {
    for lacks in Property::ALL {
        let flawed = Flawed {
            lacks,
            count: Cell::new(0),
        };
        let found = check(&flawed, lacks).await;
        let violation = found.expect_err(&format!("{lacks:?} is missing and nobody noticed"));
        assert_eq!(violation.property, lacks);
    }
}
