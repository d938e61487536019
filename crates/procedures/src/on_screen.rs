//! Learning what a run did on a screen: at a web site, or on a desktop.

use std::collections::{BTreeMap, BTreeSet};

use gyrus_contract::{
    AnswerDialogCall, Arguments as _, ClickCall, Element, ElementId, ElementState, Form,
    OpenApplicationCall, PressKeyCall, SelectOptionCall, TypeTextCall, View,
};

use crate::{
    Anchor, Expectation, FieldValue, LearnedWindow, NotLearned, ProcedureStep, RecordedForm,
    RecordedRun, RecordedStep, ReplaySight, SlotTemplate, SlotValues, address,
    anchor::RunKnowledge as Known,
    desktop, expectation,
    find_slots::{FoundSlots, UsedValue},
    kept::{decides, kept, target, text_of},
    page::{self, PlacedView},
    recorded::UnnamedProcedure,
    words,
};

/// Maximum number of texts in one condition.
const MOST_TEXTS: usize = 8;

/// Maximum number of different amounts of money on a page that is about one thing.
const MOST_AMOUNTS: usize = 6;

/// Returns the procedure of a run on a screen, still without a name. The run began at `start`,
/// which is empty on a desktop.
pub(crate) fn learn(run: &RecordedRun, start: &str) -> Result<UnnamedProcedure, NotLearned> {
    let kept = kept(run)?;
    let used: Vec<_> = kept.iter().filter_map(|step| used_value(step)).collect();
    let found = FoundSlots::of(&run.command, &used);
    let mut builder = Builder {
        start,
        found: &found,
        used: BTreeSet::new(),
        filled: Vec::new(),
        ids: Vec::new(),
        at: None,
        first: BTreeMap::new(),
    };
    let mut steps = Vec::new();
    for (number, step) in kept.iter().enumerate() {
        let next = kept.get(number + 1);
        let after = next.map_or(run.end.as_ref(), |next| next.view.as_ref());
        steps.push(builder.step(step, after, next.is_none())?);
    }
    forget_amounts_beside(&mut steps);
    Ok(UnnamedProcedure {
        command: found.command,
        slots: found.slots,
        steps,
    })
}

/// Leaves out the amounts of pages whose form is compared when it is sent, since these include the
/// amounts in the form.
fn forget_amounts_beside(steps: &mut [ProcedureStep]) {
    let of_page = |one: &Expectation| matches!(one, Expectation::Amounts { of: None, .. });
    for at in 0..steps.len() {
        let form = steps[at].form.as_ref();
        if form.is_some_and(|form| form.controls.is_some()) {
            let place = steps[at].before.first().cloned();
            let here = steps[..=at]
                .iter_mut()
                .filter(|step| step.before.first() == place.as_ref());
            here.for_each(|step| step.before.retain(|one| !of_page(one)));
        }
    }
}

fn used_value(step: &RecordedStep) -> Option<UsedValue> {
    let page = PlacedView::new(step.view.as_ref()?);
    let target = target(step, &page);
    let label = target.map(|at| page::name_of(page.element(at)));
    let label = label.unwrap_or_default();
    let beside = target.filter(|_| label.is_empty() && desktop::is_desktop(page.view));
    let label = beside.and_then(|at| page.label(at)).unwrap_or(label);
    let value = match step.call.tool.as_str() {
        TypeTextCall::TOOL => text_of(step, "text")?.trim().to_owned(),
        SelectOptionCall::TOOL => text_of(step, "option")?.to_owned(),
        AnswerDialogCall::TOOL => text_of(step, "text")?.to_owned(),
        // What is opened is always the same, unless the command names it.
        OpenApplicationCall::TOOL => {
            return Some(UsedValue {
                value: text_of(step, "file")?.to_owned(),
                label: "file".to_owned(),
            });
        }
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

struct FilledField {
    id: String,
    anchor: Anchor,
    /// The value of the field; `None` if it was chosen.
    value: Option<SlotTemplate>,
}

/// Builds the steps of a procedure, in order.
struct Builder<'a> {
    start: &'a str,
    found: &'a FoundSlots,
    used: BTreeSet<usize>,
    filled: Vec<FilledField>,
    /// Ids in the addresses of links that a value of the command selected.
    ids: Vec<String>,
    at: Option<String>,
    /// The values of fields, and whether they were on, when first seen.
    first: BTreeMap<ElementId, (Option<String>, bool)>,
}

impl Builder<'_> {
    fn template(&self, text: &str) -> SlotTemplate {
        SlotTemplate::of(text, &self.found.slots, |slot| self.used.contains(&slot))
    }

    fn anchor(&self, page: &PlacedView<'_>, at: usize) -> Option<Anchor> {
        let known = Known {
            slots: &self.found.slots,
            start: self.start,
            used: &self.used,
        };
        Anchor::of(page, at, known)
    }

    /// Returns an address with the values of the command.
    fn relative(&self, address: &str) -> SlotTemplate {
        let relative = address::relative(address, self.start);
        address::template_of(&relative, &self.found.slots, |slot| {
            self.used.contains(&slot)
        })
    }

    /// Returns where a view is: the address of a page, or the windows of a desktop.
    fn place(&self, view: &View) -> Expectation {
        if desktop::is_desktop(view) {
            let windows = desktop::windows(view).into_iter();
            let are = windows.map(|window| LearnedWindow {
                program: window.program,
                title: self.template(&window.title),
                is_active: window.is_active,
            });
            return Expectation::Windows { are: are.collect() };
        }
        Expectation::Address {
            is: self.with_found_ids(&view.address),
        }
    }

    fn with_found_ids(&self, address: &str) -> SlotTemplate {
        let form = self.relative(address);
        let mut ids = self.ids.clone();
        address::with_ids(&form, &mut ids, self.found.slots.len(), |_| false)
    }

    /// Returns the address after the last step, if the step created something with an id.
    fn new_address(&self, view: &View) -> Option<Expectation> {
        let form = self.relative(&view.address);
        let mut ids = self.ids.clone();
        let is = address::with_ids(&form, &mut ids, self.found.slots.len(), |_| true);
        (ids.len() > self.ids.len()).then_some(Expectation::NewAddress { is })
    }

    /// Finds the ids in the address of a link that a value of the command chose.
    fn find_ids(&mut self, link: &Element, after: &View) -> Option<SlotTemplate> {
        let to = link.address.as_deref().filter(|to| *to == after.address)?;
        let known = self.ids.len();
        let form = self.relative(to);
        let first = self.found.slots.len();
        let is_of_path = |place| place == address::AddressPart::Path;
        let form = address::with_ids(&form, &mut self.ids, first, is_of_path);
        (self.ids.len() > known).then_some(form)
    }

    fn form(&self, form: &Form) -> RecordedForm {
        RecordedForm::of(form, self.with_found_ids(&form.action), |text| {
            self.template(text)
        })
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
        let page = PlacedView::new(view);
        let decides = decides(step, &page);
        // The last button of a page sends what was filled in. In a program it often saves.
        let commits = step.commits || (decides && is_last && !desktop::is_desktop(view));
        let form = step.form.as_ref().filter(|_| commits);
        let mut before = self.before(&page);
        if decides {
            before.extend(self.read_back(&page, form));
        }
        self.at = Some(view.address.clone());
        let mut made = ProcedureStep {
            tool: step.call.tool.clone(),
            arguments: step.call.arguments.clone(),
            before,
            commits,
            form: form.map(|form| self.form(form)),
            waited_ms: step.waited_ms,
            ..ProcedureStep::default()
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
            made.after.push(new.unwrap_or_else(|| self.place(after)));
            made.after.extend(appeared);
        }
        let shows_it = |one: &Expectation| {
            !matches!(
                one,
                Expectation::Address { .. }
                    | Expectation::NewAddress { .. }
                    | Expectation::Windows { .. }
            )
        };
        let moved = after.is_some_and(|after| {
            after.address != view.address || desktop::windows(after) != desktop::windows(view)
        });
        if commits && !moved && !made.after.iter().any(shows_it) {
            return Err(NotLearned::because(
                "nothing on the page showed that the last action had happened",
            ));
        }
        Ok(made)
    }

    fn before(&mut self, page: &PlacedView<'_>) -> Vec<Expectation> {
        for element in page.fields() {
            let first = (element.value.clone(), page::is_on(element));
            self.first.entry(element.id).or_insert(first);
        }
        let view = page.view;
        let on_desktop = desktop::is_desktop(view);
        let mut before = vec![self.place(view)];
        if !on_desktop {
            before.extend(self.amounts_of_page(view));
        }
        if let Some(dialog) = &view.dialog {
            before.push(Expectation::Asks {
                message: self.template(&dialog.message),
            });
        }
        before
    }

    fn held(&self, view: &View, condition: &Expectation) -> bool {
        let own = self.found.slots.iter().map(|slot| slot.learned.clone());
        let sight = ReplaySight {
            view,
            start: self.start,
            slots: &self.found.slots,
            values: &SlotValues(own.collect()),
        };
        condition.check(&sight).is_ok()
    }

    /// Reads the value of an action from the command.
    fn value(
        &mut self,
        step: &RecordedStep,
        page: &PlacedView<'_>,
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
                let is_file = step.call.tool == OpenApplicationCall::TOOL;
                let is_said = is_click && self.found.says(&used.value);
                return if is_button || is_file || is_said {
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
        for argument in ["text", "option", "file"] {
            let is_value = text_of(step, argument).is_some_and(|text| text.trim() == used.value);
            if is_value {
                let template = SlotTemplate(vec![crate::TemplatePart::Slot(slot)]);
                made.texts.push((format!("/{argument}"), template));
            }
        }
        Ok(())
    }

    /// Describes the element of an action, and the conditions on it.
    fn target(
        &mut self,
        step: &RecordedStep,
        page: &PlacedView<'_>,
        after: Option<&View>,
        made: &mut ProcedureStep,
    ) -> Result<(), NotLearned> {
        if text_of(step, "on").is_none() {
            let needs_none = [
                AnswerDialogCall::TOOL,
                PressKeyCall::TOOL,
                OpenApplicationCall::TOOL,
            ];
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
        let value = if !desktop::is_desktop(page.view) {
            element.value.as_deref()
        } else if element.states.contains(&ElementState::Multiple) {
            // Nothing is written over another text than the learned one.
            Some(element.value.as_deref().unwrap_or_default())
        } else {
            None
        };
        if element.name.trim().is_empty()
            && let Some(value) = value
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
                without_rows: false,
            });
        }
        self.remember_field(step, element, &anchor, after, made);
        made.targets.push(("on".to_owned(), anchor));
        Ok(())
    }

    fn remember_field(
        &mut self,
        step: &RecordedStep,
        element: &Element,
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
        let shown = page::amounts_of_page(&PlacedView::new(view), true);
        let is_new = self.at.as_ref() != Some(&view.address);
        let is_about_one = !shown.is_empty() && shown.len() <= MOST_AMOUNTS;
        (is_new && is_about_one).then(|| Expectation::Amounts {
            shown: shown.into_iter().collect(),
            slots: self.used.iter().copied().collect(),
            of: None,
            without_rows: true,
        })
    }

    /// Returns the conditions on a page before something is sent: all that was filled in, whatever
    /// else shows a value of the command, all fields as they were, and the amounts. Where the press
    /// compares the form itself, what stands beside it may differ: a procedure must survive its own
    /// effect.
    fn read_back(&self, page: &PlacedView<'_>, form: Option<&Form>) -> Vec<Expectation> {
        let is_compared = form.is_some_and(|form| form.sends.is_some());
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
            self.texts_with_values(page, is_compared)
                .map(|text| Expectation::Shows { text }),
        );
        if is_compared {
            return conditions;
        }
        let value = |element: &Element| {
            let text = element.value.as_deref().unwrap_or_default();
            let of = |slot: &&usize| self.found.slots[**slot].learned == text;
            match self.used.iter().find(of) {
                Some(slot) => FieldValue::Slot(*slot),
                None if self.is_of_program(page, element) => FieldValue::Any,
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
                without_rows: false,
            });
        }
        if desktop::is_desktop(page.view) {
            // Programs change what was filled in, and that is not how it must be again.
            conditions.retain(|one| self.held(page.view, one));
        }
        conditions
    }

    /// Whether a program has changed a field itself since its window first appeared.
    fn is_of_program(&self, page: &PlacedView<'_>, element: &Element) -> bool {
        let now = (element.value.clone(), page::is_on(element));
        let was_filled = self.filled.iter().any(|field| {
            let value = field.value.as_ref().map(SlotTemplate::fixed_words);
            field.id == element.id.to_string() && (value.is_none() || value == element.value)
        });
        let is_changed = self
            .first
            .get(&element.id)
            .is_some_and(|first| *first != now);
        desktop::is_desktop(page.view) && is_changed && !was_filled
    }

    /// Returns the texts of a page that contain used values of the command, as templates.
    fn texts_with_values(
        &self,
        page: &PlacedView<'_>,
        without_rows: bool,
    ) -> impl Iterator<Item = SlotTemplate> {
        let tells = ["text", "heading", "cell", "listitem", "status", "alert"];
        let all = page.view.elements.iter().enumerate();
        let elements = all.filter(|(at, element)| {
            let is_left_out = without_rows && page.is_in_row(*at);
            tells.contains(&element.role.as_str()) && page::is_shown(element) && !is_left_out
        });
        let elements = elements.map(|(_, element)| element);
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

    /// Returns a condition for what appeared on the page, as a sign that the step happened: texts
    /// with values of the command, or without any, texts that are always the same.
    fn appeared(&self, before: &PlacedView<'_>, after: &View) -> Option<Expectation> {
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
