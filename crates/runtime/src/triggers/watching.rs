//! Triggers for files: one task each, which sleeps until something may have changed.

use std::{
    path::PathBuf,
    sync::{Arc, Weak},
    time::{Duration, Instant},
};

use gyrus_contract::Origin;
use serde_json::json;
use tokio::time::{sleep, sleep_until};

use super::{
    config::{FileGlobs, TriggerSource},
    error::TriggerError,
    files::{self, FilesLook, Watches},
    firing::SetOff,
    record::{HeldBack, TriggerFact, TriggerMark, settings_hash},
    shared::{LiveTrigger, TriggersInner},
};
use crate::{blocking, ledger::TRY_AGAIN};

/// Factor on the settling time after which files that still change are examined.
const IMPATIENCE: u32 = 10;

/// Denominator of the maximum share of time that scans take.
const SHARE: u32 = 10;

pub(super) fn begin(shared: &Arc<TriggersInner>, live: &Arc<LiveTrigger>) {
    let TriggerSource::Files {
        folder,
        globs,
        settle,
        missed,
    } = &live.config.source
    else {
        return;
    };
    let watching = FilesWatch {
        shared: Arc::downgrade(shared),
        live: Arc::downgrade(live),
        folder: folder.clone(),
        globs: globs.clone(),
        settle: *settle,
        missed: *missed,
        before: None,
        is_untold: false,
    };
    let task = tokio::spawn(watching.follow());
    *live.watching.lock() = Some(task.abort_handle());
}

struct FilesWatch {
    shared: Weak<TriggersInner>,
    live: Weak<LiveTrigger>,
    folder: PathBuf,
    globs: FileGlobs,
    settle: Duration,
    missed: bool,
    before: Option<FilesLook>,
    /// Whether the disk or the bus refused what the last look found.
    is_untold: bool,
}

impl FilesWatch {
    async fn follow(mut self) {
        // The first look tells what changed while nobody served; no run of the agent did that.
        let mut by_others = true;
        loop {
            let Some((mut watches, took)) = self.look(by_others).await else {
                return;
            };
            // A large folder is looked at less often.
            let settle = self.settle.max(took * SHARE);
            if self.is_untold {
                sleep(settle.max(TRY_AGAIN)).await;
                continue;
            }
            watches.changed().await;
            by_others = !self.is_working();
            let patience = tokio::time::Instant::now() + settle * IMPATIENCE;
            loop {
                tokio::select! {
                    () = watches.changed() => by_others |= !self.is_working(),
                    () = sleep(settle) => break,
                    () = sleep_until(patience) => break,
                }
            }
        }
    }

    /// Scans the files, and fires if anyone but the agent changed them. Returns the watches and the
    /// time that the look took; `None` once the trigger is gone.
    async fn look(&mut self, by_others: bool) -> Option<(Watches, Duration)> {
        let (shared, live) = (self.shared.upgrade()?, self.live.upgrade()?);
        let (folder, globs) = (self.folder.clone(), self.globs.clone());
        let permit = shared.looks.acquire().await.ok()?;
        let looking = blocking(move || {
            let since = Instant::now();
            let (look, watches) = files::look(&folder, &globs);
            (look, watches, since.elapsed())
        });
        let (look, watches, took) = looking.await;
        drop(permit);
        match look {
            Ok(look) => {
                let compared = self.compare(&shared, &live, &look, by_others).await;
                self.is_untold = compared.is_err();
                if compared.is_ok() {
                    self.before = Some(look);
                }
                *live.problem.lock() = None;
            }
            Err(error) => {
                let why = error.to_string();
                let is_new = live.problem.lock().replace(why.clone()).as_ref() != Some(&why);
                if is_new {
                    let key = crate::EventId::new().to_string();
                    let _ = shared.tell(&live, "unwatched", &key, &why).await;
                }
            }
        }
        Some((watches, took))
    }

    async fn compare(
        &self,
        shared: &TriggersInner,
        live: &LiveTrigger,
        look: &FilesLook,
        by_others: bool,
    ) -> Result<(), TriggerError> {
        let settings = settings_hash(&(&self.folder, self.globs.patterns()));
        let fingerprint = look.fingerprint(&settings);
        let (last, fired) = shared.look(&live.name, |record| {
            (record.mark.fingerprint.clone(), record.fired)
        });
        // Other settings find other files, which did not change for that.
        let last = last.filter(|last| self.missed && last.starts_with(&settings));
        let mark = TriggerMark {
            fingerprint: self.missed.then(|| fingerprint.clone()),
            ..TriggerMark::default()
        };
        let trigger = &live.name.trigger;
        let payload = match &self.before {
            Some(before) => look.since(before).map(|changes| changes.payload(trigger)),
            // What it was like before is not known file by file.
            None if last.as_ref().is_some_and(|last| *last != fingerprint) => {
                Some(json!({"trigger": trigger, "changed": [], "removed": [], "unknown": true}))
            }
            None if last.is_none() && self.missed => {
                let name = live.name.clone();
                return shared
                    .record(vec![TriggerFact::Marked { name, mark }])
                    .await;
            }
            None => None,
        };
        let Some(payload) = payload else {
            return Ok(());
        };
        if !by_others {
            let held = TriggerFact::Held {
                name: live.name.clone(),
                why: HeldBack::OwnRun,
                at_ms: shared.clock.now_ms(),
                mark,
            };
            return shared.record(vec![held]).await;
        }
        let topic = format!("agent.{}.inbox", live.name.agent);
        let what = SetOff {
            // The same files may come again, and are another change then.
            key: &format!("{fired}/{fingerprint}"),
            payload,
            origin: Origin::Event { topic },
            mark,
        };
        shared.set_off(live, what).await.map(drop)
    }

    fn is_working(&self) -> bool {
        let (Some(shared), Some(live)) = (self.shared.upgrade(), self.live.upgrade()) else {
            return false;
        };
        shared.is_working(&live.name.agent)
    }
}
