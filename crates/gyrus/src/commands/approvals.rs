//! `gyrus approvals`

use std::io::{Write, stdout};

use clap::Args;

use crate::{
    Gyrus, approvals,
    exit::Code,
    failure::Failure,
    select::{self, short},
    show::{card, paint::Painter},
    time,
};

/// List what runs ask and nobody has answered
#[derive(Args)]
pub(crate) struct Approvals {}

impl Approvals {
    pub(crate) fn execute(self, gyrus: &Gyrus) -> Result<Code, Failure> {
        let store = gyrus.store()?;
        let mut out = stdout().lock();
        let painter = Painter::new(&out, gyrus.environment.plain);
        let mut any = false;
        // Children's questions come with the run that a person started.
        for run in select::all(&store)?
            .into_iter()
            .filter(|run| select::is_root(*run))
        {
            for open in approvals::open(&store, run)? {
                any = true;
                let name = short(&open.run.to_string()).to_owned();
                let effect = &open.effect;
                for line in card::lines(effect, &open.card, &name, &painter) {
                    writeln!(out, "{line}")?;
                }
                let asked = time::ago(open.at_ms);
                if approvals::is_answered(&store, &open)? {
                    writeln!(out, "  asked {asked}; answered: gyrus resume {name}\n")?;
                } else {
                    writeln!(
                        out,
                        "  asked {asked}: gyrus approve {name} {effect}, or gyrus deny {name} \
                         {effect}\n"
                    )?;
                }
            }
        }
        if !any {
            writeln!(out, "nothing is asked")?;
        }
        Ok(Code::Reached)
    }
}
