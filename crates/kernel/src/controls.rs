//! Controls of a run: pausing and stopping it from the process that holds it.

use std::{
    iter,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use futures_util::future::select_all;
use gyrus_contract::Principal;
use tokio::sync::{OwnedRwLockWriteGuard, RwLock, RwLockReadGuard, watch};

use crate::Ending;

#[derive(Debug, Clone, PartialEq)]
enum EndUrgency {
    Nothing,
    /// Finish the effect in progress, then park.
    Pause(Ending),
    /// Interrupt the effect in progress, then park.
    Now(Ending),
}

/// Pauses or stops one run. Clones control the same run.
#[derive(Debug, Clone)]
pub struct Controls {
    asked: Arc<watch::Sender<EndUrgency>>,
    /// The controls of the delegating run, whose orders apply to this one, too.
    above: Option<Arc<Controls>>,
    /// A lock on the screen: shared by the run's actions, exclusive for a person. `true` means that
    /// the run is over.
    hands: Arc<RwLock<bool>>,
    /// Whether a person at a terminal may put its commands into the background.
    is_attended: Arc<AtomicBool>,
    /// Announces that the commands in progress are to go on there.
    aside: Arc<watch::Sender<()>>,
}

impl Default for Controls {
    fn default() -> Self {
        Self {
            asked: Arc::new(watch::Sender::new(EndUrgency::Nothing)),
            above: None,
            hands: Arc::default(),
            is_attended: Arc::default(),
            aside: Arc::default(),
        }
    }
}

impl Controls {
    /// Returns the controls of a child run, which can be stopped alone.
    pub(crate) fn for_child(&self) -> Self {
        Self {
            above: Some(Arc::new(self.clone())),
            hands: self.hands.clone(),
            ..Self::default()
        }
    }

    /// Returns these controls, and those of the runs above.
    fn line(&self) -> impl Iterator<Item = &Self> {
        iter::successors(Some(self), |controls| controls.above.as_deref())
    }

    /// Asks the run to finish the effect in progress and park, as the interrupt of a terminal does.
    pub fn interrupt(&self) {
        self.ask(EndUrgency::Pause(Ending::Interrupted));
    }

    /// Asks the run to interrupt the effect in progress and park.
    pub fn interrupt_now(&self) {
        self.ask(EndUrgency::Now(Ending::Interrupted));
    }

    /// Does the same as [`interrupt`](Self::interrupt), on behalf of a person elsewhere. The second
    /// time it does the same as [`stop`](Self::stop), since that person does not want to wait.
    pub fn pause(&self, by: Principal) {
        let ending = Ending::Stopped { by, reason: None };
        let is_first = *self.asked.borrow() == EndUrgency::Nothing;
        self.ask(if is_first {
            EndUrgency::Pause(ending)
        } else {
            EndUrgency::Now(ending)
        });
    }

    /// Does the same as [`interrupt_now`](Self::interrupt_now), on behalf of a person elsewhere.
    pub fn stop(&self, by: Principal) {
        self.end_now(Ending::Stopped { by, reason: None });
    }

    /// Asks the run to interrupt the effect in progress and to end or park like this.
    pub(crate) fn end_now(&self, ending: Ending) {
        self.ask(EndUrgency::Now(ending));
    }

    /// Lets a person put commands of the run into the background.
    pub fn attend(&self) {
        self.is_attended.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_attended(&self) -> bool {
        self.is_attended.load(Ordering::Relaxed)
    }

    /// Puts the commands in progress into the background.
    pub(crate) fn background(&self) {
        self.aside.send_replace(());
    }

    /// Changes when the commands in progress are to go on in the background.
    pub(crate) fn aside(&self) -> watch::Receiver<()> {
        self.aside.subscribe()
    }

    fn ask(&self, order: EndUrgency) {
        self.asked.send_if_modified(|asked| {
            // The more urgent request wins, and the first of two equally urgent ones.
            let replaces = match (&*asked, &order) {
                (EndUrgency::Nothing, _) | (EndUrgency::Pause(_), EndUrgency::Now(_)) => true,
                (EndUrgency::Pause(_) | EndUrgency::Now(_), _) => false,
            };
            if replaces {
                *asked = order;
            }
            replaces
        });
    }

    /// Returns the requested ending, however urgent.
    pub(crate) fn pausing(&self) -> Option<Ending> {
        self.line()
            .find_map(|controls| match &*controls.asked.borrow() {
                EndUrgency::Nothing => None,
                EndUrgency::Pause(ending) | EndUrgency::Now(ending) => Some(ending.clone()),
            })
    }

    /// Waits until the run should end before its next effect.
    pub(crate) async fn paused(&self) -> Ending {
        self.until(|asked| match asked {
            EndUrgency::Nothing => None,
            EndUrgency::Pause(ending) | EndUrgency::Now(ending) => Some(ending.clone()),
        })
        .await
    }

    /// Waits until the run should interrupt the effect in progress.
    pub(crate) async fn stopped(&self) -> Ending {
        self.until(|asked| match asked {
            EndUrgency::Nothing | EndUrgency::Pause(_) => None,
            EndUrgency::Now(ending) => Some(ending.clone()),
        })
        .await
    }

    /// Waits until no person controls the screen. No person can take it over while the guard lives.
    pub(crate) async fn acting(&self) -> Result<RwLockReadGuard<'_, bool>, Ending> {
        tokio::select! {
            biased;
            acting = self.hands.read() => Ok(acting),
            ending = self.paused() => Err(ending),
        }
    }

    /// Waits until no action is in progress, and prevents new ones while the guard lives; returns
    /// `None` when the run is over.
    pub(crate) async fn alone(&self) -> Option<OwnedRwLockWriteGuard<bool>> {
        let hands = self.hands.clone().write_owned().await;
        (!*hands).then_some(hands)
    }

    /// Waits until no person controls the screen, and prevents further takeovers.
    pub(crate) async fn close(&self) {
        *self.hands.write().await = true;
    }

    async fn until(&self, wanted: impl Fn(&EndUrgency) -> Option<Ending>) -> Ending {
        let mut line: Vec<_> = self
            .line()
            .map(|controls| controls.asked.subscribe())
            .collect();
        loop {
            let mut all = line.iter_mut();
            if let Some(ending) = all.find_map(|asked| wanted(&asked.borrow_and_update())) {
                return ending;
            }
            let changes = line.iter_mut().map(|asked| Box::pin(asked.changed()));
            // `self` holds the senders, so no channel can close during the wait.
            if select_all(changes).await.0.is_err() {
                return Ending::Interrupted;
            }
        }
    }
}
