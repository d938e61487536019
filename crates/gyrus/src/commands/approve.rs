//! `gyrus approve`, and what it shares with `gyrus deny`

use std::path::PathBuf;

use clap::Args;
use gyrus::runtime::{self, Confinement};
use gyrus_contract::{
    Answer, ApprovalScope, CallPlace, Decision, Gate as _, Judgement, RunId, ToolSpec,
};
use gyrus_journal::Store;
use gyrus_kernel::{
    ApprovalCard, QuestionId, StandingRun,
    approvals::{self, CardId, OpenQuestion, VoidAnswer},
    log_name,
};

use super::run_argument::RunArgument;
use crate::{Gyrus, exit::Code, failure::Failure, inside_run, kernels, time};
use gyrus_surfaces::{card_editor, console::put, terminal};

/// Say yes to what a run asks
///
/// The yes holds for exactly the call that the card shows, and until the card expires. Without CARD
/// the run must have one open question.
#[derive(Args)]
pub(crate) struct ApproveCommand {
    #[command(flatten)]
    run: RunArgument,
    /// The card, like 2.3
    card: Option<QuestionId>,
    /// The answer, where the agent asks a question
    #[arg(long, value_name = "WORDS")]
    answer: Option<String>,
    /// Also allow what the card offers, for the rest of the session
    #[arg(long, conflicts_with_all = ["answer", "always"])]
    session: bool,
    /// The same in this folder for good; `gyrus approvals` lists it and takes it back
    #[arg(long, conflicts_with = "answer")]
    always: bool,
    /// Change what is asked about (a plan, a list of files, a changeset) in your editor (VISUAL or
    /// EDITOR) first; it is checked again
    #[arg(long, conflicts_with_all = ["answer", "session", "always"])]
    edit: bool,
    /// Approve the same as you have changed it in this file; it is checked again
    #[arg(long, value_name = "FILE", conflicts_with_all = ["answer", "session", "always", "edit"])]
    edited: Option<PathBuf>,
}

impl ApproveCommand {
    pub(crate) fn execute(self, gyrus: &Gyrus) -> Result<Code, Failure> {
        let scope = match (self.session, self.always) {
            (_, true) => ApprovalScope::Always,
            (true, false) => ApprovalScope::Session,
            (false, false) => ApprovalScope::Once,
        };
        let editor = gyrus.environment.editor.as_deref();
        answer(gyrus, &self.run, self.card.as_ref(), |card| {
            Ok(match (self.edited, self.edit, self.answer) {
                (Some(path), _, _) => card_editor::from_file(card, &path)?,
                (None, true, _) => card_editor::in_editor(card, editor)?,
                (None, false, Some(words)) => approvals::reply(card, words)?,
                (None, false, None) => Answer::yes(scope),
            })
        })
    }
}

pub(super) fn answer(
    gyrus: &Gyrus,
    run: &RunArgument,
    card: Option<&QuestionId>,
    say: impl FnOnce(&ApprovalCard) -> Result<Answer, Failure>,
) -> Result<Code, Failure> {
    inside_run::refuse("answer for a person")?;
    let store = gyrus.store()?;
    let (run, card) = match (run.card(), card) {
        (Some(card), None) => (&RunArgument::default(), Some(card)),
        (_, card) => (run, card.cloned()),
    };
    let run = run.find_own(gyrus, &store)?;
    let open = the_question(&store, run, card.as_ref())?;
    let answer = say(&open.card)?;
    check_edited(gyrus, &store, &open, &answer)?;
    let (verdict, leave) = match (&answer, open.card.question) {
        (Answer::Deny { .. }, _) => ("denied", false),
        (Answer::Approve { .. }, true) => ("answered", false),
        (Answer::Approve { words: Some(_), .. }, false) => ("approved, as you changed it,", true),
        (Answer::Approve { words: None, .. }, false) => ("approved", true),
    };
    let person = terminal::person(gyrus.environment.user.as_deref(), "command line");
    approvals::answer(&store, &open, person, answer)?;
    // A child goes on when the run that a person started does.
    let mut root = run;
    while let Some(parent) = StandingRun::read(&store, root)?.started.parent {
        root = parent.run;
    }
    let name = root.short();
    let then = match store.holder(&log_name(root))? {
        Some(_) => "the run goes on".to_owned(),
        None if gyrus.is_of_a_fleet() => "a worker goes on with it".to_owned(),
        None => {
            let until = if leave {
                let left = gyrus_text::span(open.valid.left_ms(time::now_ms()));
                format!(" (the yes counts for another {left})")
            } else {
                String::new()
            };
            format!("the run is parked; to go on: gyrus resume {name}{until}")
        }
    };
    put(&format!("{verdict} {} of run {name}; {then}\n", open.id))?;
    Ok(Code::Reached)
}

/// Checks an edited text before it is sent: its form, the arguments of its calls, and the gate's
/// verdict on them. The run checks it again.
pub(crate) fn check_edited(
    gyrus: &Gyrus,
    store: &Store,
    open: &OpenQuestion,
    answer: &Answer,
) -> Result<(), Failure> {
    let (
        Answer::Approve {
            words: Some(edited),
            ..
        },
        Some(before),
    ) = (answer, &open.card.edit)
    else {
        return Ok(());
    };
    let (run, home) = (open.run, gyrus.home()?);
    let started = StandingRun::read(store, run)?.started;
    let tools = kernels::recorded_tools(&home, store, run, &started)?;
    let specs: Vec<ToolSpec> = tools.iter().map(|tool| tool.spec().clone()).collect();
    let calls =
        gyrus_loops::edited_calls(before, edited, &specs).map_err(|wrong| refused(&wrong))?;
    let (workspace, agent, mode) = (&started.workspace, &*started.agent, started.settings.mode);
    let gate = runtime::gate(&home, store, workspace, agent, Confinement::Sandboxed)?;
    let place = CallPlace {
        run,
        workspace,
        agent,
        mode,
        skills: &started.skills,
        sandbox: &started.sandbox,
    };
    // What is known of the run could only make it stricter, and the run judges again.
    let under = Judgement {
        agent,
        mode,
        exposed: false,
        skills: &started.skills,
        ..Judgement::outside_of_runs(workspace)
    };
    let mut wrong = Vec::new();
    for call in &calls {
        let found = specs.iter().find(|spec| spec.name == call.tool);
        let Some(spec) = found else { continue };
        match gate.resolve(call, spec, place) {
            Err(error) => wrong.push(format!("`{}`: {}", call.tool, error.reason)),
            Ok(resolved) => {
                let verdict = gate.judge(&resolved, spec, &under);
                if verdict.decision == Decision::Deny {
                    let why = verdict.reasons.join("; ");
                    wrong.push(format!("`{}` is not allowed: {why}", call.tool));
                }
            }
        }
    }
    match wrong.as_slice() {
        [] => Ok(()),
        wrong => Err(refused(wrong)),
    }
}

fn refused(wrong: &[String]) -> Failure {
    let wrong: Vec<String> = wrong.iter().map(|why| format!("\n  - {why}")).collect();
    let what = format!("the edited text cannot be taken:{}", wrong.concat());
    Failure::usage(what).hint("nothing was sent; correct it and approve again")
}

fn the_question(
    store: &Store,
    run: RunId,
    card: Option<&QuestionId>,
) -> Result<OpenQuestion, Failure> {
    let name = run.short();
    let (mut void, mut unanswered) = (None, Vec::new());
    for question in approvals::open(store, run)? {
        let named = card.unwrap_or(&question.id);
        if named.effect != question.id.effect {
            continue;
        }
        let named = CardId {
            question: named.clone(),
            ..question.card_id()
        };
        match approvals::void(store, &named)? {
            Some(no) => void = Some(no),
            None => unanswered.push(question),
        }
    }
    if unanswered.len() > 1 {
        let list: Vec<String> = unanswered
            .iter()
            .map(|open| {
                let of = open.run.short();
                format!("\n    {of} {}: {}", open.id, open.card.sentence)
            })
            .collect();
        return Err(
            Failure::usage(format!("run {name} asks {} things", unanswered.len()))
                .hint(format!("say which, by run and card:{}", list.concat())),
        );
    }
    match (unanswered.pop(), void, card) {
        (Some(question), _, _) => Ok(question),
        (None, Some(void), _) => Err(void.into()),
        (None, None, Some(card)) => {
            let id = card.clone();
            Err(VoidAnswer::NotAsked { run, id }.into())
        }
        (None, None, None) => Err(Failure::usage(format!("run {name} asks nothing"))
            .hint("see what is asked: gyrus approvals")),
    }
}
