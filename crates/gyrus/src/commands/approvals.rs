//! `gyrus approvals`

use std::io::{BufRead, stdin};

use clap::{Args, Subcommand};
use gyrus_journal::Store;
use gyrus_text::one_line;
use serde_json::json;

use gyrus_kernel::{
    Register,
    approvals::{self, ApprovalError, OpenQuestion, VoidAnswer},
    grants::{self, StandingGrant},
};

use super::{approve::check_edited, listing::ListFlags};
use crate::{Gyrus, exit::Code, failure::Failure, inside_run, time};
use gyrus_surfaces::{
    card_editor,
    console::Painter,
    console::card,
    console::{choices, put, understand, wants_to_edit},
    output::{self, StandardOutput},
    terminal,
};

/// List what runs ask and what you always allow; answer, or take back
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Approvals {
    #[command(subcommand)]
    command: Option<ApprovalsCommand>,
    #[command(flatten)]
    list: ListFlags,
}

#[derive(Subcommand)]
enum ApprovalsCommand {
    /// List both
    List(ListFlags),
    /// Answer everything that is asked, one after the other
    Answer,
    Revoke(Revoke),
}

/// Take back what you always allow
#[derive(Args)]
struct Revoke {
    /// Its number in the list, or `all`
    what: String,
}

impl Approvals {
    pub(crate) fn execute(self, gyrus: &Gyrus) -> Result<Code, Failure> {
        match self.command {
            None => list(gyrus, &self.list),
            Some(ApprovalsCommand::List(flags)) => list(gyrus, &flags),
            Some(ApprovalsCommand::Answer) => answer(gyrus),
            Some(ApprovalsCommand::Revoke(revoke)) => revoke.execute(gyrus),
        }
    }
}

/// Returns every open question, those of children with the run that a person started.
fn all_open(store: &Store) -> Result<Vec<OpenQuestion>, Failure> {
    let mut all = Vec::new();
    for run in Register::read(store)?.unfinished(store) {
        if run.is_root() {
            all.extend(approvals::open(store, run)?);
        }
    }
    Ok(all)
}

fn list(gyrus: &Gyrus, flags: &ListFlags) -> Result<Code, Failure> {
    let store = gyrus.store()?;
    let mut out = output::standard();
    let painter = Painter::new(&out, gyrus.environment.plain);
    let open = all_open(&store)?;
    for open in &open {
        let name = open.run.short();
        let id = &open.id;
        let item = json!({
            "run": open.run,
            "question": id.to_string(),
            "card": open.card,
            "asked": gyrus_text::utc(open.valid.from_ms),
            "left_ms": open.valid.left_ms(time::now_ms()),
            "answered": approvals::waiting_answer(&store, open)?,
        });
        if !flags.shows(&mut out, &item)? {
            continue;
        }
        for line in card::lines(id, &open.card, &name, &painter) {
            writeln!(out, "{line}")?;
        }
        let asked = time::ago(open.valid.from_ms);
        let left = open.valid.left_ms(time::now_ms());
        if left == 0 {
            writeln!(
                out,
                "  asked {asked}, and expired; to be asked anew: gyrus resume {name}\n"
            )?;
        } else if let Some(said) = approvals::waiting_answer(&store, open)? {
            writeln!(out, "  asked {asked}; {said}: gyrus resume {name}\n")?;
        } else {
            let left = gyrus_text::span(left);
            writeln!(
                out,
                "  asked {asked}, expires in {left}: gyrus approve {name} {id}, or gyrus deny \
                 {name} {id}\n"
            )?;
        }
    }
    if open.is_empty() && !flags.json {
        writeln!(out, "nothing is asked")?;
    }
    list_grants(&store, flags, &mut out)
}

/// Lists the calls that are always allowed.
fn list_grants(
    store: &Store,
    flags: &ListFlags,
    out: &mut StandardOutput,
) -> Result<Code, Failure> {
    let standing = grants::all(store)?;
    let mut heading = Some("always allowed:");
    for (number, standing) in (1..).zip(&standing) {
        let StandingGrant {
            workspace,
            grant,
            by,
            at_ms,
        } = standing;
        let item = json!({
            "number": number,
            "always": grant.to_string(),
            "workspace": workspace,
            "by": by,
            "since": gyrus_text::utc(*at_ms),
        });
        if !flags.shows(out, &item)? {
            continue;
        }
        if let Some(heading) = heading.take() {
            writeln!(out, "{heading}")?;
        }
        writeln!(
            out,
            "  {number}. {}, in {} (by {}, {}): gyrus approvals revoke {number}",
            one_line(&grant.to_string()),
            one_line(&workspace.to_string_lossy()),
            one_line(&by.id),
            time::ago(*at_ms)
        )?;
    }
    Ok(Code::Reached)
}

fn answer(gyrus: &Gyrus) -> Result<Code, Failure> {
    inside_run::refuse("answer for a person")?;
    let store = gyrus.store()?;
    let painter = Painter::new(&std::io::stderr(), gyrus.environment.plain);
    let person = terminal::person(gyrus.environment.user.as_deref(), "command line");
    let mut lines = stdin().lock().lines();
    let mut answered = 0;
    for open in all_open(&store)? {
        if approvals::void(&store, &open.card_id())?.is_some() {
            continue;
        }
        let name = open.run.short();
        for line in card::lines(&open.id, &open.card, &name, &painter) {
            put(&format!("{line}\n"))?;
        }
        let said = loop {
            put(choices(&open.card))?;
            let Some(line) = lines.next() else {
                put("\n")?;
                return Err(Failure::usage(format!(
                    "{answered} answered; the rest is still asked"
                )));
            };
            let line = line?;
            let said = if wants_to_edit(&line, &open.card) {
                let editor = gyrus.environment.editor.as_deref();
                card_editor::in_editor(&open.card, editor).map_err(Failure::from)
            } else if let Some(said) = understand(&line, &open.card) {
                Ok(said)
            } else {
                continue;
            };
            let checked = said.and_then(|said| {
                approvals::check(&open.card, &said).map_err(VoidAnswer::from)?;
                check_edited(gyrus, &store, &open, &said)?;
                Ok(said)
            });
            match checked {
                Ok(said) => break said,
                Err(failure) => put(&format!("{failure}\n"))?,
            }
        };
        match approvals::answer(&store, &open, person.clone(), said) {
            Err(void @ ApprovalError::Void(_)) => put(&format!("{}\n", Failure::from(void)))?,
            given => {
                given?;
                answered += 1;
            }
        }
    }
    put(&format!(
        "{answered} answered; parked runs go on with: gyrus resume RUN\n"
    ))?;
    Ok(Code::Reached)
}

impl Revoke {
    fn execute(self, gyrus: &Gyrus) -> Result<Code, Failure> {
        inside_run::refuse("take back what a person allowed")?;
        let store = gyrus.store()?;
        let person = terminal::person(gyrus.environment.user.as_deref(), "command line");
        let standing = grants::all(&store)?;
        let chosen: Vec<&StandingGrant> = match self.what.as_str() {
            "all" => standing.iter().collect(),
            number => {
                let number: Option<usize> = number.parse().ok();
                let found = number.and_then(|number| standing.get(number.checked_sub(1)?));
                let found = found.ok_or_else(|| {
                    Failure::usage(format!(
                        "no permission in the list has the number {}",
                        self.what
                    ))
                    .hint("see the list: gyrus approvals")
                })?;
                vec![found]
            }
        };
        for standing in &chosen {
            grants::revoke(&store, standing, &person)?;
            put(&format!("no longer allowed: {}\n", standing.grant))?;
        }
        if chosen.is_empty() {
            put("nothing is always allowed\n")?;
        }
        Ok(Code::Reached)
    }
}
