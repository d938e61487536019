//! `gyrus stop`, and what it shares with `gyrus pause`

use std::time::Duration;

use clap::Args;
use gyrus_contract::MessageBody;
use gyrus_kernel::{Entry, log_name};

use crate::{
    Gyrus, approvals,
    console::put,
    drive,
    exit::Code,
    failure::Failure,
    select::{self, short},
    terminal,
};

/// How long the process that holds the run may take to obey.
const OBEY_WITHIN: Duration = Duration::from_secs(30);

/// Cut off what a run does and park it
#[derive(Args)]
pub(crate) struct Stop {
    /// The run: `last`, its id, or the start or end of it
    run: String,
}

impl Stop {
    pub(crate) fn execute(self, gyrus: &Gyrus) -> Result<Code, Failure> {
        order(gyrus, &self.run, MessageBody::Stop)
    }
}

/// Orders a run to stop or pause, and waits until it has.
pub(super) fn order(gyrus: &Gyrus, given: &str, body: MessageBody) -> Result<Code, Failure> {
    let store = gyrus.store()?;
    let run = select::find(&store, given)?;
    let name = short(&run.to_string()).to_owned();
    let Some(holder) = store.holder(&log_name(run))? else {
        put(&format!("run {name} is not running\n"))?;
        return Ok(Code::Reached);
    };
    let reader = store.reader(&log_name(run))?;
    let next = reader.end()? + 1;
    let person = terminal::person(&gyrus.environment, "command line");
    approvals::send(&store, run, person, body)?;
    let stopped = async {
        let mut follower = reader.follow(next)?;
        loop {
            let entry = follower.next().await?;
            if let Ok(Entry::RunParked(_) | Entry::RunEnded(_)) = gyrus_kernel::parse(&entry) {
                return Ok::<(), Failure>(());
            }
        }
    };
    let runtime = drive::runtime()?;
    let waited = runtime.block_on(async { tokio::time::timeout(OBEY_WITHIN, stopped).await });
    runtime.shutdown_background();
    match waited {
        Ok(stopped) => stopped?,
        Err(_) => {
            return Err(Failure::failed(format!(
                "run {name} was told so, but process {} does not obey",
                holder.process.pid
            ))
            .hint(format!(
                "it may be suspended; to end it and go on here: gyrus resume {name} --take"
            )));
        }
    }
    put(&format!(
        "run {name} is parked; to go on: gyrus resume {name}\n"
    ))?;
    Ok(Code::Reached)
}
