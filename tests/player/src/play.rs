//! Moves of the player: the next steps of its task on what the prompt shows, or what helps to find
//! the next one's target.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{
    desktop,
    miniwob::{self, Deed, Sight},
    picture::{Area, largest_area},
    prompt::{Line, Prompt, found, plain},
    task::{Step, Task},
};

/// The most actions of a reply.
const BATCH: usize = 5;

/// Number of times that the player helps itself before it abandons a target.
const MAX_TRIES: usize = 12;

/// Number of times that it ends the work before it believes that this is refused for good.
const FINISHES: usize = 3;

/// Counts of what happened while it played.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Figures {
    /// Prompts that were answered.
    pub prompts: u64,
    /// Prompts that said that the reply before could not be used.
    pub unusable: u64,
    /// Prompts with a picture.
    pub pictures: u64,
    /// Estimated tokens of all prompts but their instructions, pictures included.
    pub fresh_tokens: u64,
    /// Tokens of the instructions.
    pub fixed_tokens: u64,
    /// Targets whose line stood in the screen's text when they were needed.
    pub in_view: u64,
    /// Targets that were named there as out of view.
    pub out_of_view: u64,
    /// Targets that came by themselves, or when the page was scrolled to where they were.
    pub came_later: u64,
    /// Targets that were there and not in the text: only a search found them.
    pub not_in_text: u64,
    /// Targets that were never found.
    pub never_found: u64,
    /// Targets that were not in the text, and those that were never found.
    pub missed: Vec<String>,
}

impl Figures {
    /// Returns the share of the targets that the text told of, among those that were there when
    /// they were needed.
    #[must_use]
    pub fn share_in_text(&self) -> f64 {
        let told = self.in_view + self.out_of_view;
        let all = told + self.not_in_text + self.never_found;
        if all == 0 {
            1.0
        } else {
            told as f64 / all as f64
        }
    }
}

/// A reply, before it is written.
#[derive(Debug, Default)]
pub(crate) struct Move {
    note: String,
    memo: Vec<(&'static str, String)>,
    actions: Vec<Value>,
}

impl Move {
    /// As the loop reads it.
    pub(crate) fn json(&self) -> Value {
        let memo: Vec<_> = self
            .memo
            .iter()
            .map(|(key, text)| json!({"key": key, "text": text}))
            .collect();
        let note: String = self.note.chars().take(120).collect();
        json!({"note": note, "memo": memo, "actions": self.actions, "expects": ""})
    }

    fn finish(prompt: &Prompt, reached: bool, answer: &str, tries: usize) -> Self {
        let finish =
            json!({"do": "finish", "token": prompt.token, "reached": reached, "answer": answer});
        Self {
            note: "the end".to_owned(),
            memo: vec![("doing", "finish".to_owned()), ("tries", tries.to_string())],
            actions: vec![finish],
        }
    }
}

/// A turn of an episode of MiniWoB++: what its family decides, or the next of its steps.
pub(crate) fn episode(
    goal: &str,
    prompt: &Prompt,
    picture: Option<&[u8]>,
    figures: &mut Figures,
) -> Move {
    // The page's reward is final: an end that was sent back is a failure.
    if prompt.text("doing") == "finish" {
        return Move::finish(prompt, false, "the page did not take it", FINISHES);
    }
    let is_over =
        prompt.says("The episode is over.") || prompt.lines.iter().all(|line| line.id.is_none());
    if is_over {
        return Move::finish(prompt, true, "It is done.", 1);
    }
    let mut steps = |does: Vec<Step>| {
        let task = Task {
            id: goal.to_owned(),
            goal: goal.to_owned(),
            does,
        };
        let mut turn = Turn {
            task: &task,
            prompt,
            picture,
            figures: &mut *figures,
        };
        turn.play()
    };
    if let Some(does) = miniwob::plan(prompt.text("plan")) {
        return steps(does);
    }
    let sight = Sight {
        asked: goal,
        prompt,
        picture,
    };
    let (actions, known) = match miniwob::decide(&sight) {
        Some(Deed::Steps(does)) => return steps(does),
        Some(Deed::Plan(does)) => {
            let plan = miniwob::noted(&does);
            let mut made = steps(does);
            made.memo.push(("plan", plan));
            return made;
        }
        Some(Deed::Do(actions)) => (actions, None),
        Some(Deed::Now(actions, known)) => (actions, Some(known)),
        None => {
            let why = "I do not know what is to be done here";
            return Move::finish(prompt, false, why, FINISHES);
        }
    };
    Move {
        note: "as the page shows".to_owned(),
        memo: known.into_iter().map(|known| ("known", known)).collect(),
        actions,
    }
}

/// Decision about a step on this screen.
pub(crate) enum Next {
    /// It is done already: what it waits for is there.
    Is,
    /// This does it, and the next step may be decided on the same screen.
    Then(Value),
    /// This does it, and then one must look.
    Last(Value),
    /// This may help to find its target.
    Helps(Value, String),
}

/// One turn.
pub(crate) struct Turn<'a> {
    pub(crate) task: &'a Task,
    pub(crate) prompt: &'a Prompt,
    /// The bytes of the picture.
    pub(crate) picture: Option<&'a [u8]>,
    pub(crate) figures: &'a mut Figures,
}

impl Turn<'_> {
    /// Returns the next move.
    pub(crate) fn play(&mut self) -> Move {
        let (mut next, tries) = self.progress();
        if self.prompt.text("doing") == "finish" {
            return self.was_sent_back(tries);
        }
        if self.prompt.says("The episode is over.") {
            return self.ends(self.task.does.len());
        }
        let mut made = Move::default();
        let mut doing: Vec<String> = Vec::new();
        let mut at = next;
        let mut helps = false;
        while let Some(step) = self.task.does.get(at).filter(|_| doing.len() < BATCH) {
            let looks = step.wait.is_some() || step.scroll.is_some() || step.dialog.is_some();
            if !doing.is_empty() && (looks || step.answer.is_some()) {
                break;
            }
            if step.answer.is_some() {
                break;
            }
            match self.step(at, step, tries) {
                Next::Is => {
                    at += 1;
                    next = at;
                }
                Next::Then(action) => {
                    made.actions.push(action);
                    doing.push(at.to_string());
                    at += 1;
                }
                Next::Last(action) => {
                    made.actions.push(action);
                    doing.push(at.to_string());
                    break;
                }
                Next::Helps(action, why) => {
                    if doing.is_empty() {
                        made.actions.push(action);
                        doing.push("-".to_owned());
                        made.note = why;
                        helps = true;
                    }
                    break;
                }
            }
        }
        if doing.is_empty() {
            return self.ends(at);
        }
        if helps && tries >= MAX_TRIES {
            self.figures.never_found += 1;
            self.figures
                .missed
                .push(format!("{}, step {at}: never found", self.task.id));
            let why = format!("cannot find what step {at} needs");
            return Move::finish(self.prompt, false, &why, FINISHES);
        }
        if made.note.is_empty() {
            made.note = format!("steps {} of {}", doing.join(" "), self.task.does.len());
        }
        let same = helps && self.prompt.number("next") == next;
        made.memo = vec![
            ("next", next.to_string()),
            ("doing", doing.join(" ")),
            (
                "tries",
                if same { tries + 1 } else { usize::from(helps) }.to_string(),
            ),
            ("counted", self.counted().max(at).to_string()),
        ];
        made
    }

    /// The first step that is not done, by the memo and the log, and how often the player has
    /// helped itself since.
    fn progress(&self) -> (usize, usize) {
        let mut next = self.prompt.number("next");
        let doing = self.prompt.text("doing").split(' ');
        for (what, verdict) in doing.zip(&self.prompt.verdicts) {
            if verdict == "refused" {
                break;
            }
            if let Ok(step) = what.parse::<usize>() {
                next = step + 1;
            }
        }
        (next, self.prompt.number("tries"))
    }

    /// The steps below this one are in the figures.
    fn counted(&self) -> usize {
        self.prompt.number("counted")
    }

    fn ends(&self, at: usize) -> Move {
        let answer = self
            .task
            .does
            .get(at)
            .and_then(|step| step.answer.as_deref());
        Move::finish(self.prompt, true, answer.unwrap_or("It is done."), 1)
    }

    /// The end was not accepted: what was done may need time.
    fn was_sent_back(&self, tries: usize) -> Move {
        if tries > FINISHES {
            return Move::finish(self.prompt, false, "my end is not accepted", tries);
        }
        let mut made = self.ends(self.task.does.len().saturating_sub(1));
        made.memo = vec![
            ("doing", "finish".to_owned()),
            ("tries", (tries + 1).to_string()),
        ];
        if self
            .prompt
            .returned
            .as_ref()
            .is_some_and(|(tool, _)| tool == "verification")
        {
            made.actions = vec![json!({"do": "wait"})];
        }
        made
    }

    fn step(&mut self, at: usize, step: &Step, tries: usize) -> Next {
        let within = step.within.as_deref();
        if let Some(key) = &step.press {
            return Next::Last(json!({"do": "press_key", "key": key}));
        }
        if let Some(next) = desktop::next(step, self.prompt) {
            return next;
        }
        if let Some(answer) = &step.dialog {
            return self.dialog(answer, step.text.as_deref());
        }
        if let Some(what) = &step.wait {
            return self.wait(what, tries);
        }
        if let Some(direction) = &step.scroll {
            return self.scroll(direction, step, tries);
        }
        if step.extract.is_some() {
            return Next::Last(json!({"do": "extract"}));
        }
        if let Some(on) = &step.draw {
            return self.draw(on, &step.points);
        }
        let named = [
            &step.click,
            &step.types,
            &step.select,
            &step.drag,
            &step.upload,
            &step.hover,
            &step.mark,
        ];
        let Some(on) = named.into_iter().flatten().next() else {
            return Next::Is;
        };
        let id = match self.target(at, on, within, step.nth.unwrap_or(1), tries) {
            Ok(id) => id,
            Err(helps) => return self.opening(step.opens.as_deref(), tries).unwrap_or(helps),
        };
        if let Some(to) = &step.drag.as_ref().and(step.to.as_ref()) {
            return match self.target(at, to, None, 1, tries) {
                Ok(to) => Next::Last(json!({"do": "drag", "from": id, "to": to})),
                Err(helps) => helps,
            };
        }
        let text = step.text.as_deref().unwrap_or_default();
        if step.types.is_some() {
            return Next::Then(json!({"do": "type_text", "on": id, "text": text, "replace": true}));
        }
        if step.select.is_some() {
            let option = step.option.as_deref().unwrap_or_default();
            return Next::Then(json!({"do": "select_option", "on": id, "option": option}));
        }
        if step.upload.is_some() {
            let file = step.file.as_deref().unwrap_or_default();
            return Next::Last(json!({"do": "upload_file", "on": id, "path": file}));
        }
        if step.mark.is_some() {
            let mut action = json!({"do": "select_text", "on": id});
            if let Some(text) = &step.text {
                action["text"] = text.as_str().into();
            }
            return Next::Last(action);
        }
        if step.hover.is_some() {
            return Next::Last(json!({"do": "hover", "on": id}));
        }
        let mut click = json!({"do": "click", "on": id});
        if let Some(kind) = &step.kind {
            click["kind"] = kind.as_str().into();
        }
        let stays = ["checkbox ", "radio ", "switch "];
        if stays.iter().any(|role| on.starts_with(role)) {
            Next::Then(click)
        } else {
            Next::Last(click)
        }
    }

    /// Opens the next of what a target may be in.
    fn opening(&self, role: Option<&str>, tries: usize) -> Option<Next> {
        let line = self.find(&format!("{} ", role?), None, tries + 1)?;
        let click = json!({"do": "click", "on": line.id.as_ref()?});
        Some(Next::Helps(click, format!("is it in {}?", line.name)))
    }

    fn dialog(&self, answer: &str, text: Option<&str>) -> Next {
        if !self.prompt.has_dialog() {
            return Next::Helps(json!({"do": "wait"}), "no dialog is there".to_owned());
        }
        let mut action = json!({"do": "answer_dialog", "accept": answer == "accept"});
        if let Some(text) = text {
            action["text"] = text.into();
        }
        Next::Last(action)
    }

    fn wait(&self, what: &str, tries: usize) -> Next {
        if what == "pause" {
            return Next::Last(json!({"do": "wait"}));
        }
        let is_there = match what.strip_prefix("text ") {
            Some(words) => self.prompt.says(words),
            None => matches!(self.find(what, None, 1), Some(line) if !line.is_away),
        };
        if is_there {
            return Next::Is;
        }
        // What is read may be left out of a prompt that is too small for it.
        match what
            .strip_prefix("text ")
            .filter(|_| tries.is_multiple_of(2))
        {
            Some(words) => Next::Helps(
                json!({"do": "find", "text": words}),
                format!("is there `{words}`?"),
            ),
            None => Next::Helps(json!({"do": "wait"}), format!("waiting for {what}")),
        }
    }

    fn scroll(&self, direction: &str, step: &Step, tries: usize) -> Next {
        let until = step.until.as_deref().unwrap_or_default();
        let there = self.find(until, None, 1);
        if there.is_some_and(|line| !line.is_away) {
            return Next::Is;
        }
        if let Some(id) = there.and_then(|line| line.id.as_ref()) {
            return Next::Helps(
                json!({"do": "scroll_to", "on": id}),
                format!("going to {until}"),
            );
        }
        let mut action = json!({"do": "scroll", "direction": direction, "pages": 0.8});
        if let Some(within) = &step.within {
            let scrolls =
                |line: &&Line| line.id.is_some() && line.states.contains("scrolls by itself");
            let named = |line: &&Line| plain(&line.name).contains(&plain(within));
            let mut all = self.prompt.lines.iter().filter(scrolls);
            let box_of = all.clone().find(named).or_else(|| all.next());
            if let Some(id) = box_of.and_then(|line| line.id.as_ref()) {
                action["on"] = id.as_str().into();
            }
        }
        let _ = tries;
        Next::Helps(action, format!("scrolling until {until}"))
    }

    fn draw(&self, on: &str, points: &[[f64; 2]]) -> Next {
        let Some(png) = self.picture.filter(|_| self.prompt.picture.is_some()) else {
            return Next::Helps(json!({"do": "take_screenshot"}), format!("where is {on}?"));
        };
        let (Some([left, top, right, bottom]), [first, .., last]) = (largest_area(png), points)
        else {
            return Next::Is;
        };
        let area: Area = [left, top, right - left, bottom - top];
        let at = |[x, y]: [f64; 2]| {
            json!([
                (area[0] + x * area[2]).round(),
                (area[1] + y * area[3]).round()
            ])
        };
        Next::Last(json!({"do": "drag", "from": at(*first), "to": at(*last)}))
    }

    /// The id of a target, or what helps to find it. It is counted where it was first looked for.
    fn target(
        &mut self,
        at: usize,
        on: &str,
        within: Option<&str>,
        nth: usize,
        tries: usize,
    ) -> Result<String, Next> {
        let first_time = at >= self.counted();
        let shown = self.find(on, within, nth).cloned();
        if let Some(Line {
            id: Some(id),
            is_away,
            ..
        }) = shown
        {
            if first_time {
                match (tries > 0, is_away) {
                    (true, _) => self.figures.came_later += 1,
                    (false, true) => self.figures.out_of_view += 1,
                    (false, false) => self.figures.in_view += 1,
                }
            }
            return Ok(id);
        }
        let (role, name) = on.split_once(' ').unwrap_or(("", on));
        if let Some(line) = self.searched(role, name, nth) {
            if first_time {
                self.figures.not_in_text += 1;
                self.figures
                    .missed
                    .push(format!("{}, step {at}: {on}", self.task.id));
            }
            return Ok(line.id.unwrap_or_default());
        }
        let why = format!("not in the text: {on}");
        Err(match tries % 4 {
            0 => Next::Helps(json!({"do": "find", "text": name}), why),
            1 | 2 => Next::Helps(json!({"do": "wait"}), why),
            _ => Next::Helps(
                json!({"do": "scroll", "direction": "down", "pages": 0.8}),
                why,
            ),
        })
    }

    /// Returns the line that the last search found.
    fn searched(&self, role: &str, name: &str, nth: usize) -> Option<Line> {
        let (tool, lines) = self.prompt.returned.as_ref()?;
        let lines: Vec<Line> = lines.iter().filter_map(|line| found(line)).collect();
        let all: Vec<&Line> = lines.iter().filter(|_| tool == "find").collect();
        best(&all, role, name, nth).cloned()
    }

    /// The line of what is called so: `button Send`.
    fn find(&self, on: &str, within: Option<&str>, nth: usize) -> Option<&Line> {
        let (role, name) = on.split_once(' ').unwrap_or(("", on));
        let lines = &self.prompt.lines;
        let Some(within) = within else {
            let all: Vec<&Line> = lines.iter().collect();
            return best(&all, role, name, nth);
        };
        let holds = |line: &Line| plain(&line.name).contains(&plain(within)) && !line.is_away;
        let starts = (0..lines.len()).filter(|&start| holds(&lines[start]));
        starts.into_iter().find_map(|start| {
            let head = &lines[start];
            let inside: Vec<&Line> = lines[start + 1..]
                .iter()
                .take_while(|line| {
                    if head.is_box {
                        line.depth > head.depth
                    } else {
                        line.role != head.role && line.depth >= head.depth && !line.is_box
                    }
                })
                .collect();
            best(&inside, role, name, nth)
        })
    }
}

/// Whether a person would never take the one for the other.
fn differs(shown: &str, meant: &str) -> bool {
    const PLAIN: [&str; 7] = [
        "button", "link", "checkbox", "radio", "tab", "switch", "option",
    ];
    shown != meant && PLAIN.contains(&shown) && PLAIN.contains(&meant)
}

/// The nth of the lines that fit best: role and name, then role and the name's beginning, then the
/// name alone, then a part of the name.
fn best<'a>(lines: &[&'a Line], role: &str, name: &str, nth: usize) -> Option<&'a Line> {
    let name = plain(name);
    let cut = |line: &Line| {
        let shown = plain(&line.name);
        shown
            .strip_suffix('…')
            .is_some_and(|start| !start.is_empty() && name.starts_with(start.trim_end()))
    };
    let exact = |line: &Line| plain(&line.name) == name || cut(line);
    let fits: [&dyn Fn(&Line) -> bool; 4] = [
        &|line| line.role == role && exact(line),
        &|line| line.role == role && plain(&line.name).starts_with(&name),
        &|line| line.id.is_some() && exact(line) && !differs(&line.role, role),
        &|line| line.role == role && plain(&line.name).contains(&name),
    ];
    for fits in fits {
        let found: Vec<&&Line> = lines.iter().filter(|line| fits(line)).collect();
        // What is in view comes before what is only named.
        let here = found.iter().filter(|line| !line.is_away);
        let away = found.iter().filter(|line| line.is_away);
        if let Some(line) = here.chain(away).nth(nth - 1) {
            return Some(line);
        }
    }
    None
}
