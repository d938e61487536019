//! `browse`: screen work for a loop that does not see the screen. It is not a tool: the loop turns
//! it into a child run that thinks reactively, on the same screen, and the child's answer is the
//! result.

use std::sync::Arc;

use gyrus_contract::{
    ActionVerdict, Arguments, EffectId, GlobCall, Limits, Observation, OpenApplicationCall, Origin,
    ReadCall, ReadJournalCall, Repeat, SearchCall, Text, ToolCall, ToolSpec, schema_of,
};
use gyrus_kernel::{ChildOptions, Delegation, Ending, Run, Stop};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::{CognitiveConfig, reactive};

pub(crate) const BROWSE: &str = BrowseCall::TOOL;

/// The arguments of the call.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct BrowseCall {
    /// Says what to look for, what to fill in, what to answer.
    goal: String,
    /// The address to begin at.
    url: Option<String>,
}

impl Arguments for BrowseCall {
    const TOOL: &'static str = "browse";
    const EXAMPLE: &'static str =
        r#"{"goal": "find the price of the copper kettle", "url": "https://shop.example/"}"#;

    fn check(&self) -> Result<(), String> {
        is_no_empty_goal(&self.goal)
    }
}

/// The arguments of the call where the screen is a desktop, which has no addresses.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct BrowseDesktopCall {
    /// Says which program to use, what to do in it, what to answer.
    goal: String,
}

impl Arguments for BrowseDesktopCall {
    const TOOL: &'static str = BROWSE;
    const EXAMPLE: &'static str =
        r#"{"goal": "open notes.txt in the text editor and say its first line"}"#;

    fn check(&self) -> Result<(), String> {
        is_no_empty_goal(&self.goal)
    }
}

fn is_no_empty_goal(goal: &str) -> Result<(), String> {
    match goal.trim() {
        "" => Err("`goal` is empty".to_owned()),
        _ => Ok(()),
    }
}

/// Maximum number of turns of a child run, if its parent has that many left.
const TURNS: u64 = 60;

/// The tools that search before a plan; only a loop that has such a phase offers them.
pub(crate) const SEARCHES: [&str; 2] = ["search_docs", ReadJournalCall::TOOL];

/// The other tools for the phase before any change.
const READS: [&str; 4] = [ReadCall::TOOL, "list", GlobCall::TOOL, SearchCall::TOOL];

/// Returns the tools of a phase that only reads, with those named in `beside`.
pub(crate) fn only_reads(run: &Run, beside: &[&str]) -> Vec<Arc<ToolSpec>> {
    let wanted = |spec: &&Arc<ToolSpec>| {
        let name = spec.name.as_str();
        [&READS[..], &SEARCHES, beside]
            .iter()
            .any(|names| names.contains(&name))
    };
    run.tools().iter().filter(wanted).cloned().collect()
}

fn has_screen(run: &Run) -> bool {
    run.tools()
        .iter()
        .any(|spec| spec.name == reactive::OF_EVERY_SCREEN)
}

/// Whether the run's screen is a desktop and not a browser.
fn has_desktop(run: &Run) -> bool {
    let mut tools = run.tools().iter();
    tools.any(|spec| spec.name == OpenApplicationCall::TOOL)
}

/// Returns the tools offered to a loop that does not see the screen: the run's tools, with `browse`
/// in place of those that need a look at the screen before each use.
pub(crate) fn specs(run: &Run) -> Vec<Arc<ToolSpec>> {
    let has_screen = has_screen(run);
    let offered = |spec: &Arc<ToolSpec>| {
        let name = spec.name.as_str();
        !(SEARCHES.contains(&name) || has_screen && reactive::is_of_screen(name))
    };
    let mut specs = run.offered_tools();
    specs.retain(offered);
    if has_screen {
        specs.push(Arc::new(if has_desktop(run) {
            desktop_spec()
        } else {
            spec()
        }));
    }
    specs
}

fn spec() -> ToolSpec {
    ToolSpec {
        name: BROWSE.to_owned(),
        description: "Lets a helper, who knows only this goal, click and type in the browser."
            .to_owned(),
        parameters: schema_of::<BrowseCall>(),
        touches: Vec::new(),
        repeat: Repeat::Never,
    }
}

fn desktop_spec() -> ToolSpec {
    ToolSpec {
        description: "Lets a helper, who knows only this goal, use the programs of the desktop."
            .to_owned(),
        parameters: schema_of::<BrowseDesktopCall>(),
        ..spec()
    }
}

/// Executes a call of a loop that was offered [`specs`]. `left_at` is the address at which the
/// previous run of the session left the screen.
pub(crate) async fn call(
    run: &mut Run,
    call: &ToolCall,
    left_at: Option<&str>,
) -> Result<Observation, Stop> {
    if call.tool == BROWSE && has_screen(run) {
        browse(run, call, left_at).await
    } else {
        run.call(call).await
    }
}

/// Delegates the goal to a child and waits for its answer.
async fn browse(
    run: &mut Run,
    call: &ToolCall,
    left_at: Option<&str>,
) -> Result<Observation, Stop> {
    let effect = EffectId::cycle(run.cycle());
    let observation = |text, is_error, verdict| Observation {
        effect,
        call_id: call.id.clone(),
        tool: BROWSE.to_owned(),
        text,
        value: None,
        images: Vec::new(),
        is_error,
        verdict,
        artifacts: Vec::new(),
        claim: None,
    };
    let parsed = if has_desktop(run) {
        BrowseDesktopCall::parse(&call.arguments).map(|call| (call.goal, None))
    } else {
        BrowseCall::parse(&call.arguments).map(|call| (call.goal, call.url))
    };
    let (goal, url) = match parsed {
        Ok(parsed) => parsed,
        Err(wrong) => {
            let words = Text::new(wrong.to_string(), Origin::Kernel);
            return Ok(observation(words, true, ActionVerdict::Refused));
        }
    };
    let mut config = CognitiveConfig::reactive();
    let url = url.as_deref().map(str::trim);
    if let Some(url) = url.filter(|url| !url.is_empty()) {
        config = config.with_start_url(url);
    }
    if let Some(address) = left_at {
        config.left_at = Some(address.to_owned());
    }
    let loop_config: Value = serde_json::to_value(&config).map_err(|error| {
        Stop::Failed(format!("the configuration of a child is not JSON: {error}"))
    })?;
    let delegated = run
        .delegate(Delegation {
            goal: goal.trim().to_owned(),
            cognitive_loop: config.strategy.loop_name().to_owned(),
            loop_config,
            limits: Limits {
                steps: Some(TURNS),
                ..Limits::default()
            },
            options: ChildOptions::default(),
        })
        .await?;
    let reached = matches!(&delegated.ending, Ending::Reached { .. });
    Ok(observation(
        delegated.answer,
        !reached,
        ActionVerdict::CannotTell,
    ))
}
