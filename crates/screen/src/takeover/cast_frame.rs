//! A picture of the page, as the browser sends it while a person has the screen.

use serde::Deserialize;

use crate::cdp::CdpEvent;

/// A picture of the page.
#[derive(Debug)]
pub(crate) struct CastFrame {
    pub(super) session: String,
    pub(super) shot: CastFrameEvent,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct CastFrameEvent {
    pub(super) data: String,
    pub(super) metadata: CastMetadata,
    #[serde(rename = "sessionId")]
    pub(super) number: i64,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct CastMetadata {
    pub(super) device_width: f64,
    pub(super) device_height: f64,
}

impl CastFrame {
    pub(crate) fn of(event: &CdpEvent<'_>) -> Option<Self> {
        Some(Self {
            session: event.session.to_owned(),
            shot: event.params()?,
        })
    }
}
