//! Looking at the screen: what was seen is recorded, so that it can be seen again.

use gyrus_contract::{EffectId, Image, Look, View};

use super::diverges;
use crate::{Entry, Inline, ScreenViewed, Stop, core::Core, run::Begun};

/// What was seen, or in words why nothing was.
pub(crate) async fn perform(
    core: &Core,
    begun: Begun,
    frame: bool,
) -> Result<Result<View, String>, Stop> {
    let viewed = match begun.past.into_iter().next() {
        Some(Entry::ScreenViewed(viewed)) => viewed,
        Some(other) => return Err(diverges(&begun.effect, &other, "looking at the screen")),
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
        return Ok(Err(text));
    }
    core.expose();
    {
        let mut shared = core.shared();
        shared.documents = shared.documents.max(viewed.documents);
    }
    let view = serde_json::from_str(&text)
        .map_err(|error| Stop::Failed(format!("a recorded view cannot be read: {error}")))?;
    Ok(Ok(view))
}

async fn live(core: &Core, effect: EffectId, frame: bool) -> Result<ScreenViewed, Stop> {
    let documents = core.shared().documents;
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
    let wanted = Look { frame, documents };
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
