//! `gyrus demo-site`

use clap::Args;
use gyrus_lab::sites::{self, SiteServer};

use crate::{Gyrus, drive, exit::Code, failure::Failure};
use gyrus_surfaces::output;

/// Serve the sites that the tasks are about, until Ctrl-C: a shop, a mail box, a calendar and more
///
/// Only this machine reaches them. What is done there is kept per world (the part of the address
/// after /w/) and forgotten when it ends.
#[derive(Args)]
pub(crate) struct DemoSite {
    /// The port to listen on; without it, a free one
    #[arg(long)]
    port: Option<u16>,
}

impl DemoSite {
    pub(crate) fn execute(self, _: &Gyrus) -> Result<Code, Failure> {
        drive::runtime()?.block_on(async {
            let site = SiteServer::start(self.port).await.map_err(|error| {
                Failure::failed("the sites cannot be served")
                    .because(&error)
                    .hint("choose another --port, or none for a free one")
            })?;
            {
                let mut out = output::standard();
                writeln!(out, "{}/w/demo/", site.address())?;
                for (name, title) in sites::sites() {
                    writeln!(out, "  {name:<10} {title}")?;
                }
                out.flush()?;
            }
            tokio::signal::ctrl_c().await?;
            Ok(Code::Reached)
        })
    }
}
