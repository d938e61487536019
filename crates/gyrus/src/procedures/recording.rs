//! A finished run as learning needs it, from its journal.

use std::collections::BTreeMap;

use gyrus_contract::{
    Aim, EffectId, ElementState, Form, Observation, Origin, Part, Risk, Starts, Strength, Text,
    ToolCall, Verdict, View,
};
use gyrus_journal::LogReader;
use gyrus_kernel::{Ending, Entry, GateVerdict, RunStarted, ScreenViewed, Stop, ToolResulted};
use gyrus_loops::{CHECK_MADE, CognitiveConfig};
use gyrus_procedures::{LearnedPlace, NotLearned, RecordedRun, RecordedStep};

use crate::{
    failure::Failure,
    screen::{DesktopOptions, ScreenOptions},
};

/// The name of the source of the texts that help a run with a goal that is like a learned one.
pub(super) const HINT: &str = "list of procedures";

/// The start of the marker that replaces a secret in texts.
pub(super) const SECRET_MARK: &str = "⟦secret:";

/// Reads a run that a person started and that reached its goal with evidence.
///
/// # Errors
/// The journal cannot be read. The inner error says why nothing can be learned from the run.
pub(crate) fn recorded(reader: &LogReader) -> Result<Result<RecordedRun, NotLearned>, Failure> {
    let mut reading = RunReader::default();
    for entry in reader.entries(1)? {
        let entry = entry?;
        let at_ms = entry.at_ms;
        // An entry of a newer version could matter.
        let Ok(entry) = gyrus_kernel::parse(&entry) else {
            return Ok(Err(unrepeatable("a part of its journal cannot be read")));
        };
        if let Err(why) = reading.take(entry, at_ms, reader)? {
            return Ok(Err(why));
        }
    }
    Ok(reading.finish())
}

fn unrepeatable(reason: &str) -> NotLearned {
    NotLearned::Unrepeatable {
        reason: reason.to_owned(),
    }
}

/// Returns the reason why a run with such an entry is more than its calls.
fn more_than_calls(entry: &Entry) -> &'static str {
    match entry.kind() {
        "run.steered" => "it was told more while it was at work",
        "takeover.started" => {
            "a person took its screen over, and what they did is not in its journal"
        }
        "child.started" => "it gave a part of its work to another run",
        _ => "it did several things at once",
    }
}

struct UnendedCall {
    call: ToolCall,
    view: Option<View>,
    commits: bool,
    form: Option<Form>,
    waited_ms: u64,
}

/// Maximum number of calls of a run that is learned from.
const MAX_CALLS: usize = 200;

#[derive(Default)]
struct RunReader {
    command: String,
    place: Option<LearnedPlace>,
    open: BTreeMap<EffectId, UnendedCall>,
    steps: Vec<(EffectId, RecordedStep)>,
    view: Option<View>,
    viewed_at_ms: i64,
    ended_at_ms: i64,
    /// Time that models took since the last call, in milliseconds.
    asked_ms: i64,
    checks: Vec<String>,
    answer: Option<String>,
}

impl RunReader {
    fn take(
        &mut self,
        entry: Entry,
        at_ms: i64,
        reader: &LogReader,
    ) -> Result<Result<(), NotLearned>, Failure> {
        match entry {
            Entry::RunStarted(started) => return self.started(&started, at_ms, reader),
            Entry::ScreenViewed(viewed) => self.viewed(&viewed, at_ms, reader)?,
            Entry::ModelReply(reply) => {
                self.asked_ms += i64::try_from(reply.took_ms).unwrap_or(i64::MAX / 2);
            }
            Entry::ToolCalled(_) if self.steps.len() >= MAX_CALLS => {
                return Ok(Err(unrepeatable("it made more calls than are learned")));
            }
            Entry::ToolCalled(called) => {
                let waited = self.viewed_at_ms - self.ended_at_ms - self.asked_ms;
                let open = UnendedCall {
                    call: called.call,
                    view: self.view.clone(),
                    commits: false,
                    form: None,
                    waited_ms: u64::try_from(waited).unwrap_or(0),
                };
                self.open.insert(called.effect, open);
            }
            Entry::GateVerdict(verdict) => {
                if let Some(open) = self.open.get_mut(&verdict.effect) {
                    open.commits = commits(&verdict.verdict, verdict.aim.as_ref());
                    open.form = verdict.aim.as_ref().and_then(sent_form);
                    if let Err(why) = keeps_secrets(&verdict, &open.call) {
                        return Ok(Err(why));
                    }
                }
            }
            Entry::ToolResulted(result) => self.resulted(result, at_ms, reader)?,
            Entry::Noted { kind, fact, .. } if kind == CHECK_MADE => self.checked(&fact.effect),
            Entry::RunEnded(ended) => match ended.ending {
                Ending::Reached { claim, strength } if strength >= Strength::Checked => {
                    self.answer = Some(claim.answer);
                }
                _ => return Ok(Err(unrepeatable("it did not end checked or verified"))),
            },
            Entry::Steered(_)
            | Entry::ToolsAdded(_)
            | Entry::TakeoverStarted(_)
            | Entry::ChildStarted(_)
            | Entry::BranchesStarted(_) => return Ok(Err(unrepeatable(more_than_calls(&entry)))),
            Entry::MandateSet(_)
            | Entry::WorkspaceRecorded(_)
            | Entry::RunResumed(_)
            | Entry::RunHandedOver(_)
            | Entry::RunParked(_)
            | Entry::CycleEnded(_)
            | Entry::CycleDropped(_)
            | Entry::ModelCall(_)
            | Entry::ApprovalAsked(_)
            | Entry::ApprovalAnswered(_)
            | Entry::ToolStarted(_)
            | Entry::ValueTaken(_)
            | Entry::WaitStarted(_)
            | Entry::WaitEnded(_)
            | Entry::RaceWon(_)
            | Entry::ChildEnded(_)
            | Entry::BudgetWarning(_)
            | Entry::TakeoverEnded(_)
            | Entry::Noted { .. } => {}
        }
        Ok(Ok(()))
    }

    fn started(
        &mut self,
        started: &RunStarted,
        at_ms: i64,
        reader: &LogReader,
    ) -> Result<Result<(), NotLearned>, Failure> {
        let goal = read(&started.goal, reader)?;
        if goal.origin != Origin::Person || started.parent.is_some() {
            return Ok(Err(unrepeatable("no person typed its goal")));
        }
        if started.forked_from.is_some() {
            return Ok(Err(unrepeatable("it is a fork of another run")));
        }
        for part in &started.context {
            if !is_usual(&read(part, reader)?) {
                return Ok(Err(unrepeatable("more came with its goal than its words")));
            }
        }
        if goal.text.contains(SECRET_MARK) {
            return Ok(Err(unrepeatable("its goal names a secret")));
        }
        self.command = goal.text;
        self.ended_at_ms = at_ms;
        let config: Option<CognitiveConfig> =
            serde_json::from_value((*started.loop_config).clone()).ok();
        if let Some(config) = config {
            self.place = config.start_url.as_deref().and_then(site);
            self.checks = config.checks.iter().map(ToString::to_string).collect();
        }
        match ScreenOptions::of(started.screen.as_ref()) {
            Some(ScreenOptions::Desktop(DesktopOptions { display: None, .. })) => {
                let workspace = started.workspace.to_string_lossy().into_owned();
                self.place = Some(LearnedPlace::Desktop { workspace });
            }
            Some(ScreenOptions::Desktop(_)) => {
                return Ok(Err(unrepeatable("it worked on the display of a person")));
            }
            Some(ScreenOptions::Browser(_)) | None => {}
        }
        if started.screen.is_none() || self.place.is_none() {
            let workspace = started.workspace.to_string_lossy().into_owned();
            self.place.get_or_insert(LearnedPlace::Folder { workspace });
        }
        Ok(Ok(()))
    }

    fn viewed(
        &mut self,
        viewed: &ScreenViewed,
        at_ms: i64,
        reader: &LogReader,
    ) -> Result<(), Failure> {
        if viewed.is_error {
            return Ok(());
        }
        let text = read(&viewed.view, reader)?;
        if let Ok(view) = serde_json::from_str::<View>(&text) {
            if let Some(place @ LearnedPlace::Folder { .. }) = &mut self.place
                && self.steps.is_empty()
                && let Some(site) = site(&view.address)
            {
                *place = site;
            }
            self.view = Some(view);
            self.viewed_at_ms = at_ms;
        }
        Ok(())
    }

    fn resulted(
        &mut self,
        result: ToolResulted,
        at_ms: i64,
        reader: &LogReader,
    ) -> Result<(), Failure> {
        let Some(open) = self.open.remove(&result.effect) else {
            return Ok(());
        };
        self.ended_at_ms = at_ms;
        self.asked_ms = 0;
        if result.claim.is_some() {
            return Ok(());
        }
        let origin = Origin::Tool {
            name: open.call.tool.clone(),
        };
        let value = result.value.as_ref().map(|value| read(value, reader));
        let observation = Observation {
            effect: result.effect.clone(),
            call_id: open.call.id.clone(),
            tool: open.call.tool.clone(),
            text: Text::new(read(&result.text, reader)?, origin),
            value: value.transpose()?,
            images: Vec::new(),
            is_error: result.is_error,
            verdict: result.verdict,
            artifacts: result.artifacts,
            claim: None,
        };
        let step = RecordedStep {
            view: open.view,
            call: open.call,
            observation,
            commits: open.commits,
            form: open.form,
            waited_ms: open.waited_ms,
        };
        self.steps.push((result.effect, step));
        Ok(())
    }

    /// Removes the last call from the steps, because it was made for a check.
    fn checked(&mut self, noted: &EffectId) {
        let before = |effect: &EffectId| {
            let (cycle, number) = (effect.path().first(), effect.path().get(1));
            cycle == noted.path().first()
                && number.map(|number| number + 1).as_ref() == noted.path().get(1)
        };
        if self.steps.last().is_some_and(|(effect, _)| before(effect)) {
            self.steps.pop();
        }
    }

    fn finish(self) -> Result<RecordedRun, NotLearned> {
        let not_over = || unrepeatable("it has not ended");
        Ok(RecordedRun {
            answer: self.answer.ok_or_else(not_over)?,
            place: self.place.ok_or_else(not_over)?,
            command: self.command,
            steps: self.steps.into_iter().map(|(_, step)| step).collect(),
            end: self.view,
            checks: self.checks,
        })
    }
}

fn read<T>(value: &gyrus_kernel::Inline<T>, reader: &LogReader) -> Result<T, Failure>
where
    T: serde::Serialize + serde::de::DeserializeOwned + Clone,
{
    Ok(value.read(|id| reader.blob(id).map_err(Stop::from))?)
}

/// Whether a part that came with the goal is one that gyrus adds by itself.
fn is_usual(part: &Part) -> bool {
    let hint = Origin::Tool {
        name: HINT.to_owned(),
    };
    match part {
        Part::Text(text) => {
            matches!(
                text.origin,
                Origin::Guidelines { .. }
                    | Origin::Skill { .. }
                    | Origin::Memory { .. }
                    | Origin::Lessons { .. }
                    | Origin::Kernel
                    | Origin::Configuration
            ) || text.origin == hint
        }
        Part::Image(_) | Part::Thinking(_) | Part::ToolCall(_) | Part::ToolResult(_) => false,
    }
}

pub(super) fn site(address: &str) -> Option<LearnedPlace> {
    Some(LearnedPlace::Site {
        origin: origin(address)?,
        start: address.to_owned(),
    })
}

/// Returns scheme, host and port of an address of a page.
pub(crate) fn origin(address: &str) -> Option<String> {
    let url = url::Url::parse(address).ok()?;
    matches!(url.scheme(), "http" | "https").then(|| url.origin().ascii_serialization())
}

/// Whether a call commits somebody to something, by the gate's verdict and the element that the
/// call would touch.
pub(super) fn commits(verdict: &Verdict, aim: Option<&Aim>) -> bool {
    let sends = |aim: &Aim| {
        aim.starts.iter().any(|starts| match starts {
            Starts::Submits | Starts::Sends { .. } | Starts::Uploads { .. } => true,
            Starts::Answers { accepts } => *accepts,
            Starts::Closes { unsaved } => *unsaved,
            Starts::Looking
            | Starts::Launches { .. }
            | Starts::Follows { .. }
            | Starts::Opens { .. }
            | Starts::Types
            | Starts::Chooses { .. }
            | Starts::Acts => false,
        })
    };
    verdict.bare_risk() >= Risk::High || aim.is_some_and(sends)
}

/// Returns the form that an input on a page sends, or may send by a script.
pub(super) fn sent_form(aim: &Aim) -> Option<Form> {
    let may_send = |starts: &Starts| matches!(starts, Starts::Submits | Starts::Acts);
    let form = aim.form.clone()?;
    (aim.starts.iter().any(may_send) && !form.words.is_empty()).then_some(form)
}

fn keeps_secrets(verdict: &GateVerdict, call: &ToolCall) -> Result<(), NotLearned> {
    let element = verdict.aim.as_ref().and_then(|aim| aim.element.as_ref());
    let is_masked = element.is_some_and(|aimed| aimed.states.contains(&ElementState::Masked));
    let types = verdict.aim.as_ref().is_some_and(|aim| {
        let fills = |one: &Starts| matches!(one, Starts::Types | Starts::Chooses { .. });
        aim.starts.iter().any(fills)
    });
    if is_masked && types || call.arguments.to_string().contains(SECRET_MARK) {
        return Err(unrepeatable("it typed a secret, which is never kept"));
    }
    Ok(())
}
