//! Answers that are held back: between a visitor's deed and the page that tells of it, for whoever
//! wants to see what happens when that page never comes.

use std::collections::BTreeMap;

use parking_lot::Mutex;
use tokio::sync::watch;

/// Held answers by world and kind of event.
#[derive(Debug, Default)]
pub(crate) struct SiteHolds(Mutex<BTreeMap<(String, String), Waits>>);

#[derive(Debug, Clone)]
struct Waits {
    reached: watch::Sender<bool>,
    let_go: watch::Receiver<()>,
}

/// Holds back the answers to one kind of event in one world, until it is dropped.
#[derive(Debug)]
pub struct AnswerHold {
    reached: watch::Receiver<bool>,
    _let_go: watch::Sender<()>,
}

impl AnswerHold {
    /// Waits until the event has happened and its answer is held back.
    pub async fn reached(&mut self) {
        // The sites are gone if it fails; nothing will happen any more.
        if self.reached.wait_for(|reached| *reached).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

impl SiteHolds {
    pub(crate) fn hold(&self, world: &str, kind: &str) -> AnswerHold {
        let (reached, is_reached) = watch::channel(false);
        let (let_go, waits) = watch::channel(());
        let mut holds = self.0.lock();
        let waits = Waits {
            reached,
            let_go: waits,
        };
        holds.insert((world.to_owned(), kind.to_owned()), waits);
        AnswerHold {
            reached: is_reached,
            _let_go: let_go,
        }
    }

    /// Waits as long as the answer to this event is held back.
    pub(crate) async fn pass(&self, world: &str, kind: &str) {
        let key = (world.to_owned(), kind.to_owned());
        let waits = {
            let holds = self.0.lock();
            holds.get(&key).cloned()
        };
        if let Some(mut waits) = waits {
            waits.reached.send_replace(true);
            // Nothing is ever sent: it ends when the other side is dropped.
            while waits.let_go.changed().await.is_ok() {}
        }
    }
}
