//! Looking at the screen. Every view is recorded, so that it can be replayed.

use std::collections::VecDeque;

use gyrus_contract::{EffectId, Image, LookOptions, View};

use crate::{
    EffectError, Entry, Inline, ScreenViewed, Stop, core::Core, recorded::diverges,
    run::NumberedEffect, runs::entries, typed::SecretFields,
};

/// Returns the view, or the reason why there is none.
pub(crate) async fn perform(
    core: &Core,
    begun: NumberedEffect,
    frame: bool,
) -> Result<View, EffectError<String>> {
    let viewed = match begun.past.into_iter().next() {
        Some(Entry::ScreenViewed(viewed)) => viewed,
        Some(other) => {
            return Err(diverges(&begun.effect, &other, "looking at the screen").into());
        }
        None => {
            core.may_act()?;
            core.shared().looked = true;
            let viewed = live(core, begun.effect, frame).await?;
            core.log.append(viewed.clone())?;
            viewed
        }
    };
    let text: String = viewed.view.load(&core.log)?;
    if viewed.is_error {
        return Err(EffectError::Failed(text));
    }
    core.expose();
    let view = parse(&text)?;
    let mut shared = core.shared();
    shared.state.documents = shared.state.documents.max(viewed.documents);
    shared.secret_fields = SecretFields::of(&view);
    shared.picture = view.frame.clone();
    drop(shared);
    Ok(view)
}

pub(crate) fn load(core: &Core, viewed: &ScreenViewed) -> Result<View, Stop> {
    parse(&viewed.view.load(&core.log)?)
}

fn parse(text: &str) -> Result<View, Stop> {
    serde_json::from_str(text)
        .map_err(|error| Stop::Failed(format!("a recorded view cannot be read: {error}")))
}

/// Returns the first view of the run and its last `most`, up to `cycle`, since a later process
/// reads a journal that has continued.
pub(crate) async fn seen_so_far(core: &Core, cycle: u32, most: usize) -> Result<Vec<View>, Stop> {
    if core.log.is_live() {
        core.log.barrier().await?;
    }
    let mut first = None;
    let mut last = VecDeque::new();
    for entry in entries(core.log.reader(), 1)? {
        let Entry::ScreenViewed(viewed) = entry?.1 else {
            continue;
        };
        if viewed.effect.cycle_number() > cycle {
            break;
        }
        if viewed.is_error {
            continue;
        }
        if first.is_none() {
            first = Some(viewed);
            continue;
        }
        last.push_back(viewed);
        if last.len() > most {
            last.pop_front();
        }
    }
    let views = first.into_iter().chain(last);
    views
        .map(|viewed| parse(&viewed.view.load(&core.log)?))
        .collect()
}

async fn live(core: &Core, effect: EffectId, frame: bool) -> Result<ScreenViewed, Stop> {
    let documents = core.shared().state.documents;
    let blind = |reason: String| {
        Ok(ScreenViewed {
            effect: effect.clone(),
            session: String::new(),
            documents,
            view: Inline::store(&reason, &core.log)?,
            is_error: true,
            frame: None,
        })
    };
    let Some(screen) = core.kernel.organs().screen.clone() else {
        return blind("this run has no screen".to_owned());
    };
    // No model would see the picture.
    let frame = frame && core.router().sees_pictures();
    let wanted = LookOptions { frame, documents };
    // The run does not look while a person sees and types on the screen.
    let _acting = core.acting().await?;
    let seen = tokio::select! {
        seen = screen.look(wanted) => seen,
        ending = core.controls.stopped() => return Err(ending.into()),
    };
    let mut seen = match seen {
        Ok(seen) => seen,
        Err(error) => {
            let text = error.to_string();
            return blind(core.kernel.organs().redactor.redact(&text).into_owned());
        }
    };
    if let Some(picture) = seen.frame {
        seen.view.frame = Some(Image {
            blob: core.log.put_blob(&picture.bytes)?,
            media_type: picture.media_type.to_owned(),
            width: picture.width,
            height: picture.height,
        });
    }
    let mut value =
        serde_json::to_value(&seen.view).map_err(|error| Stop::Failed(error.to_string()))?;
    core.kernel.organs().redactor.redact_json(&mut value);
    Ok(ScreenViewed {
        effect,
        session: seen.view.session,
        documents: seen.view.documents,
        view: Inline::store(&value.to_string(), &core.log)?,
        is_error: false,
        frame: seen.view.frame,
    })
}
