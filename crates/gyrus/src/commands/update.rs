//! `gyrus update`

use clap::Args;
use gyrus_surfaces::console::put;
use gyrus_text::visible;

use crate::{
    Gyrus, drive,
    exit::Code,
    failure::Failure,
    inside_run,
    update::{self, Address, UpdateEnd},
};

/// Put a newer gyrus in the place of this one
///
/// Newer packages are looked for only where the keys `update.url` and `update.key` of config.toml say,
/// and only those count whose checksums that key has signed. The new program is tried before and after it takes this
/// one's place; if `gyrus doctor` fails by it, the old one comes back.
#[derive(Args)]
pub(crate) struct UpdateCommand {
    /// Only say whether there is a newer one
    #[arg(long)]
    check: bool,
    /// Put the program back that the last update replaced
    #[arg(long, conflicts_with = "check")]
    back: bool,
}

impl UpdateCommand {
    pub(crate) fn execute(self, gyrus: &Gyrus) -> Result<Code, Failure> {
        inside_run::refuse("update gyrus")?;
        if self.back {
            let program = update::go_back()?;
            put(&format!(
                "the earlier program is at {} again\n",
                program.display()
            ))?;
            return Ok(Code::Reached);
        }
        let address = Address::of(&gyrus.config()?.update)?;
        drive::wait_for(self.update(&address))?
    }

    async fn update(&self, address: &Address) -> Result<Code, Failure> {
        let package = address.newest().await?;
        let (own, newest) = (env!("CARGO_PKG_VERSION"), &package.version);
        if !package.is_newer() {
            put(&format!(
                "gyrus {own} is up to date; the newest there is {newest}\n"
            ))?;
            return Ok(Code::Reached);
        }
        if self.check {
            put(&format!("gyrus {newest} is there; this is {own}\n"))?;
            return Ok(Code::Reached);
        }
        let archive = address.archive(&package).await?;
        match update::install(&package, &archive)? {
            UpdateEnd::Replaced { kept } => {
                put(&format!(
                    "gyrus {newest} took the place of {own}, which is kept at {}; servers and chats that \
                     run go on with {own} until they are started again\n",
                    kept.display()
                ))?;
                Ok(Code::Reached)
            }
            UpdateEnd::WentBack(why) => Err(Failure::failed(format!(
                "gyrus {newest} was tried, and {own} is in its place again: {}",
                visible(&why)
            ))),
        }
    }
}
