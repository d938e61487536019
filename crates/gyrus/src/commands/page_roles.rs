//! `gyrus browser roles`: a person says what the forms of a site do, and what their fields hold.

use clap::Args;
use gyrus::runtime::Home;
use gyrus_contract::{Aim, ArgumentRole};
use gyrus_gate::{ConfirmedForm, FormMeanings, OriginForms, propose_form};
use gyrus_journal::Store;
use gyrus_kernel::{Entry, Register, entries, is_record, log_name};
use gyrus_surfaces::output;
use gyrus_text::{one_line, quote};
use serde_json::json;

use super::roles::{MeaningOrigin, RoleList, RoleRow, correct, forget};
use crate::{exit::Code, failure::Failure, new_run, workdir::here};

/// Number of the newest runs that are searched for forms.
const RUNS_READ: usize = 30;

/// Maximum number of forms of a list.
const MAX_FORMS: usize = 50;

/// Maximum number of shown characters of a page's words.
const SHOWN: usize = 80;

/// Say what the forms of a site do and what their fields hold, so that a mandate can speak of them
///
/// The list has the forms that your runs have met there: what they wanted to send by a button, or
/// sent. Read it, correct it, and say yes. A form with another button, address or field has no
/// roles, and is asked about as ever.
#[derive(Args)]
pub(crate) struct PageRoles {
    /// The site's address; the forms of exactly this scheme, host and port are meant
    #[arg(value_name = "URL")]
    address: String,
    /// A correction: `FORM=ACTION`, `FORM.FIELD=ROLE`, or `FORM=none` to leave a form out
    ///
    /// Actions are reads, creates, changes, sends, pays and deletes. Roles are to (whom or where
    /// something goes), name (the thing that it is about, or how many), amount (of money), text,
    /// password, page, option (goes nowhere), and none (a place, as everything that nobody
    /// described).
    #[arg(long = "set", value_name = "CORRECTION")]
    corrections: Vec<String>,
    /// Say yes beforehand to the list of this digest, as it is shown without it
    #[arg(long, value_name = "DIGEST")]
    content: Option<String>,
    /// Forget what you said of this site
    #[arg(long, conflicts_with_all = ["corrections", "content"])]
    forget: bool,
    /// Print JSON, and confirm nothing
    #[arg(long, conflicts_with = "forget")]
    json: bool,
}

impl PageRoles {
    pub(super) fn execute(self, home: &Home, plain: bool) -> Result<Code, Failure> {
        let origin = origin_of(&self.address)?;
        let folder = home.policy_files(&here()?).forms();
        let file = FormMeanings::file(&folder, &origin);
        if self.forget {
            return forget(
                &file,
                &format!("every form of {origin} is asked about as ever"),
            );
        }
        let all = FormMeanings::read(&folder).map_err(|error| Failure::usage(error.to_string()))?;
        let known = all.of_origin(&origin);
        let (forms, rows) = self.corrected(listed(&home.store()?, &origin, known)?)?;
        if forms.is_empty() {
            return Err(Failure::usage(format!("no run has met a form of {origin}")).hint(
                "let a run fill in the form and click its button; gyrus asks then, and knows the form from then on",
            ));
        }
        let wanted = OriginForms {
            origin: origin.clone(),
            forms: forms
                .into_iter()
                .zip(&rows)
                .map(|(form, row)| confirmed(form, row))
                .collect(),
        };
        let text = wanted
            .to_text()
            .map_err(|error| Failure::failed(error.to_string()))?;
        let list = RoleList {
            heading: format!("What the forms of {origin} do, and what their fields are:"),
            rows: &rows,
            one: "form",
            text,
            file: &file,
            is_confirmed: known == Some(&wanted),
            command: format!("gyrus browser roles {origin}"),
            corrections: &self.corrections,
            given: self.content.as_deref(),
        };
        if self.json {
            let content = list.content();
            let shown = json!({"origin": origin, "content": content, "forms": wanted.forms});
            output::standard().json(&shown)?;
            return Ok(Code::Reached);
        }
        list.confirm(plain)
    }

    /// Applies the person's corrections.
    fn corrected(
        &self,
        mut forms: Vec<(ConfirmedForm, MeaningOrigin)>,
    ) -> Result<(Vec<ConfirmedForm>, Vec<RoleRow>), Failure> {
        let all = self.corrections.iter();
        let (left_out, others): (Vec<_>, Vec<_>) = all.partition(|one| is_left_out(one));
        for correction in left_out {
            let id = correction.trim_end_matches("=none");
            let before = forms.len();
            forms.retain(|(form, _)| form.id != id);
            if forms.len() == before {
                let what = format!(
                    "--set {}: nothing in the list has this name",
                    one_line(correction)
                );
                return Err(Failure::usage(what));
            }
        }
        let mut rows: Vec<RoleRow> = forms.iter().map(|(form, why)| row(form, *why)).collect();
        for correction in others {
            correct(&mut rows, correction)?;
        }
        let forms = forms.into_iter().map(|(form, _)| form);
        Ok((forms.collect(), rows))
    }
}

fn origin_of(given: &str) -> Result<String, Failure> {
    let address = new_run::address(given)?;
    let invalid = || Failure::usage(format!("invalid address `{}`", one_line(&address)));
    FormMeanings::origin_of(&address).ok_or_else(invalid)
}

fn is_left_out(correction: &str) -> bool {
    let form = correction.strip_suffix("=none");
    form.is_some_and(|form| !form.contains('.'))
}

/// Returns the forms of the list: the confirmed ones, and others that runs have met, newest first.
fn listed(
    store: &Store,
    origin: &str,
    known: Option<&OriginForms>,
) -> Result<Vec<(ConfirmedForm, MeaningOrigin)>, Failure> {
    let confirmed = known
        .into_iter()
        .flat_map(|known| known.forms.iter().cloned());
    let mut forms: Vec<_> = confirmed
        .map(|form| (form, MeaningOrigin::Confirmed))
        .collect();
    let register = Register::read(store)?;
    let own = register
        .newest_first()
        .filter(|run| !is_record(store, *run));
    for run in own.take(RUNS_READ) {
        // A journal that cannot be read tells nothing, and the others are still read.
        let Ok(reader) = store.reader(&log_name(run)) else {
            continue;
        };
        let Ok(read) = entries(&reader, 1) else {
            continue;
        };
        let aims = read
            .map_while(Result::ok)
            .filter_map(|(_, entry)| match entry {
                Entry::GateVerdict(judged) => judged.aim,
                _ => None,
            });
        for aim in aims {
            if forms.len() < MAX_FORMS {
                add(&mut forms, origin, &aim);
            }
        }
    }
    Ok(forms)
}

/// Adds the form that an input would send, if it is one of the origin and not in the list.
fn add(forms: &mut Vec<(ConfirmedForm, MeaningOrigin)>, origin: &str, aim: &Aim) {
    let Some((of, mut form)) = propose_form(aim) else {
        return;
    };
    if of != origin || forms.iter().any(|(known, _)| known.is_same(&form)) {
        return;
    }
    let id = form.id.clone();
    let mut ids = (2..).map(|number| format!("{id}_{number}"));
    while forms.iter().any(|(known, _)| known.id == form.id) {
        form.id = ids.next().unwrap_or_default();
    }
    forms.push((form, MeaningOrigin::Proposed));
}

fn row(form: &ConfirmedForm, why: MeaningOrigin) -> RoleRow {
    let (spec, meaning) = form.as_tool("");
    let fields = form.fields.iter().map(|field| match field.label.as_str() {
        "" => format!("{} (not shown)", field.name),
        label => format!("{} {}", field.name, quote(label, SHOWN)),
    });
    let fields: Vec<_> = fields.collect();
    RoleRow {
        name: form.id.clone(),
        parameters: spec.parameters,
        meaning,
        why,
        about: vec![
            format!(
                "button {}, sent to {}",
                quote(&form.button, SHOWN),
                form.action
            ),
            format!("fields: {}", fields.join(", ")),
        ],
    }
}

fn confirmed(form: ConfirmedForm, row: &RoleRow) -> ConfirmedForm {
    let role_of = |name: &str| -> Option<ArgumentRole> {
        row.meaning.arguments.get(&name.replace('.', "_")).copied()
    };
    let fields = form.fields.into_iter().map(|mut field| {
        field.role = role_of(&field.name);
        field
    });
    ConfirmedForm {
        does: row.meaning.action,
        fields: fields.collect(),
        id: form.id,
        button: form.button,
        action: form.action,
    }
}
