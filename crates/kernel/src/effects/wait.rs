//! Waiting for a time or a signal. The process of a run may end meanwhile.

use gyrus_contract::{EffectId, MessageBody, OnAsk, Origin, Text};
use gyrus_journal::os::watch::FolderWatch;

use crate::{
    Ending, Entry, Stop, WaitEnded, WaitStarted,
    clock::{now_ms, wait_until},
    core::Core,
    recorded::diverges,
    run::NumberedEffect,
};

/// Length of a wait, in milliseconds, above which the run parks where that is allowed.
pub(crate) const PARK_AFTER_MS: i64 = 60_000;

pub(crate) async fn perform(
    core: &Core,
    begun: NumberedEffect,
    signal: Option<String>,
    until_ms: Option<i64>,
) -> Result<Option<Text>, Stop> {
    let effect = begun.effect;
    let mut started = None;
    for entry in begun.past {
        match entry {
            Entry::WaitStarted(past) if past.signal == signal && past.until_ms == until_ms => {
                started = Some(past);
            }
            Entry::WaitEnded(past) if started.is_some() => {
                if past.payload.is_some() {
                    core.expose();
                }
                return Ok(past.payload);
            }
            other => return Err(diverges(&effect, &other, waiting(&signal, until_ms))),
        }
    }
    if started.is_none() {
        let signal = signal.clone();
        core.log.append(WaitStarted {
            effect: effect.clone(),
            until_ms,
            signal,
        })?;
        core.log.barrier().await?;
    }
    if !core.log.is_live() {
        return Err(Stop::EndOfRecord);
    }
    live(core, effect, signal, until_ms).await
}

fn waiting(signal: &Option<String>, until_ms: Option<i64>) -> String {
    format!("waiting for the signal {signal:?} until {until_ms:?}")
}

async fn live(
    core: &Core,
    effect: EffectId,
    signal: Option<String>,
    until_ms: Option<i64>,
) -> Result<Option<Text>, Stop> {
    core.spares.end_all();
    let mut watch = inbox_watch(core)?;
    loop {
        core.obey_messages()?;
        if let Some(name) = &signal
            && let Some((id, payload)) = arrived(core, name)?
        {
            let payload = Some(Text::new(payload, Origin::Tool { name: name.clone() }));
            let message = Some(id.clone());
            core.log.append(WaitEnded {
                effect,
                payload: payload.clone(),
                message,
            })?;
            core.log.barrier().await?;
            core.forget_message(&id)?;
            core.expose();
            return Ok(payload);
        }
        let left_ms = until_ms.map(|until| until - now_ms());
        if left_ms.is_some_and(|left| left <= 0) {
            core.log.append(WaitEnded {
                effect,
                payload: None,
                message: None,
            })?;
            return Ok(None);
        }
        if parks(core, left_ms) {
            return Err(Ending::Sleeping {
                effect,
                until_ms,
                signal,
            }
            .into());
        }
        wait_for_news(core, &mut watch, until_ms).await?;
    }
}

/// Waits until a time, inside an effect without entries about it. The run parks where that is
/// allowed, and the effect begins again when it goes on.
pub(super) async fn until(core: &Core, effect: &EffectId, until_ms: i64) -> Result<(), Stop> {
    core.spares.end_all();
    let mut watch = inbox_watch(core)?;
    loop {
        core.obey_messages()?;
        let left_ms = until_ms - now_ms();
        if left_ms <= 0 {
            return Ok(());
        }
        if parks(core, Some(left_ms)) {
            return Err(Ending::Sleeping {
                effect: effect.clone(),
                until_ms: Some(until_ms),
                signal: None,
            }
            .into());
        }
        wait_for_news(core, &mut watch, Some(until_ms)).await?;
    }
}

fn parks(core: &Core, left_ms: Option<i64>) -> bool {
    core.settings.on_ask == OnAsk::Park && left_ms.is_none_or(|left| left > PARK_AFTER_MS)
}

fn inbox_watch(core: &Core) -> Result<Option<FolderWatch>, Stop> {
    let watch = core.inbox.as_ref().map(gyrus_journal::Inbox::watch);
    Ok(watch.transpose()?)
}

/// Waits until the time is over or a message arrives.
async fn wait_for_news(
    core: &Core,
    watch: &mut Option<FolderWatch>,
    until_ms: Option<i64>,
) -> Result<(), Stop> {
    let time_over = async {
        match until_ms {
            Some(until) => wait_until(until).await,
            None => std::future::pending().await,
        }
    };
    let message_came = async {
        match watch {
            Some(watch) => watch.changed().await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        () = time_over => Ok(()),
        _ = message_came => Ok(()),
        ending = core.controls.paused() => Err(ending.into()),
    }
}

/// Returns the oldest waiting signal of this name, with its secrets redacted.
fn arrived(core: &Core, wanted: &str) -> Result<Option<(String, String)>, Stop> {
    Ok(core
        .messages()?
        .into_iter()
        .find_map(|message| match message.body {
            MessageBody::Signal { name, payload } if name == wanted => {
                let payload = core.kernel.organs().redactor.redact(&payload).into_owned();
                Some((message.id, payload))
            }
            _ => None,
        }))
}
