//! Learning what a run did at a web site.

use std::collections::BTreeSet;

use gyrus_contract::{
    ActionVerdict, AnswerDialogCall, Arguments as _, ClickCall, ElementState, OpenUrlCall,
    PressKeyCall, SelectOptionCall, TypeTextCall, View,
};

use crate::{
    Anchor, Expectation, FieldValue, NotLearned, ProcedureStep, RecordedRun, RecordedStep,
    Template, address,
    anchor::Learned as Known,
    expectation,
    find_slots::{FoundSlots, UsedValue},
    page::{self, Page},
    recorded::Learned,
    words,
};

/// Tools that only look, or only bring something into view.
const LOOKS: [&str; 8] = [
    "scroll",
    "scroll_to",
    "hover",
    "find",
    "extract",
    "wait",
    "take_screenshot",
    "select_text",
];

/// Maximum number of texts that one condition names.
const MOST_TEXTS: usize = 8;

/// Maximum number of different amounts of money on a page that is about one thing.
const MOST_AMOUNTS: usize = 6;

/// A marker by which journals replace secrets.
const SECRET: &str = "⟦secret";

/// Returns what a run did at a site.
pub(crate) fn learn(run: &RecordedRun, start: &str) -> Result<Learned, NotLearned> {
    let kept = kept(run, start)?;
    let used: Vec<_> = kept.iter().filter_map(|step| used_value(step)).collect();
    let found = FoundSlots::of(&run.command, &used);
    let mut builder = Builder {
        start,
        found: &found,
        used: BTreeSet::new(),
        filled: Vec::new(),
        ids: Vec::new(),
        at: None,
    };
    let mut steps = Vec::new();
    for (number, step) in kept.iter().enumerate() {
        let next = kept.get(number + 1);
        let after = next.map_or(run.end.as_ref(), |next| next.view.as_ref());
        steps.push(builder.step(step, after, next.is_none())?);
    }
    Ok(Learned {
        command: found.command,
        slots: found.slots,
        steps,
    })
}

fn text_of<'a>(step: &'a RecordedStep, argument: &str) -> Option<&'a str> {
    step.call.arguments.get(argument)?.as_str()
}

/// Returns the position of the element that a step touches.
fn target(step: &RecordedStep, page: &Page<'_>) -> Option<usize> {
    page.index(text_of(step, "on")?.parse().ok()?)
}

/// Whether an action decides: a button, or a key that sends a form.
fn decides(step: &RecordedStep, page: &Page<'_>) -> bool {
    let is_button = || target(step, page).is_some_and(|at| page.element(at).role == "button");
    let submits = step
        .call
        .arguments
        .get("submit")
        .and_then(serde_json::Value::as_bool);
    match step.call.tool.as_str() {
        ClickCall::TOOL => step.commits || is_button(),
        PressKeyCall::TOOL => step.commits || text_of(step, "key") == Some("Enter"),
        AnswerDialogCall::TOOL => true,
        _ => step.commits || submits == Some(true),
    }
}

/// Returns the steps that did something, without detours.
fn kept<'a>(run: &'a RecordedRun, start: &str) -> Result<Vec<&'a RecordedStep>, NotLearned> {
    let mut kept: Vec<&RecordedStep> = Vec::new();
    for step in &run.steps {
        let tool = step.call.tool.as_str();
        let seen = &step.observation;
        let had_no_effect = matches!(
            seen.verdict,
            ActionVerdict::NoEffect | ActionVerdict::Refused
        );
        if step.call.arguments.to_string().contains(SECRET) {
            return Err(NotLearned::because("it used a secret"));
        }
        if LOOKS.contains(&tool) || (!step.commits && (seen.is_error || had_no_effect)) {
            continue;
        }
        if step.commits && seen.is_error && seen.verdict == ActionVerdict::Refused {
            continue;
        }
        if tool == OpenUrlCall::TOOL {
            if text_of(step, "url") != Some(start) {
                return Err(NotLearned::because("it opened an address of its own"));
            }
            if kept.iter().any(|step| step.commits) {
                return Err(NotLearned::because(
                    "it began again after something was sent",
                ));
            }
            kept.clear();
            continue;
        }
        kept.push(step);
    }
    without_detours(&mut kept);
    without_overwritten(&mut kept);
    for step in &kept {
        let known = [
            ClickCall::TOOL,
            TypeTextCall::TOOL,
            PressKeyCall::TOOL,
            SelectOptionCall::TOOL,
            AnswerDialogCall::TOOL,
        ];
        if !known.contains(&step.call.tool.as_str()) {
            return Err(NotLearned::because(format!(
                "the tool `{}` is not replayed",
                step.call.tool
            )));
        }
        if step.view.is_none()
            || step
                .call
                .arguments
                .get("at")
                .is_some_and(|at| !at.is_null())
        {
            return Err(NotLearned::because(
                "an action was aimed at a point of a picture",
            ));
        }
    }
    Ok(kept)
}

/// Returns what a page shows, without what the keyboard and scrolling change.
fn shown(view: &View) -> impl PartialEq {
    let passing = [
        ElementState::Focused,
        ElementState::OutOfView,
        ElementState::Covered,
    ];
    let elements = view.elements.iter().map(move |element| {
        let mut states = element.states.clone();
        states.retain(|state| !passing.contains(state));
        (
            element.role.clone(),
            element.name.clone(),
            element.value.clone(),
            states,
        )
    });
    (
        view.address.clone(),
        view.dialog.clone(),
        elements.collect::<Vec<_>>(),
    )
}

/// Removes steps after which the page was what it had been before them.
fn without_detours(steps: &mut Vec<&RecordedStep>) {
    let mut first = 0;
    while first < steps.len() {
        let binds = |step: &&RecordedStep| {
            step.commits
                || step
                    .view
                    .as_ref()
                    .is_some_and(|view| decides(step, &Page::new(view)))
        };
        let before = steps[first].view.as_ref().map(shown);
        let back = (first + 2..steps.len()).rev().find(|later| {
            let is_same = before.is_some() && steps[*later].view.as_ref().map(shown) == before;
            is_same && !steps[first..*later].iter().any(binds)
        });
        match back {
            Some(later) => drop(steps.drain(first..later)),
            None => first += 1,
        }
    }
}

/// Removes what was put into a field and replaced before anything was sent.
fn without_overwritten(steps: &mut Vec<&RecordedStep>) {
    let sets = |step: &RecordedStep| match step.call.tool.as_str() {
        SelectOptionCall::TOOL => text_of(step, "on").map(str::to_owned),
        TypeTextCall::TOOL if step.call.arguments["replace"] == true => {
            text_of(step, "on").map(str::to_owned)
        }
        _ => None,
    };
    let mut at = 0;
    while at < steps.len() {
        let own = sets(steps[at]);
        let later = steps[at + 1..]
            .iter()
            .take_while(|step| sets(step).is_some());
        let is_replaced = own.is_some() && later.into_iter().any(|step| sets(step) == own);
        if is_replaced {
            steps.remove(at);
        } else {
            at += 1;
        }
    }
}

/// Returns the value that a step used, if it may come from the command.
fn used_value(step: &RecordedStep) -> Option<UsedValue> {
    let page = Page::new(step.view.as_ref()?);
    let target = target(step, &page);
    let label = target
        .map(|at| page::name_of(page.element(at)))
        .unwrap_or_default();
    let value = match step.call.tool.as_str() {
        TypeTextCall::TOOL => text_of(step, "text")?.trim().to_owned(),
        SelectOptionCall::TOOL => text_of(step, "option")?.to_owned(),
        AnswerDialogCall::TOOL => text_of(step, "text")?.to_owned(),
        ClickCall::TOOL => {
            let at = target.filter(|at| page.is_data(*at))?;
            let group = page
                .ancestors(at)
                .find(|above| page.element(*above).role == "radiogroup");
            let label = group.map(|group| page::name_of(page.element(group)));
            return Some(UsedValue {
                value: page::name_of(page.element(at)),
                label: label.unwrap_or_default(),
            });
        }
        _ => return None,
    };
    Some(UsedValue { value, label })
}

/// A field that was filled in.
struct FilledField {
    id: String,
    anchor: Anchor,
    /// The value; without one it was chosen.
    value: Option<Template>,
}

/// Makes steps of a procedure, in order.
struct Builder<'a> {
    start: &'a str,
    found: &'a FoundSlots,
    /// The slots that were used so far.
    used: BTreeSet<usize>,
    filled: Vec<FilledField>,
    /// Ids in the addresses of links that a value of the command chose.
    ids: Vec<String>,
    /// The address of the last page.
    at: Option<String>,
}

impl Builder<'_> {
    fn template(&self, text: &str) -> Template {
        Template::of(text, &self.found.slots, |slot| self.used.contains(&slot))
    }

    fn anchor(&self, page: &Page<'_>, at: usize) -> Option<Anchor> {
        let known = Known {
            slots: &self.found.slots,
            start: self.start,
            used: &self.used,
        };
        Anchor::of(page, at, known)
    }

    /// Returns an address with the values of the command.
    fn relative(&self, address: &str) -> Template {
        let relative = address::relative(address, self.start);
        address::template_of(&relative, &self.found.slots, |slot| {
            self.used.contains(&slot)
        })
    }

    fn address(&self, view: &View) -> Expectation {
        let form = self.relative(&view.address);
        let mut ids = self.ids.clone();
        Expectation::Address {
            is: address::with_ids(&form, &mut ids, self.found.slots.len(), |_| false),
        }
    }

    /// Returns the address after the last step, if it has made something that got an id.
    fn new_address(&self, view: &View) -> Option<Expectation> {
        let form = self.relative(&view.address);
        let mut ids = self.ids.clone();
        let is = address::with_ids(&form, &mut ids, self.found.slots.len(), |_| true);
        (ids.len() > self.ids.len()).then_some(Expectation::NewAddress { is })
    }

    /// Finds the ids in the address of a link that a value of the command chose.
    fn find_ids(&mut self, link: &gyrus_contract::Element, after: &View) -> Option<Template> {
        let to = link.address.as_deref().filter(|to| *to == after.address)?;
        let known = self.ids.len();
        let form = self.relative(to);
        let first = self.found.slots.len();
        let is_of_path = |place| place == address::Place::Path;
        let form = address::with_ids(&form, &mut self.ids, first, is_of_path);
        (self.ids.len() > known).then_some(form)
    }

    fn step(
        &mut self,
        step: &RecordedStep,
        after: Option<&View>,
        is_last: bool,
    ) -> Result<ProcedureStep, NotLearned> {
        let Some(view) = &step.view else {
            return Err(NotLearned::because("nothing was seen before an action"));
        };
        let page = Page::new(view);
        let decides = decides(step, &page);
        let commits = step.commits || (decides && is_last);
        let mut before = vec![self.address(view)];
        before.extend(self.amounts_of_page(view));
        if let Some(dialog) = &view.dialog {
            before.push(Expectation::Asks {
                message: self.template(&dialog.message),
            });
        }
        if decides {
            before.extend(self.read_back(&page));
        }
        self.at = Some(view.address.clone());
        let mut made = ProcedureStep {
            tool: step.call.tool.clone(),
            arguments: step.call.arguments.clone(),
            texts: Vec::new(),
            targets: Vec::new(),
            finds: None,
            before,
            after: Vec::new(),
            commits,
            waited_ms: step.waited_ms,
        };
        self.value(step, &page, &mut made)?;
        self.target(step, &page, after, &mut made)?;
        if commits {
            for (_, anchor) in &mut made.targets {
                anchor.rely_on_name();
            }
        }
        if let Some(after) = after {
            let appeared = self.appeared(&page, after).filter(|_| commits);
            // Ids of what is new are let be only beside a sign with a value of the command.
            let shows_value = matches!(
                &appeared,
                Some(Expectation::ShowsAny { texts }) if texts.iter().all(address::has_slot)
            );
            let new = self.new_address(after);
            let new = new.filter(|_| is_last && shows_value && after.address != view.address);
            made.after.push(new.unwrap_or_else(|| self.address(after)));
            made.after.extend(appeared);
        }
        let shows_it = |one: &Expectation| {
            !matches!(
                one,
                Expectation::Address { .. } | Expectation::NewAddress { .. }
            )
        };
        let moved = after.is_some_and(|after| after.address != view.address);
        if commits && !moved && !made.after.iter().any(shows_it) {
            return Err(NotLearned::because(
                "nothing on the page showed that the last action had happened",
            ));
        }
        Ok(made)
    }

    /// Takes the value of an action from the command.
    fn value(
        &mut self,
        step: &RecordedStep,
        page: &Page<'_>,
        made: &mut ProcedureStep,
    ) -> Result<(), NotLearned> {
        let Some(used) = used_value(step).filter(|used| !used.value.is_empty()) else {
            return Ok(());
        };
        let slot = match self.found.slot_of(&used.value) {
            Ok(slot) => slot,
            Err(derived) => {
                // A button in a row is told apart by the row.
                let is_button =
                    target(step, page).is_some_and(|at| page.element(at).role == "button");
                let is_click = step.call.tool == ClickCall::TOOL;
                return if is_button || (is_click && self.found.says(&used.value)) {
                    Ok(())
                } else {
                    Err(derived)
                };
            }
        };
        let Some(slot) = slot else {
            return Ok(());
        };
        self.used.insert(slot);
        for argument in ["text", "option"] {
            let is_value = text_of(step, argument).is_some_and(|text| text.trim() == used.value);
            if is_value {
                let template = Template(vec![crate::TemplatePart::Slot(slot)]);
                made.texts.push((format!("/{argument}"), template));
            }
        }
        Ok(())
    }

    /// Describes the element that an action touches, and what must hold of it.
    fn target(
        &mut self,
        step: &RecordedStep,
        page: &Page<'_>,
        after: Option<&View>,
        made: &mut ProcedureStep,
    ) -> Result<(), NotLearned> {
        if text_of(step, "on").is_none() {
            let needs_none = [AnswerDialogCall::TOOL, PressKeyCall::TOOL];
            return if needs_none.contains(&made.tool.as_str()) {
                Ok(())
            } else {
                Err(NotLearned::because(
                    "an action went to where the keyboard was",
                ))
            };
        };
        let unclear =
            |what: &str| NotLearned::because(format!("{what} cannot be told from others"));
        let at = target(step, page).ok_or_else(|| unclear("an element"))?;
        let element = page.element(at);
        let what = format!("the {} `{}`", element.role, page::name_of(element));
        let anchor = self.anchor(page, at).ok_or_else(|| unclear(&what))?;
        let has_slot = anchor.name.slots().next().is_some()
            || anchor.within.as_ref().is_some_and(address::has_slot);
        let name = page::name_of(element);
        let is_of_command = has_slot || !made.texts.is_empty() || self.found.says(&name);
        if page.is_data(at) && !is_of_command && !page::is_field(element) {
            return Err(NotLearned::derived(&name));
        }
        if let Some(arguments) = made.arguments.as_object_mut() {
            arguments.remove("on");
        }
        if has_slot && let Some(after) = after.filter(|_| made.tool == ClickCall::TOOL) {
            made.finds = self.find_ids(element, after);
        }
        if element.name.trim().is_empty()
            && let Some(value) = &element.value
        {
            made.before.push(Expectation::Value {
                of: Box::new(anchor.clone()),
                is: self.template(value),
            });
        }
        let own: Vec<_> = anchor.name.slots().collect();
        let shown = page::amounts_of(page.row(at).map(|inner| page.element(inner)));
        if page.is_data(at) && !own.is_empty() && !shown.is_empty() {
            made.before.push(Expectation::Amounts {
                shown: shown.into_iter().collect(),
                slots: own,
                of: Some(Box::new(anchor.clone())),
            });
        }
        self.remember_field(step, element, &anchor, after, made);
        made.targets.push(("on".to_owned(), anchor));
        Ok(())
    }

    /// Notes what a field holds after it was filled in or chosen.
    fn remember_field(
        &mut self,
        step: &RecordedStep,
        element: &gyrus_contract::Element,
        anchor: &Anchor,
        after: Option<&View>,
        made: &mut ProcedureStep,
    ) {
        let after = after.and_then(|view| view.elements.iter().find(|it| it.id == element.id));
        let value = match made.tool.as_str() {
            TypeTextCall::TOOL | SelectOptionCall::TOOL => {
                // A secret's value is never read.
                let value = after.and_then(|element| element.value.clone());
                value.filter(|_| !element.states.contains(&ElementState::Masked))
            }
            _ => None,
        };
        let field = if let Some(value) = value {
            let is = self.template(&value);
            made.after.push(Expectation::Value {
                of: Box::new(anchor.clone()),
                is: is.clone(),
            });
            Some(is)
        } else if after.is_some_and(page::is_on) && !page::is_on(element) && page::is_field(element)
        {
            made.after.push(Expectation::Chosen {
                of: Box::new(anchor.clone()),
            });
            None
        } else {
            return;
        };
        let id = text_of(step, "on").unwrap_or_default().to_owned();
        self.filled.retain(|known| known.id != id);
        self.filled.push(FilledField {
            id,
            anchor: anchor.clone(),
            value: field,
        });
    }

    /// The amounts of money of a page that is seen for the first time.
    fn amounts_of_page(&self, view: &View) -> Option<Expectation> {
        let shown = page::amounts_of(&view.elements);
        let is_new = self.at.as_ref() != Some(&view.address);
        let is_about_one = !shown.is_empty() && shown.len() <= MOST_AMOUNTS;
        (is_new && is_about_one).then(|| Expectation::Amounts {
            shown: shown.into_iter().collect(),
            slots: self.used.iter().copied().collect(),
            of: None,
        })
    }

    /// Returns what must stand on a page before something is sent: all that was filled in, whatever else
    /// shows a value of the command, all fields as they were, and the amounts.
    fn read_back(&self, page: &Page<'_>) -> Vec<Expectation> {
        let is_here =
            |field: &&FilledField| field.id.parse().is_ok_and(|id| page.index(id).is_some());
        let filled = self
            .filled
            .iter()
            .filter(is_here)
            .map(|field| match &field.value {
                Some(is) => Expectation::Value {
                    of: Box::new(field.anchor.clone()),
                    is: is.clone(),
                },
                None => Expectation::Chosen {
                    of: Box::new(field.anchor.clone()),
                },
            });
        let mut conditions: Vec<_> = filled.collect();
        conditions.extend(
            self.texts_with_values(page)
                .map(|text| Expectation::Shows { text }),
        );
        let value = |text: &str| {
            let of = |slot: &&usize| self.found.slots[**slot].learned == text;
            match self.used.iter().find(of) {
                Some(slot) => FieldValue::Slot(*slot),
                None => FieldValue::Fixed(text.to_owned()),
            }
        };
        conditions.push(Expectation::Fields {
            are: expectation::fields_of(page, value),
        });
        let shown = page::amounts_of(&page.view.elements);
        if !shown.is_empty() && shown.len() <= MOST_AMOUNTS {
            conditions.push(Expectation::Amounts {
                shown: shown.into_iter().collect(),
                slots: self.used.iter().copied().collect(),
                of: None,
            });
        }
        conditions
    }

    /// Texts of a page that show values of the command which were used.
    fn texts_with_values(&self, page: &Page<'_>) -> impl Iterator<Item = Template> {
        let tells = ["text", "heading", "cell", "listitem", "status", "alert"];
        let elements = page.view.elements.iter().filter(move |element| {
            tells.contains(&element.role.as_str()) && page::is_shown(element)
        });
        let texts = elements
            .map(page::name_of)
            .filter(|name| page::amounts(name).is_empty());
        let templates: BTreeSet<_> = texts
            .map(|name| (name.clone(), self.template(&name)))
            .filter(|(_, form)| address::has_slot(form))
            .map(|(name, _)| name)
            .collect();
        let templates: Vec<_> = templates.iter().map(|name| self.template(name)).collect();
        templates.into_iter().take(MOST_TEXTS)
    }

    /// Returns what appeared on the page, as a sign that something has happened: texts with values
    /// of the command, or without any, texts that are always the same.
    fn appeared(&self, before: &Page<'_>, after: &View) -> Option<Expectation> {
        let known: BTreeSet<_> = before.view.elements.iter().map(page::name_of).collect();
        let new = after.elements.iter().filter(|element| {
            let name = page::name_of(element);
            page::is_shown(element)
                && !["option", "searchbox"].contains(&element.role.as_str())
                && !name.is_empty()
                && !known.contains(&name)
                && page::amounts(&name).is_empty()
        });
        let forms = new.map(|element| (element, self.template(&page::name_of(element))));
        let forms: Vec<_> = forms
            .filter(|(_, form)| !address::has_other_digits(form))
            .collect();
        let with_slot = forms.iter().filter(|(_, form)| address::has_slot(form));
        let mut texts: Vec<_> = with_slot.map(|(_, form)| form.clone()).collect();
        if texts.is_empty() {
            let says = ["text", "heading", "status", "alert"];
            let fixed = forms.iter().filter(|(element, _)| {
                says.contains(&element.role.as_str()) && !words::is_destructive(&element.name)
            });
            texts = fixed.map(|(_, form)| form.clone()).collect();
        }
        texts.dedup();
        texts.truncate(MOST_TEXTS);
        (!texts.is_empty()).then_some(Expectation::ShowsAny { texts })
    }
}
