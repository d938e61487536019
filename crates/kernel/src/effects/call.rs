//! Calling a tool: resolve, judge, clear, and only then execute.

use std::{path::Path, sync::Arc};

use gyrus_contract::{
    Aim, Arguments, Decision, Digest, EffectId, FindToolsCall, FoundTools, NamedFile, Observation,
    Origin, ResolvedCall, ResolvedProgram, Risk, Starts, Text, Tool, ToolCall, ToolSpec, Touch,
    Unresolvable, Verdict, quoted_word, quoted_words,
};
use gyrus_text::{one_line, shorten};
use serde::Deserialize;
use serde_json::Value;

use super::{
    approval,
    assess::Looks,
    destinations::{ConnectionQuestions, use_permits},
    execute, folder,
    form_lines::form_lines,
    hooks::{CallHooks, HOOKS_RAN},
    judge::JudgedCall,
    named_files,
    server_requests::CallRequests,
    unknown_tool, withheld,
};
use crate::{
    APPROVAL_REFUSED, ApprovalAnswered, ApprovalCard, CallEnd, EffectError, Entry, GateVerdict,
    RunStarted, Stop, ToolCalled, ToolResulted, ToolStarted,
    abandoned::count_abandoned,
    core::Core,
    recorded::diverges,
    run::NumberedEffect,
    unknown::{self, CUT_OFF_BEFORE},
};

/// Number of characters of arguments that a description shows.
const SHOWN: usize = 200;

/// Number of characters of a program's arguments that the sentence of a card shows.
const SHOWN_WORDS: usize = 300;

/// The reason why a person is asked about a call that they approved before a crash.
const BEGUN_BEFORE: &str = "it was begun before, and cut off by a crash";

/// Describes a call in one line, for a person who compares two calls.
pub(crate) fn describe(call: &ToolCall) -> String {
    let arguments = call.arguments.to_string();
    format!(
        "calling `{}` with {}",
        call.tool,
        shorten(&arguments, SHOWN)
    )
}

/// The recorded entries of a call.
#[derive(Debug)]
struct PastCall {
    called: bool,
    judged: Option<GateVerdict>,
    looks: Looks,
    /// Entries of the question about the call's changes.
    changes: Vec<Entry>,
    approval: approval::PastQuestions,
    /// The files that the latest card named.
    shown: Vec<NamedFile>,
    connections: ConnectionQuestions,
    requests: CallRequests,
    started: Option<ToolStarted>,
    resulted: Option<ToolResulted>,
    hooks: CallHooks,
}

impl PastCall {
    fn read(core: &Core, begun: NumberedEffect, call: &ToolCall) -> Result<(EffectId, Self), Stop> {
        let effect = begun.effect;
        let asking = withheld::asking(&effect);
        let within = core.recorded.lock().take_within(&effect);
        let about_changes = |entry: &Entry| entry.effect() == Some(&asking);
        let (changes, mut within) = within.into_iter().partition(about_changes);
        let (requests, paid) = CallRequests::recorded(&effect, &mut within);
        count_abandoned(core, &paid)?;
        let mut past = Self {
            called: false,
            judged: None,
            connections: ConnectionQuestions::recorded(core, &effect, call, &mut within),
            looks: Looks::recorded(within),
            changes,
            requests,
            approval: approval::PastQuestions::default(),
            shown: Vec::new(),
            started: None,
            resulted: None,
            hooks: CallHooks::default(),
        };
        for entry in begun.past {
            match entry {
                Entry::ToolCalled(called) if called.call == *call => past.called = true,
                other if !past.called => return Err(diverges(&effect, &other, describe(call))),
                Entry::GateVerdict(judged) => {
                    // The call was resolved differently this time: earlier questions and answers
                    // were about something else.
                    past.approval.forget();
                    past.judged = Some(judged);
                    past.looks.judged();
                }
                Entry::ToolStarted(started) => {
                    past.approval.use_up();
                    use_permits(core, past.connections.command());
                    past.started = Some(started);
                }
                Entry::ToolResulted(resulted) => past.resulted = Some(resulted),
                // A verdict is judged again by every process; answers about what an earlier one
                // resolved differently do not count.
                Entry::ApprovalAsked(_) | Entry::ApprovalAnswered(_) => {
                    if let Some(judged) = &past.judged {
                        if matches!(entry, Entry::ApprovalAsked(_)) {
                            past.shown.clone_from(&judged.files);
                        }
                        let digest = judged.digest(call);
                        past.approval.read(core, &effect, entry, &digest)?;
                    }
                }
                Entry::Noted { kind, fact, .. } if kind == HOOKS_RAN => {
                    past.hooks.read(&kind, &fact);
                }
                Entry::Noted { kind, .. }
                    if kind == APPROVAL_REFUSED || kind == folder::FOLDER_RECORDED => {}
                other => return Err(diverges(&effect, &other, describe(call))),
            }
        }
        Ok((effect, past))
    }

    /// Adds to a card the changes in the files of the call since the last card.
    fn show_changes(
        &mut self,
        core: &Core,
        files: &[NamedFile],
        card: &mut ApprovalCard,
    ) -> Result<(), Stop> {
        if self.approval.has_asked() {
            let changed = named_files::changed(core, &self.shown, files);
            card.reasons.splice(0..0, changed.reasons);
            card.details.splice(0..0, changed.details);
        }
        files.clone_into(&mut self.shown);
        named_files::keep(core, files)
    }
}

/// Decides whether an input may go to the measured target; the error is the reason why not. It must
/// depend on nothing else but what the journal holds.
pub type ExpectedAim<'a> = &'a (dyn Fn(&Aim) -> Result<(), String> + Send + Sync);

pub(crate) async fn perform(
    core: &Core,
    begun: NumberedEffect,
    call: &ToolCall,
    expected: Option<ExpectedAim<'_>>,
) -> Result<Observation, Stop> {
    let (effect, mut past) = PastCall::read(core, begun, call)?;
    if let Some(resulted) = past.resulted.take() {
        past.looks.pay(core)?;
        let tool = core.tool(&call.tool);
        if past.started.is_some()
            && tool.is_some_and(|tool| tool.spec().touches(Touch::changes_workspace))
        {
            core.shared().world_changed = true;
        }
        return concluded(core, call, past, resulted).await;
    }
    core.may_act()?;
    if !past.called {
        let called = ToolCalled {
            effect: effect.clone(),
            call: call.clone(),
        };
        core.log.append(called)?;
    }
    core.shared().open_calls.push(effect.clone());
    let resulted = live(core, &effect, (call, expected), &mut past).await?;
    past.looks.pay(core)?;
    core.shared().open_calls.retain(|open| *open != effect);
    if let Some(tool) = core.tool(&call.tool) {
        folder::record(core, &effect, &*tool)?;
    }
    core.log.append(resulted.clone())?;
    let refusing = past.connections.refuse_answers(core, &resulted.pending);
    Box::pin(refusing).await?;
    Box::pin(past.requests.refuse_answers(core)).await?;
    past.hooks.ask_after(core, call, &resulted).await?;
    concluded(core, call, past, resulted).await
}

/// Returns the loop's observation of a call with an outcome, once its withheld changes are decided.
async fn concluded(
    core: &Core,
    call: &ToolCall,
    mut past: PastCall,
    resulted: ToolResulted,
) -> Result<Observation, Stop> {
    let asked = std::mem::take(&mut past.changes);
    let note = match resulted.withheld {
        None => None,
        Some(_) => Box::pin(withheld::decide(core, &resulted.effect, asked, &resulted)).await?,
    };
    let mut seen = observe(core, call, &mut past, resulted).await?;
    for line in note.into_iter().chain(past.hooks.told(core)) {
        seen.text.text.push('\n');
        seen.text.text.push_str(&line);
    }
    Ok(seen)
}

async fn live(
    core: &Core,
    effect: &EffectId,
    (call, expected): (&ToolCall, Option<ExpectedAim<'_>>),
    past: &mut PastCall,
) -> Result<ToolResulted, Stop> {
    let Some(tool) = &core.tool(&call.tool) else {
        return Ok(execute::refused(
            core,
            effect,
            unknown_tool::told(core, call),
        ));
    };
    if let Some(why) = past.hooks.ask_before(core, effect, call).await? {
        return Ok(execute::refused(core, effect, why));
    }
    if let Some(resulted) = settled(core, effect, call, tool, past).await? {
        return Ok(resulted);
    }
    let attempt = past.started.as_ref().map_or(1, |past| past.attempt + 1);
    let through = match let_through(core, effect, (call, expected), &**tool, past).await {
        Ok(through) => through,
        Err(error) => return Ok(execute::refused(core, effect, error.handled()?)),
    };
    let sending = if tool.spec().touches(Touch::is_screen_input) {
        execute::PageData {
            to: core.sends_to(&through.resolved, through.risk),
            only_the_form: through.by == AllowedBy::Mandate,
        }
    } else {
        execute::PageData::default()
    };
    let allowed = execute::Clearance {
        sending,
        resolved: through.resolved,
        answer: through.answer,
        attempt,
    };
    // A command reads what it names; a person saw what the call would replace; and a call without
    // an id was decided before it, in a plan or a procedure.
    let is_known = through.by == AllowedBy::Person || call.id.is_empty();
    if is_known || allowed.resolved.command.is_some() {
        core.shared().know_named(&allowed.resolved);
    }
    // Boxed for the same reason as asking a model: most waiting is done before.
    Box::pin(execute::start(
        core,
        effect,
        tool,
        allowed,
        (&mut past.connections, &mut past.requests),
    ))
    .await
}

/// A call that was allowed.
struct Through {
    resolved: ResolvedCall,
    /// The person's answer beside the approval.
    answer: Option<String>,
    risk: Risk,
    by: AllowedBy,
}

/// The reason for which a call was allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AllowedBy {
    /// The mandate, which includes the call.
    Mandate,
    /// The gate: risk, mode, policy and grants.
    Gate,
    Person,
}

/// Returns the call with the person's answer, once it is allowed, or else the reason for the model.
/// After every answer the call is resolved and judged again: a person may
/// take hours, and the world and the policy may change meanwhile.
async fn let_through(
    core: &Core,
    effect: &EffectId,
    (call, expected): (&ToolCall, Option<ExpectedAim<'_>>),
    tool: &dyn Tool,
    past: &mut PastCall,
) -> Result<Through, EffectError<String>> {
    let spec = tool.spec();
    loop {
        let resolved = resolve(core, call, tool, expected).await?;
        let judged = CallToJudge {
            call,
            spec,
            resolved: &resolved,
        };
        let (mut verdict, by) = judge(core, effect, judged, past)?;
        let (aim, risk) = (resolved.aim.as_ref(), verdict.bare_risk());
        if (by == AllowedBy::Mandate || risk >= Risk::High) && is_unknown(core, aim) {
            verdict.decision = verdict.decision.max(Decision::Ask);
            verdict.reasons.push(CUT_OFF_BEFORE.to_owned());
        }
        past.hooks.make_stricter(&mut verdict);
        let again = past.looks.again(core, effect, &resolved, &mut verdict);
        let says = Box::pin(again).await?;
        let reasons = verdict.reasons.join("; ");
        match verdict.decision {
            Decision::Allow => {
                return Ok(Through {
                    resolved,
                    answer: None,
                    risk: verdict.risk,
                    by,
                });
            }
            Decision::Deny => {
                let why = format!("what it allows is denied: {reasons}");
                approval::refuse_all(core, effect, &why).await?;
                let why = format!("this call is not allowed: {reasons}");
                return Err(EffectError::Failed(why));
            }
            Decision::Ask => {}
        }
        if let Some(answer) = past.approval.answer(core) {
            if let (true, Some(aim)) = (answer.approved, aim) {
                core.shared()
                    .state
                    .unknown
                    .retain(|unknown| !unknown.is_like(aim));
            }
            return if answer.approved {
                Ok(Through {
                    resolved,
                    answer: answer.reason,
                    risk: verdict.risk,
                    by: AllowedBy::Person,
                })
            } else {
                Err(EffectError::Failed(denial(&answer, &reasons)))
            };
        }
        let digest = Digest::of_json(&resolved);
        let mut card = card_with_preview(core, tool, judged, verdict)?;
        card.details.extend(says);
        if past.started.is_some() {
            card.reasons.push(BEGUN_BEFORE.to_owned());
        }
        past.show_changes(core, &resolved.files, &mut card)?;
        approval::ask(core, effect, digest, card, &mut past.approval).await?;
    }
}

/// Resolves a call, and measures the target of an input.
async fn resolve(
    core: &Core,
    call: &ToolCall,
    tool: &dyn Tool,
    expected: Option<ExpectedAim<'_>>,
) -> Result<ResolvedCall, EffectError<String>> {
    let spec = tool.spec();
    let unresolvable = |error: Unresolvable| EffectError::Failed(error.reason);
    let gate = &core.kernel.organs().gate;
    let resolved = gate.resolve(call, spec, core.place());
    let mut resolved = resolved.map_err(unresolvable)?;
    tool.check(&resolved.arguments).map_err(unresolvable)?;
    if spec.touches(Touch::is_screen_input) {
        let _acting = core.acting().await?;
        resolved.aim = tool.aim(call).await.map_err(unresolvable)?;
        redact_form(core, &mut resolved);
    }
    if let (Some(is_expected), Some(aim)) = (expected, &resolved.aim) {
        is_expected(aim).map_err(EffectError::Failed)?;
    }
    Ok(resolved)
}

/// Replaces known secrets among the values of a form, which are recorded.
fn redact_form(core: &Core, resolved: &mut ResolvedCall) {
    let redactor = &core.kernel.organs().redactor;
    let form = resolved.aim.as_mut().and_then(|aim| aim.form.as_mut());
    let controls = form.and_then(|form| form.sends.as_mut());
    for control in controls.into_iter().flat_map(|sends| &mut sends.controls) {
        for text in control.value.iter_mut().chain([&mut control.shown]) {
            *text = redactor.redact(text).into_owned();
        }
    }
}

/// Whether a similar input was interrupted before.
fn is_unknown(core: &Core, aim: Option<&Aim>) -> bool {
    let shared = core.shared();
    aim.is_some_and(|aim| {
        shared
            .state
            .unknown
            .iter()
            .any(|unknown| unknown.is_like(aim))
    })
}

/// Returns the outcome of a call that a crash interrupted, unless it is to be called again.
async fn settled(
    core: &Core,
    effect: &EffectId,
    call: &ToolCall,
    tool: &Arc<dyn Tool>,
    past: &PastCall,
) -> Result<Option<ToolResulted>, Stop> {
    let (Some(started), Some(judged)) = (&past.started, &past.judged) else {
        return Ok(None);
    };
    let cut_off = execute::CutOff {
        tool,
        started,
        resolved: judged.resolved(call),
    };
    Box::pin(execute::settle(core, effect, cut_off)).await
}

#[derive(Clone, Copy)]
struct CallToJudge<'a> {
    call: &'a ToolCall,
    spec: &'a ToolSpec,
    resolved: &'a ResolvedCall,
}

/// Judges under the present policy; a recorded verdict on the same call only counts if it is
/// stricter. Questions about something else are forgotten.
fn judge(
    core: &Core,
    effect: &EffectId,
    what: CallToJudge<'_>,
    past: &mut PastCall,
) -> Result<(Verdict, AllowedBy), Stop> {
    let CallToJudge {
        call,
        spec,
        resolved,
    } = what;
    let JudgedCall {
        mut verdict,
        mandated,
    } = core.judge(call, resolved, spec, Some(effect))?;
    let by = match mandated {
        Some(_) => AllowedBy::Mandate,
        None => AllowedBy::Gate,
    };
    match &past.judged {
        Some(before) if before.digest(call) == Digest::of_json(resolved) => {
            let before = &before.verdict;
            verdict.decision = verdict.decision.max(before.decision);
            verdict.risk = verdict.risk.max(before.risk);
            if verdict.decision == before.decision {
                return Ok((verdict, by));
            }
        }
        _ => past.approval.forget(),
    }
    let containment = match resolved
        .command
        .as_ref()
        .and_then(|command| command.containment.as_ref())
    {
        None => None,
        Some(containment) => {
            let json =
                serde_json::to_vec(containment).map_err(|error| Stop::Failed(error.to_string()))?;
            Some(core.log.put_blob(&json)?)
        }
    };
    let judged = GateVerdict {
        mandated,
        ..GateVerdict::on(
            effect.clone(),
            call,
            resolved.clone(),
            containment,
            verdict.clone(),
        )
    };
    core.log.append(judged.clone())?;
    past.judged = Some(judged);
    past.looks.judged();
    Ok((verdict, by))
}

/// Returns the card about a call, with a preview of its changes if the tool can make one.
fn card_with_preview(
    core: &Core,
    tool: &dyn Tool,
    judged: CallToJudge<'_>,
    verdict: Verdict,
) -> Result<ApprovalCard, Stop> {
    let CallToJudge {
        call,
        spec,
        resolved,
    } = judged;
    let mut card = card(spec, call, resolved, &core.started, verdict);
    if let Some(change) = tool.preview(resolved, core.place().workspace) {
        let redacted = core.kernel.organs().redactor.redact(&change);
        card.details = vec![Text::new(redacted, Origin::Model)];
    }
    card.details.extend(named_files::lines(&resolved.files));
    card.reasons.extend(core.origins(resolved, spec)?);
    Ok(card)
}

fn card(
    spec: &ToolSpec,
    call: &ToolCall,
    resolved: &ResolvedCall,
    started: &RunStarted,
    verdict: Verdict,
) -> ApprovalCard {
    let workspace = &*started.workspace;
    let origin = if is_typed(&started.loop_config, &call.arguments) {
        Origin::Person
    } else {
        Origin::Model
    };
    if let Some((touch, argument)) = asks_a_person(spec) {
        return question_card(touch, argument, resolved);
    }
    if let Some(program) = resolved
        .command
        .as_ref()
        .and_then(|command| command.program.as_ref())
    {
        return as_user_card(program, resolved, workspace, verdict);
    }
    let wants = wants(spec, resolved, verdict.risk);
    ApprovalCard {
        // A path may have line breaks, after which its words would pass for those of gyrus.
        sentence: one_line(&format!("The tool `{}` wants to {wants}", spec.name)).into_owned(),
        reasons: verdict.reasons,
        details: details(call, resolved, origin),
        wider: verdict.wider,
        ..ApprovalCard::default()
    }
}

/// Returns what a person reads on the page of an input, and the arguments, one a line.
fn details(call: &ToolCall, resolved: &ResolvedCall, origin: Origin) -> Vec<Text> {
    let aimed = resolved.aim.as_ref().map(|aim| aim.element.is_some());
    let is_said = |name: &str| match name {
        "fill" => aimed.is_some(),
        "on" => aimed == Some(true),
        _ => false,
    };
    let mut details = form_lines(resolved);
    let arguments: Vec<Text> = match call.arguments.as_object() {
        Some(arguments) => arguments
            .iter()
            .filter(|(name, _)| !is_said(name))
            .map(|(name, value)| {
                let value = value
                    .as_str()
                    .map_or_else(|| value.to_string(), str::to_owned);
                Text::new(format!("{name}: {value}"), origin.clone())
            })
            .collect(),
        None => vec![Text::new(call.arguments.to_string(), origin)],
    };
    details.extend(arguments);
    details
}

/// Returns what a call wants to do, and where: the end of a card's sentence.
fn wants(spec: &ToolSpec, resolved: &ResolvedCall, risk: Risk) -> String {
    let leaves = |starts: &Starts| matches!(starts, Starts::Opens { .. });
    let stays = |aim: &&Aim| !aim.starts.iter().any(leaves);
    let paths = resolved.paths.values();
    let paths: Vec<_> = paths.map(|path| path.real.display().to_string()).collect();
    let changes = spec.touches.iter().any(Touch::changes_world);
    let connects = |touch: &Touch| matches!(touch, Touch::Connects(_));
    let opens = resolved.aim.is_some() || spec.touches.iter().any(connects);
    let wants = match resolved.aim.as_ref().filter(stays) {
        Some(aim) => format!("make an input on {}", aim.origin),
        None if resolved.command.is_some() => "run a command".to_owned(),
        None if !paths.is_empty() && changes => format!("change {}", paths.join(", ")),
        None if !paths.is_empty() => format!("read {}", paths.join(", ")),
        None if opens => "open an address".to_owned(),
        None if changes => "make a change".to_owned(),
        None => "look at something".to_owned(),
    };
    match risk {
        Risk::Critical => format!("{wants}, which is asked every time"),
        Risk::Safe | Risk::Moderate | Risk::High => wants,
    }
}

/// Whether the person typed all texts among the arguments for the run: a check, or a command that
/// verifies or judges.
fn is_typed(loop_config: &Value, arguments: &Value) -> bool {
    let texts = arguments.as_object().into_iter().flatten();
    let mut texts = texts.filter_map(|(_, value)| value.as_str()).peekable();
    texts.peek().is_some() && texts.all(|text| has_text(loop_config, text))
}

/// Whether a value contains a text, alone or after the kind of a check, as in `cmd:cargo test`.
fn has_text(value: &Value, text: &str) -> bool {
    match value {
        Value::String(typed) => {
            typed == text || typed.split_once(':').is_some_and(|(_, rest)| rest == text)
        }
        Value::Array(values) => values.iter().any(|value| has_text(value, text)),
        Value::Object(fields) => fields.values().any(|value| has_text(value, text)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Creates a card that asks for words.
fn question_card(touch: &Touch, argument: &str, resolved: &ResolvedCall) -> ApprovalCard {
    let question = resolved.arguments[argument].as_str().unwrap_or_default();
    let mut details = vec![Text::new(question, Origin::Model)];
    // Any other list holds the answers to choose from.
    let lists = resolved.arguments.as_object().into_iter().flatten();
    for choices in lists.filter_map(|(_, value)| value.as_array()) {
        let texts = choices.iter().filter_map(|choice| choice.as_str());
        details.extend(
            (1..)
                .zip(texts)
                .map(|(number, choice)| Text::new(format!("{number}. {choice}"), Origin::Model)),
        );
    }
    ApprovalCard {
        sentence: if matches!(touch, Touch::HandsOver(_)) {
            "The agent asks you to take over its browser: gyrus take".to_owned()
        } else {
            "The agent asks you a question".to_owned()
        },
        details,
        question: true,
        ..ApprovalCard::default()
    }
}

/// Creates a card about a program that is to run with the person's own rights. Its arguments are
/// the model's: in the sentence they are quoted, and below it each stands on a line of its own.
fn as_user_card(
    program: &ResolvedProgram,
    resolved: &ResolvedCall,
    workspace: &Path,
    verdict: Verdict,
) -> ApprovalCard {
    let lists = resolved.arguments.as_object().into_iter().flatten();
    let arguments: Vec<String> = lists
        .filter_map(|(_, value)| value.as_array())
        .flatten()
        .filter_map(|word| word.as_str().map(str::to_owned))
        .collect();
    let name = program.path.file_name().unwrap_or_default();
    let words = quoted_words(&program.path, &arguments);
    let mut shown = shorten(&words, SHOWN_WORDS);
    if shown != words {
        shown += " (all of it stands below)";
    }
    let linked = if program.real == program.path {
        String::new()
    } else {
        format!(" (which is {})", program.real.display())
    };
    let sentence = format!(
        "Run the program {}{linked} with your own rights, outside of the sandbox, in {}, as: {shown}",
        name.display(),
        workspace.display(),
    );
    let mut details = vec![format!("program: {}", program.path.display())];
    let numbered = (1..).zip(&arguments);
    details
        .extend(numbered.map(|(number, word)| format!("argument {number}: {}", quoted_word(word))));
    if let Some(reason) = resolved.arguments["reason"].as_str() {
        details.push(format!("reason: {reason}"));
    }
    ApprovalCard {
        sentence: one_line(&sentence).into_owned(),
        reasons: verdict.reasons,
        details: details
            .into_iter()
            .map(|line| Text::new(line, Origin::Model))
            .collect(),
        wider: verdict.wider,
        ..ApprovalCard::default()
    }
}

/// Returns the touch that asks a person, with the argument for the question.
fn asks_a_person(spec: &ToolSpec) -> Option<(&Touch, &str)> {
    let mut touches = spec.touches.iter();
    touches.find_map(|touch| Some((touch, touch.question()?)))
}

fn denial(answer: &ApprovalAnswered, reasons: &str) -> String {
    match (&answer.by, &answer.reason) {
        (Some(_), Some(words)) => {
            format!("a person denied this call and says: {words}\nDo not ask for it again.")
        }
        (Some(_), None) => {
            "a person denied this call. Do not ask for it again; find another way or say what is \
             missing."
                .to_owned()
        }
        (None, _) => format!(
            "this call needs a person's yes and nobody can be asked ({reasons}). Do not ask for \
             it again; do what you can without it, then finish and say what was missing."
        ),
    }
}

/// Notes the tools of servers that a search has found, or the one that a call named: models are
/// offered them from then on.
fn note_found_tools(core: &Core, call: &ToolCall, value: Option<&Value>) {
    let names = if call.tool == FindToolsCall::TOOL {
        let found = value.and_then(|value| FoundTools::deserialize(value).ok());
        found.map_or_else(Vec::new, |found| found.tools)
    } else {
        vec![call.tool.clone()]
    };
    // One that was found may join the run only at the next cycle.
    let served = names.into_iter().filter(|name| {
        let tool = core.tool(name);
        tool.is_none_or(|tool| tool.spec().is_served())
    });
    core.shared().state.found_tools.extend(served);
}

async fn observe(
    core: &Core,
    call: &ToolCall,
    past: &mut PastCall,
    resulted: ToolResulted,
) -> Result<Observation, Stop> {
    if let Some(judged) = &past.judged {
        if resulted.settled == CallEnd::Done {
            core.shared().know_named(&judged.resolved(call));
        }
        unknown::add(&mut core.shared().state.unknown, judged, &resulted);
    }
    let mut text = resulted.text.load(&core.log)?;
    if !resulted.pending.is_empty() {
        let settling = past.connections.settle(core, &resulted.pending);
        text.push_str(&Box::pin(settling).await?);
    }
    // Gyrus's own explanation of a call that did not run is not untrusted text.
    let tool = core.tool(&call.tool);
    let spec = tool.as_ref().map(|tool| tool.spec());
    let asked = spec.is_some_and(|spec| asks_a_person(spec).is_some());
    // That something was remembered says nothing that the run did not know.
    let remembered = spec.is_some_and(|spec| spec.touches == [Touch::Remembers]);
    let origin = match resulted.settled {
        CallEnd::Done if asked && !resulted.is_error => Origin::Person,
        CallEnd::Done => {
            if resulted.is_error || !remembered {
                core.expose();
            }
            Origin::Tool {
                name: call.tool.clone(),
            }
        }
        CallEnd::Refused | CallEnd::Interrupted | CallEnd::Cancelled => Origin::Kernel,
    };
    let value = resulted.load_value(&core.log)?;
    note_found_tools(core, call, value.as_ref());
    Ok(Observation {
        effect: resulted.effect,
        call_id: call.id.clone(),
        tool: call.tool.clone(),
        text: Text::new(text, origin),
        value,
        images: resulted.images,
        is_error: resulted.is_error,
        verdict: resulted.verdict,
        artifacts: resulted.artifacts,
        claim: resulted.claim,
    })
}
