//! A person's yes, which alone has a procedure replayed.

use gyrus_contract::Principal;
use gyrus_journal::Store;
use gyrus_runtime::procedures::ProcedureFact;
use gyrus_surfaces::{console::put, terminal};
use gyrus_text::visible;

use super::{
    keeping::{self, ProcedureUpdate},
    ledger::{change, kept},
    words,
};
use crate::{failure::Failure, inside_run};

/// Asks the person at this terminal, once for each procedure, whether to replay it from now on.
///
/// # Errors
/// The terminal or the ledger cannot be used.
pub(crate) fn ask(
    store: &Store,
    added: &ProcedureUpdate,
    person: &Principal,
) -> Result<(), Failure> {
    let name = &added.name;
    let known = kept(store)?;
    let Some(procedure) = known.get(name) else {
        return Ok(());
    };
    let latest = procedure.version(added.version);
    let (true, Some(latest)) = (procedure.is_to_be_asked(), latest) else {
        return Ok(());
    };
    inside_run::refuse("promote procedures")?;
    let command = words::command(&latest.procedure);
    put(&format!(
        "This was learned as `{name}`. See what it does: gyrus procedures show {name}\n"
    ))?;
    let question = format!(
        "Next time, “{}” runs without a model? [y/N/never] ",
        visible(&command)
    );
    let answer = terminal::answer(&question)?.to_lowercase();
    let version = latest.version;
    change(store, |_| {
        let mut facts = vec![ProcedureFact::Asked {
            name: name.clone(),
            version,
        }];
        match answer.as_str() {
            "y" | "yes" => facts.push(keeping::promotion(name, version, person)),
            "never" => facts.push(ProcedureFact::Declined { name: name.clone() }),
            _ => {}
        }
        facts
    })?;
    put(match answer.as_str() {
        "y" | "yes" => "it does; to leave it out once: --no-procedure\n",
        "never" => "you are not asked about it again\n",
        _ => "it does not; if you change your mind: gyrus procedures promote NAME\n",
    })?;
    Ok(())
}

/// Promotes a version, which the person has seen and agreed to.
///
/// # Errors
/// A run asks for it, or the ledger cannot be written.
pub(crate) fn promote(
    store: &Store,
    name: &str,
    version: u32,
    person: &Principal,
) -> Result<(), Failure> {
    inside_run::refuse("promote procedures")?;
    change(store, |_| vec![keeping::promotion(name, version, person)])
}
