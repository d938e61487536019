//! `delegate`: parts of the work for sub-runs. It is not a tool: the loop turns each call into a child
//! run with a context of its own, several in one turn into children that work side by side. Their
//! answers are the results.

use std::sync::Arc;

use gyrus_contract::{
    ActionVerdict, Arguments, ChildModel, Digest, EffectId, FollowedSkill, Limits, Observation,
    Origin, Repeat, Text, ThinkingEffort, ToolCall, ToolSpec, own_tool_name, schema_of,
};
use gyrus_kernel::{Branch, ChildOptions, ChildResult, Delegation, Ending, Run, Stop};
use gyrus_text::counted;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{CognitiveConfig, DelegationConfig, SubRunRole};

/// The name of the call.
pub const DELEGATE: &str = DelegateCall::TOOL;

/// Default maximum number of steps of a sub-run.
const STEPS: u64 = 60;

/// Maximum length of a role's description for the model, in characters.
const DESCRIPTION: usize = 120;

/// The arguments of the call.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct DelegateCall {
    /// All that it must know: it sees nothing else.
    goal: String,
    role: Option<String>,
    /// Default: all of yours.
    tools: Option<Vec<String>>,
    model: Option<String>,
    effort: Option<String>,
    max_steps: Option<u64>,
    max_tokens: Option<u64>,
    /// It works on a copy of the last commit, which comes back as a branch.
    #[serde(default)]
    worktree: bool,
}

impl Arguments for DelegateCall {
    const TOOL: &'static str = "delegate";
    const EXAMPLE: &'static str = r#"{"goal": "say which files in src/ read the configuration", "tools": ["search", "read"]}"#;

    fn check(&self) -> Result<(), String> {
        if self.goal.trim().is_empty() {
            return Err("`goal` is empty".to_owned());
        }
        match (self.max_steps, self.max_tokens) {
            (Some(0), _) | (_, Some(0)) => Err("a limit of 0 leaves nothing to do".to_owned()),
            _ => Ok(()),
        }
    }
}

/// Returns the specification of the call, if the model is offered sub-runs.
pub(crate) fn spec(config: &CognitiveConfig) -> Option<Arc<ToolSpec>> {
    let delegation = config
        .delegation
        .as_ref()
        .filter(|terms| !terms.is_unoffered)?;
    let mut parameters = schema_of::<DelegateCall>();
    let properties = parameters["properties"].as_object_mut()?;
    let mut choices = |name: &str, choices: Vec<&str>| {
        if choices.is_empty() {
            properties.remove(name);
        } else {
            properties.insert(name.to_owned(), json!({"enum": choices}));
        }
    };
    let models = delegation.models.iter().map(String::as_str);
    choices("model", models.collect());
    let roles = delegation.roles.keys().map(String::as_str);
    choices("role", roles.collect());
    let mut description =
        "Has a sub-run do a part of the work. Several in one reply work side by side.".to_owned();
    for (name, role) in &delegation.roles {
        let about = gyrus_text::shorten(role.description.trim(), DESCRIPTION);
        description.push_str(&format!(" {name}: {about}"));
    }
    Some(Arc::new(ToolSpec {
        name: DELEGATE.to_owned(),
        description,
        parameters,
        touches: Vec::new(),
        repeat: Repeat::Never,
    }))
}

/// Starts the sub-runs of these calls, as many side by side as is allowed, and returns their answers
/// in the order of the calls.
pub(crate) async fn call_all(
    run: &mut Run,
    config: &CognitiveConfig,
    calls: Vec<&ToolCall>,
) -> Result<Vec<Observation>, Stop> {
    let at_once = config.delegation.as_ref().map_or(1, |terms| terms.at_once);
    let mut seen = Vec::with_capacity(calls.len());
    for some in calls.chunks(at_once.max(1)) {
        if let [call] = some {
            seen.push(call_one(run, config, call).await?);
            continue;
        }
        let branches = some.iter().map(|call| -> Branch<'static, Observation> {
            let (config, call) = (config.clone(), ToolCall::clone(call));
            Box::new(move |run| Box::pin(async move { call_one(run, &config, &call).await }))
        });
        let branches = branches.collect();
        seen.extend(run.branches(branches).await?);
    }
    Ok(seen)
}

async fn call_one(
    run: &mut Run,
    config: &CognitiveConfig,
    call: &ToolCall,
) -> Result<Observation, Stop> {
    let effect = EffectId::cycle(run.cycle());
    let work = DelegateCall::parse(&call.arguments).map_err(|error| error.to_string());
    let work = match work.and_then(|call| delegation(config, call)) {
        Ok(work) => work,
        Err(wrong) => return Ok(Observation::refused(effect, call, wrong)),
    };
    let done = run.delegate(work).await?;
    Ok(Observation {
        is_error: !matches!(done.ending, Ending::Reached { .. }),
        verdict: ActionVerdict::CannotTell,
        text: Text::new(result(&done), Origin::Run),
        ..Observation::refused(effect, call, "")
    })
}

/// Formats the answer of a sub-run, with its ending and its cost.
fn result(done: &ChildResult) -> String {
    let how = match &done.ending {
        Ending::Reached { strength, .. } => strength.word(),
        Ending::Failed { .. } => "failed",
        Ending::Limit { .. } => "at a limit",
        Ending::Stuck { .. } => "stuck",
        Ending::Stopped { .. } => "stopped",
        Ending::Waiting { .. }
        | Ending::Sleeping { .. }
        | Ending::ModelUnreachable { .. }
        | Ending::Interrupted => "cut off",
    };
    let spent = &done.spent;
    let brought_back = done.brought_back.iter();
    let brought_back: String = brought_back.map(|words| format!("; {words}")).collect();
    format!(
        "{}\n\n[sub-run {}: {how}; {}, {}{}{brought_back}]",
        done.answer.text.trim_end(),
        done.child.short(),
        counted(spent.steps, "step"),
        counted(spent.tokens, "token"),
        spent.cost.after(", ")
    )
}

/// Returns the work that a call delegates; the error is a sentence for the model.
fn delegation(config: &CognitiveConfig, call: DelegateCall) -> Result<Delegation, String> {
    let terms = config.delegation.as_ref().ok_or("this run starts none")?;
    let role = match &call.role {
        None => &SubRunRole::default(),
        Some(name) => terms.roles.get(name).ok_or_else(|| {
            let names: Vec<&str> = terms.roles.keys().map(String::as_str).collect();
            let names = if names.is_empty() {
                "none".to_owned()
            } else {
                names.join(", ")
            };
            format!("there is no role `{name}`; there are: {names}")
        })?,
    };
    if let Some(model) = call
        .model
        .as_ref()
        .filter(|name| !terms.models.contains(name))
    {
        return Err(format!(
            "`{model}` cannot be asked; leave `model` out, or name one of: {}",
            terms.models.join(", ")
        ));
    }
    let effort = call.effort.as_deref().map(|word| {
        let mut all = ThinkingEffort::ALL.into_iter();
        let found = all.find(|effort| effort.word() == word);
        found.ok_or_else(|| format!("`{word}` is not an effort"))
    });
    let effort = effort.transpose()?;
    let child = child_config(config, role);
    let loop_config: Value = serde_json::to_value(&child).map_err(|error| error.to_string())?;
    Ok(Delegation {
        goal: call.goal.trim().to_owned(),
        cognitive_loop: child.strategy.loop_name().to_owned(),
        loop_config,
        limits: Limits {
            steps: Some(call.max_steps.or(role.steps).unwrap_or(STEPS)),
            tokens: call.max_tokens,
            ..Limits::default()
        },
        options: ChildOptions {
            model: ChildModel {
                name: call.model.or_else(|| role.model.clone()),
                effort: effort.or(role.effort),
            },
            narrowed: narrowed(call.role.as_deref(), role, call.tools.as_deref()),
            has_worktree: call.worktree,
            most_runs: Some(terms.runs),
        },
    })
}

/// Returns the configuration of a sub-run's loop: a person's instructions for the run hold there, too.
fn child_config(config: &CognitiveConfig, role: &SubRunRole) -> CognitiveConfig {
    let mut child = CognitiveConfig::react();
    let instructions = [config.system_prompt.as_deref(), Some(&role.instructions)];
    let instructions = instructions.into_iter().flatten().map(str::trim);
    let instructions: Vec<&str> = instructions.filter(|text| !text.is_empty()).collect();
    if !instructions.is_empty() {
        child.system_prompt = Some(instructions.join("\n\n"));
    }
    if let Some(terms) = config.delegation.as_ref().filter(|terms| terms.depth > 1) {
        child.delegation = Some(Box::new(DelegationConfig {
            depth: terms.depth - 1,
            ..DelegationConfig::clone(terms)
        }));
    }
    child
}

/// Returns the tools to which a sub-run is limited: those that its role and its call both name.
fn narrowed(
    name: Option<&str>,
    role: &SubRunRole,
    asked: Option<&[String]>,
) -> Option<FollowedSkill> {
    let own = |names: &[String]| -> Vec<String> {
        let names = names.iter().map(|name| own_tool_name(name.trim()));
        names.map(str::to_owned).collect()
    };
    let of_role = role.tools.as_deref().map(own);
    let tools = match (of_role, asked.map(own)) {
        (None, None) => return None,
        (Some(one), None) | (None, Some(one)) => one,
        (Some(of_role), Some(mut asked)) => {
            asked.retain(|tool| of_role.contains(tool));
            asked
        }
    };
    Some(FollowedSkill {
        name: name.unwrap_or("sub-run").to_owned(),
        content: Digest::of_json(&tools),
        folder: None,
        tools: Some(tools),
        grants: Vec::new(),
    })
}
