//! Six properties of a durable runtime. The README says in a paragraph each what they mean.

use crate::subject::{Role, Step, Subject, Task};

/// One of the six.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Property {
    /// A resumed run continues the same prefix.
    SamePrefix,
    /// An effect with a recorded outcome is never executed again.
    ExactlyOnce,
    /// Forks of one cycle go on from the same history.
    ForksAgree,
    /// A run can be taken up after every recorded step.
    ResumesAnywhere,
    /// An approval is used once, however many processes resume.
    ApprovedOnce,
    /// The same record is always recovered to the same next step.
    RecoversTheSame,
}

impl Property {
    /// All of them.
    pub const ALL: [Property; 6] = [
        Property::SamePrefix,
        Property::ExactlyOnce,
        Property::ForksAgree,
        Property::ResumesAnywhere,
        Property::ApprovedOnce,
        Property::RecoversTheSame,
    ];
}

/// A property that does not hold.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{property:?} does not hold {place}: {what}")]
pub struct Violation {
    /// Which.
    pub property: Property,
    /// Place: after how many steps, at which cycle.
    pub place: String,
    /// The finding, in a sentence.
    pub what: String,
}

/// Checks one property.
///
/// # Errors
/// The first violation.
pub async fn check<S: Subject>(subject: &S, property: Property) -> Result<(), Violation> {
    let found = match property {
        Property::SamePrefix => same_prefix(subject).await,
        Property::ExactlyOnce => exactly_once(subject).await,
        Property::ForksAgree => forks_agree(subject).await,
        Property::ResumesAnywhere => resumes_anywhere(subject).await,
        Property::ApprovedOnce => approved_once(subject).await,
        Property::RecoversTheSame => recovers_the_same(subject).await,
    };
    found.map_err(|(place, what)| Violation {
        property,
        place,
        what,
    })
}

type Found = Result<(), (String, String)>;

fn holds(holds: bool, place: &str, what: impl FnOnce() -> String) -> Found {
    if holds {
        Ok(())
    } else {
        Err((place.to_owned(), what()))
    }
}

/// The numbers of steps after which a crash leaves something to do.
fn crashes(steps: &[Step]) -> impl Iterator<Item = (usize, String)> {
    (1..steps.len()).map(|kept| (kept, format!("after {kept} steps")))
}

async fn same_prefix(subject: &impl Subject) -> Found {
    let whole = subject.start(Task::Plain).await;
    let steps = subject.steps(&whole);
    for (kept, place) in crashes(&steps) {
        let run = subject.crash(&whole, kept);
        // Whether it can be resumed at all is another property.
        let _ = subject.resume(&run).await;
        let now = subject.steps(&run);
        let same = now.len() > kept && now[..kept] == steps[..kept];
        holds(same, &place, || {
            format!("the record begins otherwise now: {now:#?}")
        })?;
    }
    Ok(())
}

async fn exactly_once(subject: &impl Subject) -> Found {
    let whole = subject.start(Task::Plain).await;
    for (kept, place) in crashes(&subject.steps(&whole)) {
        let run = subject.crash(&whole, kept);
        let _ = subject.resume(&run).await;
        check_once(subject, &run, &place)?;
    }
    Ok(())
}

fn check_once<S: Subject>(subject: &S, run: &S::Run, place: &str) -> Found {
    let performed = subject.performed(run);
    for step in subject.steps(run) {
        let Role::Settles(effect) = &step.role else {
            continue;
        };
        let times = performed.iter().filter(|done| *done == effect).count();
        holds(times == 1, place, || {
            format!("effect {effect} was executed {times} times")
        })?;
    }
    Ok(())
}

async fn forks_agree(subject: &impl Subject) -> Found {
    let whole = subject.start(Task::Plain).await;
    let original = subject.prompts(&whole);
    let cycles: Vec<u32> = subject
        .steps(&whole)
        .iter()
        .filter_map(|step| match step.role {
            Role::Ends(cycle) => Some(cycle),
            _ => None,
        })
        .collect();
    let last = cycles.last().copied().unwrap_or_default();
    holds(last >= 3, "in the task", || {
        format!("it has {last} cycles, not three")
    })?;
    for cycle in cycles.into_iter().filter(|cycle| *cycle < last) {
        let place = format!("at cycle {cycle}");
        let mut heard = Vec::new();
        for _ in 0..2 {
            let fork = subject.fork(&whole, cycle);
            let went_on = subject.resume(&fork).await;
            holds(went_on.is_ok(), &place, || {
                format!("the fork does not go on: {went_on:?}")
            })?;
            heard.push(subject.prompts(&fork));
        }
        holds(heard[0] == heard[1], &place, || {
            format!("two forks differ: {heard:#?}")
        })?;
        // The prompt after the shared prefix shows the whole history.
        let next = heard[0].first();
        let known = next.is_some_and(|prompt| original.contains(prompt));
        holds(known, &place, || {
            format!("the fork asks what the original never did: {next:?}")
        })?;
    }
    Ok(())
}

async fn resumes_anywhere(subject: &impl Subject) -> Found {
    let whole = subject.start(Task::Plain).await;
    for (kept, place) in crashes(&subject.steps(&whole)) {
        let run = subject.crash(&whole, kept);
        let resumed = subject.resume(&run).await;
        holds(resumed.is_ok(), &place, || {
            format!("it cannot be taken up: {resumed:?}")
        })?;
        holds(subject.is_over(&run), &place, || {
            "it does not come to its end".to_owned()
        })?;
    }
    Ok(())
}

async fn approved_once(subject: &impl Subject) -> Found {
    let run = subject.start(Task::NeedsApproval).await;
    holds(!subject.is_over(&run), "before the yes", || {
        "it did not wait".to_owned()
    })?;
    subject.approve(&run);
    let both = subject.resume_twice(&run).await;
    let let_in = both.iter().filter(|one| one.is_ok()).count();
    let place = "when two processes resume";
    holds(let_in == 1, place, || {
        format!("{let_in} were let in: {both:?}")
    })?;
    check_answered_once(subject, &run, place)?;
    // The answer is recorded, and the crash comes before the message is gone.
    let steps = subject.steps(&run);
    let answered = steps.iter().position(|step| step.role == Role::Answers);
    for (kept, place) in crashes(&steps).filter(|(kept, _)| Some(*kept) > answered) {
        let crashed = subject.crash(&run, kept);
        let resumed = subject.resume(&crashed).await;
        holds(resumed.is_ok(), &place, || {
            format!("it cannot be taken up: {resumed:?}")
        })?;
        check_answered_once(subject, &crashed, &place)?;
    }
    Ok(())
}

fn check_answered_once<S: Subject>(subject: &S, run: &S::Run, place: &str) -> Found {
    let steps = subject.steps(run);
    let answers = steps
        .iter()
        .filter(|step| step.role == Role::Answers)
        .count();
    holds(answers == 1, place, || {
        format!("the answer was used {answers} times")
    })?;
    check_once(subject, run, place)
}

async fn recovers_the_same(subject: &impl Subject) -> Found {
    let whole = subject.start(Task::Plain).await;
    for (kept, place) in crashes(&subject.steps(&whole)) {
        let mut next = Vec::new();
        for _ in 0..2 {
            let run = subject.crash(&whole, kept);
            let _ = subject.resume(&run).await;
            let since = subject.steps(&run).split_off(kept);
            let steps = since.into_iter().filter(|step| step.role != Role::Process);
            next.push(steps.collect::<Vec<_>>());
        }
        holds(next[0] == next[1], &place, || {
            format!("it went on in two ways: {next:#?}")
        })?;
    }
    Ok(())
}
