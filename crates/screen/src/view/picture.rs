//! The picture of a page: captured by the browser, as wide as a frame may be.
//!
//! PNG, made for speed: of what the browser can encode it takes the least time, its text is
//! sharp, and what must not be seen can be painted over exactly (docs/screen.md has the figures).

use base64::{Engine, engine::general_purpose::STANDARD};
use gyrus_contract::{Bounds, Picture};
use serde::Deserialize;
use serde_json::json;

use super::{
    memory::{HashedPicture, LastPicture, MAX_WIDTH, PageScale},
    pixels::Pixels,
};
use crate::{browser::BrowserSession, cdp::CdpError, state::TabState};

#[derive(Deserialize)]
pub(super) struct BrowserPicture {
    data: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct LayoutMetrics {
    css_visual_viewport: Viewport,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Viewport {
    page_x: f64,
    page_y: f64,
}

impl BrowserSession {
    /// Captures the visible part of a tab with this scaling.
    pub(super) async fn capture(
        &self,
        tab: &TabState,
        scaling: PageScale,
        height: f64,
    ) -> Result<BrowserPicture, CdpError> {
        let session = &tab.session;
        let mut order = json!({
            "format": "png",
            "optimizeForSpeed": true,
            "captureBeyondViewport": false,
        });
        // Scaling takes the browser longer, so it is used only where pixels differ from CSS pixels.
        let is_plain =
            (scaling.density - 1.0).abs() < 1e-6 && scaling.width <= f64::from(MAX_WIDTH);
        if !is_plain {
            let metrics: LayoutMetrics = self
                .cdp
                .call(session, "Page.getLayoutMetrics", json!({}))
                .await?;
            let seen = metrics.css_visual_viewport;
            let scale = (f64::from(MAX_WIDTH) / scaling.width.max(1.0)).min(1.0);
            order["clip"] = json!({
                "x": seen.page_x,
                "y": seen.page_y,
                "width": scaling.width / scaling.zoom,
                "height": height / scaling.zoom,
                "scale": scale * scaling.zoom / scaling.density,
            });
        }
        self.cdp
            .call(session, "Page.captureScreenshot", order)
            .await
    }

    /// Returns the picture with secrets covered. An unchanged picture is not made again.
    pub(super) fn develop(
        &self,
        captured: BrowserPicture,
        covered: Vec<Bounds>,
    ) -> Result<HashedPicture, String> {
        if let Some(last) = &self.memory.lock().picture
            && last.data == captured.data
            && last.covered == covered
        {
            return Ok(last.frame.clone());
        }
        let mut bytes = STANDARD
            .decode(&captured.data)
            .map_err(|error| error.to_string())?;
        let mut pixels = Pixels::decode(&bytes)?;
        if !covered.is_empty() {
            for bounds in &covered {
                pixels.cover(*bounds);
            }
            bytes = pixels.encode()?;
        }
        let frame = HashedPicture {
            hash: pixels.average_hash(),
            picture: Picture {
                bytes,
                media_type: "image/png",
                width: pixels.width,
                height: pixels.height,
            },
        };
        self.memory.lock().picture = Some(LastPicture {
            data: captured.data,
            covered,
            frame: frame.clone(),
        });
        Ok(frame)
    }
}
