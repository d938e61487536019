//! How a run is told to pause or to stop, by whoever holds it.

use std::sync::Arc;

use gyrus_contract::Principal;
use tokio::sync::{OwnedRwLockWriteGuard, RwLock, RwLockReadGuard, watch};

use crate::Ending;

/// How urgently a run should end.
#[derive(Debug, Clone, PartialEq)]
enum Asked {
    Nothing,
    /// Finish the effect in hand, then park.
    Pause(Ending),
    /// Cut off what is in hand, then park.
    Now(Ending),
}

/// Tells one run to pause or stop. Clones speak to the same run.
#[derive(Debug, Clone)]
pub struct Controls {
    asked: Arc<watch::Sender<Asked>>,
    /// Shared by whatever acts; whoever has it alone is a person. `true`: the run is over.
    hands: Arc<RwLock<bool>>,
}

impl Default for Controls {
    fn default() -> Self {
        Self {
            asked: Arc::new(watch::Sender::new(Asked::Nothing)),
            hands: Arc::default(),
        }
    }
}

impl Controls {
    /// The run finishes the effect in hand and parks; the interrupt of a terminal.
    pub fn interrupt(&self) {
        self.ask(Asked::Pause(Ending::Interrupted));
    }

    /// The run cuts off what is in hand and parks.
    pub fn interrupt_now(&self) {
        self.ask(Asked::Now(Ending::Interrupted));
    }

    /// As [`interrupt`](Self::interrupt), by a person elsewhere.
    pub fn pause(&self, by: Principal) {
        self.ask(Asked::Pause(Ending::Stopped { by }));
    }

    /// As [`interrupt_now`](Self::interrupt_now), by a person elsewhere.
    pub fn stop(&self, by: Principal) {
        self.ask(Asked::Now(Ending::Stopped { by }));
    }

    fn ask(&self, wish: Asked) {
        self.asked.send_if_modified(|asked| {
            // The more urgent wish wins; the first of two equally urgent ones.
            let replaces = match (&*asked, &wish) {
                (Asked::Nothing, _) | (Asked::Pause(_), Asked::Now(_)) => true,
                (Asked::Pause(_) | Asked::Now(_), _) => false,
            };
            if replaces {
                *asked = wish;
            }
            replaces
        });
    }

    /// What was asked for, however urgent.
    pub(crate) fn pausing(&self) -> Option<Ending> {
        match &*self.asked.borrow() {
            Asked::Nothing => None,
            Asked::Pause(ending) | Asked::Now(ending) => Some(ending.clone()),
        }
    }

    /// Waits until the run should end before its next effect.
    pub(crate) async fn paused(&self) -> Ending {
        self.until(|asked| match asked {
            Asked::Nothing => None,
            Asked::Pause(ending) | Asked::Now(ending) => Some(ending.clone()),
        })
        .await
    }

    /// Waits until the run should cut off what is in hand.
    pub(crate) async fn stopped(&self) -> Ending {
        self.until(|asked| match asked {
            Asked::Nothing | Asked::Pause(_) => None,
            Asked::Now(ending) => Some(ending.clone()),
        })
        .await
    }

    /// Waits until no person has the screen. Nobody gets it while this lives.
    pub(crate) async fn acting(&self) -> Result<RwLockReadGuard<'_, bool>, Ending> {
        tokio::select! {
            biased;
            acting = self.hands.read() => Ok(acting),
            ending = self.paused() => Err(ending),
        }
    }

    /// Waits until nothing is in hand, and lets nothing begin while this lives; `None` when the
    /// run is over.
    pub(crate) async fn alone(&self) -> Option<OwnedRwLockWriteGuard<bool>> {
        let hands = self.hands.clone().write_owned().await;
        (!*hands).then_some(hands)
    }

    /// Waits until no person has the screen. Nobody gets it any more.
    pub(crate) async fn close(&self) {
        *self.hands.write().await = true;
    }

    async fn until(&self, wanted: impl Fn(&Asked) -> Option<Ending>) -> Ending {
        let mut asked = self.asked.subscribe();
        loop {
            if let Some(ending) = wanted(&asked.borrow_and_update()) {
                return ending;
            }
            // `self` holds the sender, so the channel cannot close while we wait.
            if asked.changed().await.is_err() {
                return Ending::Interrupted;
            }
        }
    }
}
