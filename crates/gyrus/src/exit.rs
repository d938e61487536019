//! Exit codes of the process, and the messages to a person beside them.
//!
//! The codes are part of the interface: scripts decide by them. Not here: errors (`failure`).

use gyrus_contract::ModelError;
use gyrus_kernel::{Ending, QuestionId};
use gyrus_text::on_the_clock;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Code {
    /// The goal was reached, or the command succeeded.
    Reached = 0,
    Failed = 1,
    /// The command line or the configuration is wrong. Nothing was done.
    Usage = 2,
    /// A limit was reached. The run can be resumed.
    Limit = 3,
    /// Something was denied, nobody could be asked, or a person stopped the run.
    Denied = 4,
    /// The run waits for a person. It can be resumed.
    Parked = 5,
    /// The run repeats itself; it can be resumed.
    Stuck = 6,
    /// The model could not be reached or refused the key. The run can be resumed.
    ModelUnreachable = 7,
    /// Another worker of the fleet has the run, or the fleet cannot be reached. Nothing is lost.
    #[cfg_attr(
        not(feature = "fleet"),
        expect(dead_code, reason = "there is no fleet")
    )]
    Elsewhere = gyrus_runtime::queue::RUN_IS_ELSEWHERE as isize,
    /// Interrupted at the terminal. The run can be resumed.
    Interrupted = 130,
}

impl From<Code> for std::process::ExitCode {
    fn from(code: Code) -> Self {
        Self::from(code as u8)
    }
}

impl Code {
    /// The code for a command that did what it was to do, or left some of it.
    pub(crate) fn reached_if(is_whole: bool) -> Self {
        if is_whole {
            Code::Reached
        } else {
            Code::Failed
        }
    }

    pub(crate) fn of(ending: &Ending) -> Self {
        match ending {
            Ending::Reached { claim, .. } if !claim.shortfalls.is_empty() => Code::Denied,
            Ending::Reached { .. } => Code::Reached,
            Ending::Failed { denied, .. } if denied.is_empty() => Code::Failed,
            Ending::Failed { .. } | Ending::Stopped { .. } => Code::Denied,
            Ending::Limit { .. } => Code::Limit,
            Ending::Waiting { .. } | Ending::Sleeping { .. } => Code::Parked,
            Ending::Stuck { .. } => Code::Stuck,
            Ending::ModelUnreachable { .. } => Code::ModelUnreachable,
            Ending::Interrupted => Code::Interrupted,
        }
    }
}

/// Returns the advice about a model that did not answer.
fn then_asks(error: &ModelError, resume: &str) -> String {
    match error {
        ModelError::ContextTooLong { .. } => {
            format!("with a model that takes more: {resume} --model NAME")
        }
        ModelError::Auth { .. } => {
            format!("when the key is right and has credit (gyrus setup): {resume}")
        }
        ModelError::Declined { .. } | ModelError::Refused { .. } => {
            format!("with another model: {resume} --model NAME")
        }
        ModelError::RateLimited { .. }
        | ModelError::Overloaded { .. }
        | ModelError::BadOutput { .. }
        | ModelError::Network { .. } => format!("when the model answers again: {resume}"),
    }
}

/// An ending other than success, for a person: what happened, and what to do next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ExitMessage {
    /// The event, in one sentence.
    pub(crate) what: String,
    /// The next step: one sentence with the command to type.
    pub(crate) next: String,
}

/// Returns the message to a person at the end of a run, whose name is `run`; `None` for success:
/// the answer says it.
pub(crate) fn say(ending: &Ending, run: &str) -> Option<ExitMessage> {
    let resume = format!("gyrus resume {run}");
    let (what, next) = match ending {
        Ending::Reached { .. } => return None,
        Ending::Failed { reason, denied } => failed(reason, denied, run),
        Ending::Limit { what } => (
            format!("a limit was reached ({what})"),
            raise(what, &resume),
        ),
        Ending::Waiting {
            run: child,
            effect,
            asking,
            question,
        } => {
            let id = QuestionId {
                effect: effect.clone(),
                asking: *asking,
            };
            let child = child.map(|child| child.short());
            let asks = child.as_deref().unwrap_or(run);
            (
                format!("the run waits for an answer: {question}"),
                format!(
                    "answer with `gyrus approve {asks} {id}` or `gyrus deny {asks} {id}`, \
                     then `{resume}`"
                ),
            )
        }
        Ending::Sleeping {
            signal: Some(signal),
            ..
        } => (
            format!("the run waits for the signal `{signal}`"),
            format!("when the signal has come: {resume}"),
        ),
        Ending::Sleeping { until_ms, .. } => {
            let time = until_ms.map_or_else(|| "a time".to_owned(), on_the_clock);
            (
                format!("the run waits until {time}"),
                format!("then: {resume}"),
            )
        }
        Ending::Stuck { what } => (
            format!("the run is stuck: {what}"),
            format!("tell the run what to do differently (gyrus steer {run} TEXT), then: {resume}"),
        ),
        Ending::ModelUnreachable { error } => (error.to_string(), then_asks(error, &resume)),
        Ending::Stopped { by, reason } => {
            let reason = reason.as_deref().map(|words| format!(": {words}"));
            let reason = reason.unwrap_or_default();
            (
                format!("the run was stopped by {by}{reason}"),
                format!("to go on: {resume}"),
            )
        }
        Ending::Interrupted => (
            "the run was interrupted".to_owned(),
            format!("to go on: {resume}"),
        ),
    };
    Some(ExitMessage { what, next })
}

fn failed(reason: &str, denied: &[String], run: &str) -> (String, String) {
    if denied.is_empty() {
        return (
            format!("the goal was not reached: {reason}"),
            format!("see what happened: gyrus show {run}"),
        );
    }
    let mut each: Vec<&str> = denied.iter().map(String::as_str).collect();
    each.dedup();
    (
        format!(
            "the goal was not reached: {reason} (denied, because nobody could be asked: {})",
            each.join("; ")
        ),
        "run it at a terminal, or with --on-ask park and `gyrus approve`, or with a wider \
         --approve MODE"
            .to_owned(),
    )
}

/// The flag that raises the limit an ending names first: `steps: 10 of 10`.
fn raise(what: &str, resume: &str) -> String {
    let flag = match what.split([':', ' ']).next() {
        Some("steps") => "--max-steps N",
        Some("tokens") => "--max-tokens N",
        Some("cost") => "--max-cost USD",
        Some("time") => "--max-time DURATION",
        _ => "a higher limit",
    };
    format!("to go on with more: {resume} {flag}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_ending_but_success_says_what_happened_and_what_to_do() {
        let limit = |what: &str| Ending::Limit {
            what: what.to_owned(),
        };
        let failed = |denied: &[&str]| Ending::Failed {
            reason: "no".to_owned(),
            denied: denied.iter().map(|&call| call.to_owned()).collect(),
        };
        let sleeping = |signal: Option<&str>| Ending::Sleeping {
            effect: "1.1".parse().unwrap(),
            until_ms: None,
            signal: signal.map(str::to_owned),
        };
        for (ending, code, next) in [
            (limit("steps: 3 of 3"), 3, "gyrus resume 1a2b --max-steps N"),
            (
                limit("cost: $1.0000 of $1.0000"),
                3,
                "gyrus resume 1a2b --max-cost USD",
            ),
            (
                limit("time in ms: 5 of 5"),
                3,
                "gyrus resume 1a2b --max-time DURATION",
            ),
            (failed(&[]), 1, "gyrus show 1a2b"),
            (failed(&["write x"]), 4, "--on-ask park"),
            (sleeping(None), 5, "gyrus resume 1a2b"),
            (sleeping(Some("mail")), 5, "gyrus resume 1a2b"),
            (
                Ending::Stuck {
                    what: "again".to_owned(),
                },
                6,
                "gyrus steer 1a2b",
            ),
            (Ending::Interrupted, 130, "gyrus resume 1a2b"),
        ] {
            assert_eq!(Code::of(&ending) as u8, code, "{ending:?}");
            let said = say(&ending, "1a2b").unwrap();
            assert!(said.next.contains(next), "{said:?}");
        }
    }
}
