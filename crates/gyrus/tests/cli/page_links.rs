//! Two hundred controls that act, in ten frameworks' ways, and two hundred that only go or open, in a
//! real browser before the real gate. One that acts is asked about, or what it sends is held.

use std::{path::Path, process::Stdio, sync::Arc};

use gyrus_contract::{
    BlobId, BoxedFuture, CapturedOutput, Cleared, CommandOutcome, CommandSpec, Decision, EffectId,
    Exit, Gate, Judgement, KeeperError, LookOptions, Mode, ResolvedCall, Screen, Site, Tool,
    ToolCall, ToolOutput, UnknownSecret, View,
};
use gyrus_gate::{OwnPaths, PolicyGate};
use gyrus_screen::{Browser, Launch, ProfileChoice, RunCommand};
use parking_lot::Mutex;
use serde_json::json;

use crate::{browsing::has_browser, http};

/// Words of controls that act.
const ACTS: [&str; 20] = [
    "Delete",
    "Delete row 4",
    "Pay 500 EUR now",
    "Place order",
    "Transfer 500 EUR",
    "Grant admin rights",
    "Remove member",
    "Publish article",
    "Send to everyone",
    "Buy now",
    "Approve invoice",
    "Revoke token",
    "Unsubscribe",
    "Deactivate account",
    "Empty trash",
    "Löschen",
    "Supprimer le compte",
    "Jetzt kaufen",
    "削除",
    "<i class=\"fa fa-trash\" style=\"display:inline-block;width:16px;height:16px\"></i>",
];

/// Ways of acting: `AT` is a number, `SAYS` the words. The first is the name.
const WAYS_TO_ACT: [(&str, &str); 10] = [
    ("plain", "<button onclick=\"act(AT)\">SAYS</button>"),
    (
        "form",
        "<form method=post action=/act/AT target=_blank><button>SAYS</button></form>",
    ),
    (
        "Rails",
        "<a href=/items/AT data-method=delete rel=nofollow class=ujs>SAYS</a>",
    ),
    (
        "Turbo",
        "<a href=/items/AT data-turbo-method=post class=ujs>SAYS</a>",
    ),
    (
        "htmx",
        "<a href=/items/AT hx-post=/act/AT class=ujs>SAYS</a>",
    ),
    (
        "Alpine",
        "<a href=/items/AT x-on:click.prevent=act(AT) class=ujs>SAYS</a>",
    ),
    ("React", "<a href=/items/AT class=root>SAYS</a>"),
    (
        "jQuery",
        "<a href=\"javascript:void(0)\" class=ujs>SAYS</a>",
    ),
    (
        "Angular",
        "<span role=button tabindex=0 class=own>SAYS</span>",
    ),
    ("Lit", "<x-act data-at=AT data-says='SAYS'></x-act>"),
];

/// Words of controls that only go somewhere, or open something here.
const GOES: [&str; 20] = [
    "Home",
    "Orders",
    "Order 4711",
    "Details",
    "Next",
    "2",
    "Settings",
    "Help",
    "About us",
    "Payment methods",
    "How to pay",
    "Deleted items",
    "Members",
    "Admin",
    "Show more",
    "Profile",
    "Search",
    "Invoices",
    "Überblick",
    "設定",
];

const WAYS_TO_GO: [(&str, &str); 10] = [
    ("link", "<a href=/go/AT>SAYS</a>"),
    ("fragment", "<a href=#top>SAYS</a>"),
    ("routed", "<a href=/go/AT class=routed>SAYS</a>"),
    ("listening", "<a href=/go/AT class=ownroute>SAYS</a>"),
    (
        "item",
        "<ul role=menu><li role=menuitem tabindex=0 class=opens>SAYS</li></ul>",
    ),
    (
        "tab",
        "<div role=tablist><button role=tab class=opens>SAYS</button></div>",
    ),
    ("summary", "<details><summary>SAYS</summary>More</details>"),
    (
        "button",
        "<button type=button aria-expanded=false class=opens>SAYS</button>",
    ),
    (
        "menu",
        "<button aria-haspopup=menu class=opens>SAYS</button>",
    ),
    (
        "get",
        "<a href=/go?page=AT&sort=name data-turbo-frame=list>SAYS</a>",
    ),
];

const SCRIPT: &str = "
const act = (at) => fetch('/act/' + at, { method: 'POST', body: 'done' });
const at = (one) => Number(one.closest('[data-c]').dataset.c);
document.addEventListener('click', (event) => {
  const link = event.target.closest('.ujs');
  if (link) { event.preventDefault(); act(at(link)); }
});
for (const kind of ['click', 'mousedown', 'mouseup', 'keydown', 'keyup', 'input', 'change', 'focusin', 'focusout', 'submit', 'dragstart', 'drop', 'copy', 'paste', 'wheel', 'touchstart', 'pointerdown']) {
  root.addEventListener(kind, (event) => {
    const link = kind === 'click' && event.target.closest('.root, .routed');
    if (!link) return;
    event.preventDefault();
    if (link.matches('.root')) act(at(link)); else history.pushState(null, '', link.href);
  });
}
for (const one of document.querySelectorAll('.own')) one.addEventListener('click', () => act(at(one)));
for (const one of document.querySelectorAll('.ownroute')) one.addEventListener('click', (event) => { event.preventDefault(); history.pushState(null, '', one.href); });
for (const one of document.querySelectorAll('.opens')) one.addEventListener('click', () => { one.ariaExpanded = 'true'; });
customElements.define('x-act', class extends HTMLElement {
  connectedCallback() {
    const inside = this.attachShadow({ mode: 'closed' });
    inside.innerHTML = `<button>${this.dataset.says}</button>`;
    inside.firstChild.addEventListener('click', () => act(this.dataset.at));
  }
});";

/// A page with all words in all ways, each control after a text with its number.
fn page(ways: &[(&str, &str)], words: &[&str]) -> String {
    let controls = ways.iter().enumerate().flat_map(|(way, (_, html))| {
        words.iter().enumerate().map(move |(word, says)| {
            let at = way * 20 + word;
            let html = html.replace("AT", &at.to_string()).replace("SAYS", says);
            format!("<section data-c={at}><p>control {at}</p>{html}</section>")
        })
    });
    let controls: String = controls.collect();
    format!(
        "<!doctype html><meta charset=utf-8><title>Controls</title><h1 id=top>Controls</h1>\
         <div id=root>{controls}</div><script>{SCRIPT}</script>"
    )
}

/// Runs the browser without a keeper; dropping the future ends it.
fn runs() -> RunCommand {
    Arc::new(|spec: CommandSpec| {
        Box::pin(async move {
            let failed = |error: std::io::Error| KeeperError::Keeper {
                reason: error.to_string(),
            };
            let mut command = tokio::process::Command::new(&spec.program);
            command.args(&spec.arguments).current_dir(&spec.folder);
            command.env_clear().envs(&spec.environment);
            command.stdin(Stdio::null()).stdout(Stdio::null());
            let child = command.stderr(Stdio::null()).kill_on_drop(true).spawn();
            let status = child.map_err(failed)?.wait().await.map_err(failed)?;
            Ok(CommandOutcome {
                exit: Exit::Code(status.code().unwrap_or(-1)),
                output: CapturedOutput::default(),
            })
        })
    })
}

/// A browser at a page whose origin the goal names.
struct Visit {
    browser: Arc<Browser>,
    tools: Vec<Arc<dyn Tool>>,
    goal: String,
    folder: tempfile::TempDir,
    sends_to: Vec<String>,
}

impl Site for Visit {
    fn withheld(&self, _: &Path) -> Option<String> {
        None
    }

    fn workspace(&self) -> &Path {
        self.folder.path()
    }

    fn answer(&self) -> Option<&str> {
        None
    }

    fn sends_to(&self) -> &[String] {
        &self.sends_to
    }

    fn reveal(&self, text: &str) -> Result<String, UnknownSecret> {
        Ok(text.to_owned())
    }

    fn keep(&self, bytes: &[u8]) -> Result<BlobId, String> {
        Ok(BlobId::of(bytes))
    }

    fn run_command(&self, _: CommandSpec) -> BoxedFuture<'_, Result<CommandOutcome, KeeperError>> {
        unreachable!("nothing is run")
    }
}

impl Visit {
    fn new(origin: &str) -> Self {
        let browser = Browser::new(Launch::default(), ProfileChoice::Ephemeral, runs());
        let browser = Arc::new(browser);
        Self {
            tools: gyrus_screen::tools(&browser),
            browser,
            goal: format!("look around at {origin}"),
            folder: tempfile::tempdir().unwrap(),
            sends_to: vec![origin.to_owned()],
        }
    }

    async fn look(&self) -> View {
        let look = LookOptions {
            frame: false,
            documents: 0,
        };
        self.browser.look(look).await.unwrap().view
    }

    /// Judges a call in mode `ask`.
    async fn judge(&self, name: &str, arguments: serde_json::Value) -> (ResolvedCall, Decision) {
        let mut tools = self.tools.iter();
        let tool = tools.find(|tool| tool.spec().name == name).unwrap();
        let call = ToolCall::new(name, arguments);
        let resolved = ResolvedCall {
            tool: call.tool.clone(),
            arguments: call.arguments.clone(),
            paths: Default::default(),
            command: None,
            files: Vec::new(),
            aim: tool.aim(&call).await.unwrap(),
        };
        let gate = PolicyGate::new(OwnPaths {
            own: Vec::new(),
            person: None,
        });
        let under = Judgement {
            agent: "main",
            workspace: self.workspace(),
            mode: Mode::Ask,
            exposed: true,
            throwaway: false,
            undoable: false,
            grants: &[],
            skills: &[],
            trusted: &[&self.goal],
            link_was_seen: false,
            mandated: None,
            has_mandate: false,
        };
        let decision = gate.judge(&resolved, tool.spec(), &under).decision;
        (resolved, decision)
    }

    async fn act(&self, call: ResolvedCall) -> ToolOutput {
        let mut tools = self.tools.iter();
        let tool = tools.find(|tool| tool.spec().name == call.tool).unwrap();
        #[expect(
            clippy::disallowed_methods,
            reason = "the test stands in for the kernel"
        )]
        let cleared = Cleared::mint(call, EffectId::cycle(1).then(1));
        tool.call(cleared, self).await
    }

    /// Returns the number and the id of each control.
    async fn controls(&self) -> Vec<(usize, String)> {
        let view = self.look().await;
        let mut at = None;
        let mut found = Vec::new();
        for element in &view.elements {
            match element.name.strip_prefix("control ") {
                Some(number) if element.role == "text" => at = number.parse().ok(),
                _ if ["menu", "tablist", "group", "text"].contains(&element.role.as_str()) => {}
                _ => found.extend(at.take().map(|at| (at, element.id.to_string()))),
            }
        }
        found
    }
}

#[tokio::test]
async fn what_acts_is_asked_about_and_what_goes_is_not() {
    if !has_browser() {
        return;
    }
    let (acts, goes) = (page(&WAYS_TO_ACT, &ACTS), page(&WAYS_TO_GO, &GOES));
    let sent: Arc<Mutex<Vec<String>>> = Arc::default();
    let taken = sent.clone();
    let origin = http::serve(move |asked| {
        if asked.method() != "GET" {
            taken.lock().push(asked.path().to_owned());
        }
        match asked.path() {
            "/acts" => acts.clone(),
            _ => goes.clone(),
        }
    });
    let visit = Visit::new(&origin);
    let name = |ways: &[(&str, &str)], words: &[&str], at: usize| {
        format!("{}: {}", ways[at / 20].0, words[at % 20])
    };

    let open = json!({"url": format!("{origin}/goes")});
    visit.look().await;
    let (call, _) = visit.judge("open_url", open).await;
    visit.act(call).await;
    let controls = visit.controls().await;
    assert_eq!(controls.len(), 200);
    let mut asked = Vec::new();
    for (at, on) in controls {
        let (_, decision) = visit.judge("click", json!({"on": on})).await;
        if decision != Decision::Allow {
            asked.push(name(&WAYS_TO_GO, &GOES, at));
        }
    }
    assert!(asked.len() <= 4, "{asked:#?}");

    let open = json!({"url": format!("{origin}/acts")});
    let (call, _) = visit.judge("open_url", open.clone()).await;
    visit.act(call).await;
    let controls = visit.controls().await;
    assert_eq!(controls.len(), 200);
    let (mut asked, mut held) = (0, 0);
    for (at, on) in controls {
        let (call, decision) = visit.judge("click", json!({"on": on})).await;
        if decision != Decision::Allow {
            asked += 1;
            continue;
        }
        let done = visit.act(call).await.text;
        let what = name(&WAYS_TO_ACT, &ACTS, at);
        assert!(done.contains("Held: request"), "{what}: {done}");
        let number = done.split("Held: request ").nth(1).unwrap_or_default();
        let number: u32 = number.split(':').next().unwrap().parse().unwrap();
        let answer = json!({"request": number, "accept": true});
        let (_, decision) = visit.judge("answer_request", answer).await;
        assert_ne!(decision, Decision::Allow, "{what}");
        let no = json!({"request": number, "accept": false});
        let (call, _) = visit.judge("answer_request", no).await;
        visit.act(call).await;
        held += 1;
    }
    assert!(asked >= 150, "{asked} asked about, {held} held");
    assert_eq!(*sent.lock(), Vec::<String>::new());
}
