//! The tool `judge`: posts a submission to an address and reads the verdict.
//!
//! It is not offered to models, and the gate allows only addresses that the person typed. It
//! connects as `fetch` does, once and without redirects; a judge on this machine or in the person's
//! own network is reached if its address, not only its name, was typed.

use std::{collections::BTreeSet, fmt::Write as _, net::IpAddr, time::Duration};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use gyrus_contract::{
    ActionVerdict, JudgeCall, JudgeRuling, Repeat, ResolvedCall, Site, ToolOutput, Touch, TypedTool,
};
use reqwest::{Method, Url, header::CONTENT_TYPE};
use serde::Deserialize;
use serde_json::Value;

use crate::{
    failure::ToolFailure,
    fetch::visit::{self, FetchAnswer},
    picture::{self, PictureHeader},
};

/// Time limit of one verdict.
const TIME_LIMIT: Duration = Duration::from_secs(600);

const MAX_REPORT_BYTES: usize = 50_000;

/// Maximum number of pictures in one report.
const MAX_IMAGES: usize = 4;

/// Posts a submission to a judge.
pub struct PostToJudge;

#[derive(Deserialize)]
struct JudgeAnswer {
    accepted: bool,
    #[serde(default)]
    report: String,
    /// The pictures, in base64.
    #[serde(default)]
    images: Vec<String>,
}

impl TypedTool for PostToJudge {
    type Arguments = JudgeCall;
    type Failure = ToolFailure;
    const REPEAT: Repeat = Repeat::Never;

    fn touches(&self) -> Vec<Touch> {
        vec![Touch::Submits("url".to_owned())]
    }

    async fn run(
        &self,
        arguments: JudgeCall,
        _call: &ResolvedCall,
        site: &dyn Site,
    ) -> Result<ToolOutput, ToolFailure> {
        let JudgeCall { url, submission } = arguments;
        let url = visit::parse(&url)?;
        let allowed = typed(&url);
        let posted = visit::send(&url, Method::POST, &allowed, |request| {
            let body = Value::Object(submission).to_string();
            request.header(CONTENT_TYPE, "application/json").body(body)
        });
        let page = tokio::time::timeout(TIME_LIMIT, posted)
            .await
            .map_err(|_| {
                let seconds = TIME_LIMIT.as_secs();
                ToolFailure::new(format!(
                    "the judge at {url} gave no verdict within {seconds} seconds"
                ))
            })??;
        answer(&url, &page, site)
    }
}

/// Returns the host if it is a literal address or means this machine: only then is it certain that
/// the person meant a host in their own network.
fn typed(url: &Url) -> BTreeSet<String> {
    let host = url.host_str().unwrap_or_default();
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let is_plain = host == "localhost" || host.parse::<IpAddr>().is_ok();
    is_plain.then(|| host.to_owned()).into_iter().collect()
}

fn answer(url: &Url, page: &FetchAnswer, site: &dyn Site) -> Result<ToolOutput, ToolFailure> {
    let status = page.status;
    let wrong = |what: String| {
        let shown = String::from_utf8_lossy(&page.body);
        let shown = gyrus_text::first_bytes(&shown, 500);
        ToolFailure::new(format!(
            "the judge at {url} gave no verdict: {what}; it said: {shown}"
        ))
    };
    if !status.is_success() || page.is_cut {
        let what = if page.is_cut {
            "its answer is too long".to_owned()
        } else {
            format!("its status is {status}")
        };
        return Err(wrong(what));
    }
    let JudgeAnswer {
        accepted,
        mut report,
        images: sent,
    } = serde_json::from_slice(&page.body)
        .map_err(|error| wrong(format!("its answer is not {{accepted, report}}: {error}")))?;
    if report.len() > MAX_REPORT_BYTES {
        report.truncate(gyrus_text::first_bytes(&report, MAX_REPORT_BYTES).len());
        report.push_str("\n[cut]");
    }
    let mut text = if accepted {
        "accepted\n".to_owned()
    } else {
        "rejected\n".to_owned()
    };
    text.push_str(&report);
    let ruling = JudgeRuling { accepted, report };
    let mut images = Vec::new();
    for picture in sent.iter().take(MAX_IMAGES) {
        let bytes = STANDARD.decode(picture).ok();
        let header = bytes.as_deref().and_then(PictureHeader::read);
        let (Some(bytes), Some(header)) = (bytes, header) else {
            text.push_str("\n(a picture of the report is damaged or of another kind)");
            continue;
        };
        let (words, image) = picture::keep(header, &bytes, site)?;
        let _ = write!(text, "\n{words}");
        images.extend(image);
    }
    if sent.len() > MAX_IMAGES {
        let _ = write!(text, "\n[{MAX_IMAGES} of {} pictures]", sent.len());
    }
    Ok(ToolOutput {
        images,
        is_error: !accepted,
        verdict: ActionVerdict::CannotTell,
        ..ToolOutput::read(text).with_value(&ruling)
    })
}
