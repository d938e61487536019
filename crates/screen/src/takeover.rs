//! A person at a run's screen: a page on loopback shows it live and forwards their input.
//!
//! Opening the page requires a token that only the person gets; it is exchanged once for a key that
//! every further request needs. Neither pictures nor input are stored. The caller makes sure that
//! the run does nothing meanwhile.

mod cast;
mod cast_frame;
mod desk;
mod hand_over;
mod hands;
mod serve;
mod watcher;

use std::{io, net::Ipv4Addr, sync::Arc, time::SystemTime};

use gyrus_contract::ScreenError;
use tokio::{net::TcpListener, task::JoinHandle};

use self::desk::{Desk, random};
use crate::{
    browser::{Browser, Session},
    view::Memory,
};

pub(crate) use self::{cast_frame::CastFrame, hand_over::HandOver};
pub use self::{
    desk::GivenBack,
    watcher::{InputWatcher, PersonInput},
};

impl Browser {
    /// Opens the screen if it is not, hands it to a person, and waits until they give it back.
    /// Their page shows `reason`, the run's own words for why it asked them. `told` gets the address
    /// of the page, which admits one browser. Dropping this takes the screen back.
    ///
    /// # Errors
    /// When there is no screen, no port, or the screen is lost meanwhile.
    pub async fn take_over(
        &self,
        reason: Option<&str>,
        told: impl FnOnce(&str) + Send,
    ) -> Result<GivenBack, ScreenError> {
        self.hand_to_a_person(reason, None, told).await
    }

    /// As [`Self::take_over`], and `watcher` hears of every input before it is carried out.
    ///
    /// # Errors
    /// When there is no screen, no port, or the screen is lost meanwhile.
    pub async fn take_over_watched(
        &self,
        reason: Option<&str>,
        watcher: Arc<dyn InputWatcher>,
        told: impl FnOnce(&str) + Send,
    ) -> Result<GivenBack, ScreenError> {
        self.hand_to_a_person(reason, Some(watcher), told).await
    }

    async fn hand_to_a_person(
        &self,
        reason: Option<&str>,
        watcher: Option<Arc<dyn InputWatcher>>,
        told: impl FnOnce(&str) + Send,
    ) -> Result<GivenBack, ScreenError> {
        let session = self.session(0).await?;
        let (listener, port) = listen().await.map_err(no_page)?;
        let token = random().map_err(no_page)?;
        session.let_a_person();
        session.state().own_page = Some(port);
        let (desk, given_back) = Desk::new(session.clone(), (port, &token), reason, watcher);
        let _open = Open {
            server: tokio::spawn(serve::serve(desk.clone(), listener)),
            desk,
        };
        told(&format!("http://127.0.0.1:{port}/#{token}"));
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

fn no_page(error: impl std::fmt::Display) -> ScreenError {
    ScreenError::Unavailable {
        reason: format!("the page for taking over cannot be served: {error}"),
    }
}

/// Waits until the browser has gone, and returns the reason.
async fn lost(session: &Session) -> String {
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

/// A page being served. Dropping it ends the service and resets the session for the next look.
struct Open {
    desk: Arc<Desk>,
    server: JoinHandle<()>,
}

impl Drop for Open {
    fn drop(&mut self) {
        self.server.abort();
        let session = &self.desk.session;
        self.desk.close();
        let sessions: Vec<String> = {
            let mut state = session.state();
            state.cast = None;
            state.own_page = None;
            state.dragged = None;
            // Ids of elements that a person may have changed become invalid.
            state.renumber();
            state.tabs.iter().map(|tab| tab.session.clone()).collect()
        };
        *session.memory() = Memory::default();
        for one in sessions {
            cast::stop(session, &one);
        }
    }
}
