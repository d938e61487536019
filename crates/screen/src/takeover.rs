//! A person at a run's screen: a page on loopback shows it live and forwards their input.
//!
//! Opening the page requires a token that only the person gets; it is exchanged once for a key that
//! every further request needs. Neither pictures nor input are stored. The caller makes sure that
//! the run does nothing meanwhile.

mod cast;
mod cast_frame;
mod desk;
mod did;
mod hand_over;
mod hands;
mod serve;
mod taken_screen;
mod watcher;
mod wire;

use std::{io, net::Ipv4Addr, sync::Arc, time::SystemTime};

use axum::body::Bytes;
use gyrus_contract::{BoxedFuture, ScreenError};
use tokio::{
    net::TcpListener,
    sync::{mpsc, oneshot},
    task::JoinHandle,
};

use self::desk::random;
use crate::{
    browser::{Browser, BrowserSession},
    view::LookMemory,
};

pub(crate) use self::{
    cast_frame::CastFrame, desk::TakeoverDesk, did::Did, hand_over::HandOverTool,
    taken_screen::TakenScreen,
};
pub use self::{
    desk::GivenBack,
    watcher::{InputWatcher, PersonInput},
};
#[cfg(feature = "desktop")]
pub(crate) use self::{
    did::{Mouse, MouseKind},
    wire::{PICTURE, WORDS, chunk},
};

/// The current page of a browser.
struct TakenPage(Arc<BrowserSession>);

impl TakenScreen for TakenPage {
    fn size(&self) -> (u32, u32) {
        (self.0.launch.width, self.0.launch.height)
    }

    fn show(
        self: Arc<Self>,
        desk: Arc<TakeoverDesk>,
        out: mpsc::Sender<Bytes>,
    ) -> BoxedFuture<'static, ()> {
        Box::pin(cast::show(self.0.clone(), desk, out))
    }

    fn forward<'a>(
        &'a self,
        desk: &'a TakeoverDesk,
        did: Did,
    ) -> BoxedFuture<'a, Result<(), String>> {
        Box::pin(hands::forward(&self.0, desk, did))
    }
}

/// A page at which a person has a screen. Dropping it ends the service.
pub(crate) struct TakeoverPage {
    desk: Arc<TakeoverDesk>,
    server: JoinHandle<()>,
    pub(crate) port: u16,
    /// The address of the page, which admits one browser.
    pub(crate) address: String,
}

impl TakeoverPage {
    /// Serves the page of a screen; returns it with the receiver of the person's giving back. It
    /// shows `reason`, the run's own words for why it asked them, and `watcher` hears of every input
    /// before it is carried out.
    pub(crate) async fn open(
        screen: Arc<dyn TakenScreen>,
        reason: Option<&str>,
        watcher: Option<Arc<dyn InputWatcher>>,
    ) -> Result<(Self, oneshot::Receiver<GivenBack>), ScreenError> {
        let (listener, port) = listen().await.map_err(no_page)?;
        let token = random().map_err(no_page)?;
        let (desk, given_back) = TakeoverDesk::new(screen.size(), (port, &token), reason, watcher);
        let served = serve::ServedDesk {
            desk: desk.clone(),
            screen,
        };
        let page = Self {
            server: tokio::spawn(serve::serve(served, listener)),
            desk,
            port,
            address: format!("http://127.0.0.1:{port}/#{token}"),
        };
        Ok((page, given_back))
    }
}

impl Drop for TakeoverPage {
    fn drop(&mut self) {
        self.server.abort();
        self.desk.close();
    }
}

impl Browser {
    /// Opens the screen if necessary, hands it to a person, and waits until they give it back.
    /// Their page shows `reason`, the run's own words for why it asked them. `told` gets the
    /// address of the page, which admits one browser; `watcher` hears of every input before it is
    /// carried out. Dropping this takes the screen back.
    ///
    /// # Errors
    /// When there is no screen, no port, or the screen is lost meanwhile.
    pub async fn take_over(
        &self,
        reason: Option<&str>,
        watcher: Option<Arc<dyn InputWatcher>>,
        told: impl FnOnce(&str) + Send,
    ) -> Result<GivenBack, ScreenError> {
        let session = self.session(0).await?;
        let screen = Arc::new(TakenPage(session.clone()));
        let (page, given_back) = TakeoverPage::open(screen, reason, watcher).await?;
        session.let_a_person();
        session.state().own_page = Some(page.port);
        let address = page.address.clone();
        let _open = TakenBrowser {
            _page: page,
            session: session.clone(),
        };
        told(&address);
        tokio::select! {
            given = given_back => given.map_err(no_page),
            reason = lost(&session) => Err(ScreenError::Lost { reason }),
        }
    }
}

async fn listen() -> io::Result<(TcpListener, u16)> {
    gyrus_text::check_http_date(SystemTime::now())?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let port = listener.local_addr()?.port();
    Ok((listener, port))
}

pub(crate) fn no_page(error: impl std::fmt::Display) -> ScreenError {
    ScreenError::Unavailable {
        reason: format!("the page for taking over cannot be served: {error}"),
    }
}

/// Waits until the browser has gone, and returns the reason.
async fn lost(session: &BrowserSession) -> String {
    let mut changes = session.changes();
    loop {
        if let Some(reason) = session.lost() {
            return reason;
        }
        if changes.changed().await.is_err() {
            return "it ended".to_owned();
        }
    }
}

/// A browser in a person's control. Dropping this resets its session for the next look.
struct TakenBrowser {
    _page: TakeoverPage,
    session: Arc<BrowserSession>,
}

impl Drop for TakenBrowser {
    fn drop(&mut self) {
        let session = &self.session;
        let sessions: Vec<String> = {
            let mut state = session.state();
            state.cast = None;
            state.own_page = None;
            state.dragged = None;
            // Ids of elements that a person may have changed become invalid.
            state.renumber();
            state.tabs.iter().map(|tab| tab.session.clone()).collect()
        };
        *session.memory.lock() = LookMemory::default();
        for one in sessions {
            cast::stop(session, &one);
        }
    }
}
