//! Web sites on loopback to practise on: a shop, a mail box, a calendar and more, made as real ones
//! are, for the demo, for `gyrus demo-site` and for the tasks in `suite/`.
//!
//! The one idea: a **world** is its ledger. Whatever a visitor does becomes an event of the world
//! in the address (`/w/<world>/shop/`), pages are drawn from events alone, and who wants to know
//! what really happened asks the ledger instead of a page.
//!
//! Nothing here reads a clock or a random source, knows of runs, or answers another machine.

mod holds;
mod pages;
mod restyle;
mod rules;
mod server;
mod world;

use std::{io, net::SocketAddr, sync::Arc};

use tokio::sync::watch;

pub use holds::AnswerHold;
use holds::SiteHolds;
pub use restyle::KINDS as RESTYLE_KINDS;
pub use world::SiteEvent;
use world::Worlds;

/// The sites on a free or a stated port, at two origins. Dropping it stops them.
#[derive(Debug)]
pub struct SiteServer {
    address: SocketAddr,
    other: SocketAddr,
    worlds: Arc<Worlds>,
    holds: Arc<SiteHolds>,
    _stop: watch::Sender<()>,
}

impl SiteServer {
    /// Starts to listen on 127.0.0.1, on `port` or a free one, and on another free port for content
    /// that pages embed from elsewhere.
    ///
    /// # Errors
    /// If the port is taken or nothing can listen.
    pub async fn start(port: Option<u16>) -> io::Result<Self> {
        let here = server::listen(port).await?;
        let there = server::listen(None).await?;
        let (address, other) = (here.local_addr()?, there.local_addr()?);
        let worlds = Arc::new(Worlds::default());
        let holds = Arc::<SiteHolds>::default();
        let (stop, stopped) = watch::channel(());
        for (listener, other) in [(here, other), (there, address)] {
            let served = server::SiteState::new(&worlds, &holds, other);
            server::serve(listener, served, stopped.clone());
        }
        Ok(Self {
            address,
            other,
            worlds,
            holds,
            _stop: stop,
        })
    }

    /// The origin of the sites, such as `http://127.0.0.1:4000`.
    #[must_use]
    pub fn address(&self) -> String {
        server::origin(self.address)
    }

    /// Returns the origin from which the pages embed content.
    #[must_use]
    pub fn other_address(&self) -> String {
        server::origin(self.other)
    }

    /// Makes events of this kind in a world happen without an answer, until the result is dropped.
    #[must_use]
    pub fn hold(&self, world: &str, kind: &str) -> AnswerHold {
        self.holds.hold(world, kind)
    }

    /// Whether prices in a world differ from those in a plain one.
    #[must_use]
    pub fn is_repriced(&self, world: &str) -> bool {
        restyle::PageChanges::of(world).is_some_and(|restyling| restyling.price(0) != 0)
    }

    /// Returns the events of a world, in order; none for a world without visits.
    #[must_use]
    pub fn ledger(&self, world: &str) -> Vec<SiteEvent> {
        self.worlds.ledger(world)
    }
}

/// Returns the sites by name, each with a description: the first one is the shop.
pub fn sites() -> impl Iterator<Item = (&'static str, &'static str)> {
    pages::SITES.iter().map(|site| (site.name, site.title))
}

/// Returns the names of the shop's goods.
pub fn goods() -> Vec<String> {
    let shop = pages::data("shop");
    let goods = shop["goods"].as_array().into_iter().flatten();
    goods
        .filter_map(|one| one["name"].as_str().map(str::to_owned))
        .collect()
}
