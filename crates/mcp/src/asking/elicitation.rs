//! A server's question to the person: a form to fill in, or a page to visit.

use gyrus_contract::{AnswerForm, PersonReply, ServerQuestion};
use reqwest::Url;
use rmcp::model::{ElicitRequestParams, ElicitResult, ElicitationAction};
use serde_json::Value;

use super::{
    caller::Caller,
    form::{self, RequestedForm},
    secrets,
};

/// Maximum number of times that a person is asked for the same form because the answer was invalid.
const ATTEMPTS: u32 = 3;

/// Maximum characters of a server's message to the person.
const MAX_MESSAGE: usize = 4_000;

/// Maximum length of an address that a person is asked to open.
const MAX_URL: usize = 2_000;

/// Asks the person on behalf of a server, and returns the answer for the server.
pub(super) async fn elicited(caller: &Caller<'_>, params: &ElicitRequestParams) -> ElicitResult {
    match outcome(caller, params).await {
        QuestionEnd::Accepted(Some(content)) => {
            ElicitResult::new(ElicitationAction::Accept).with_content(content)
        }
        QuestionEnd::Accepted(None) => ElicitResult::new(ElicitationAction::Accept),
        QuestionEnd::Declined => ElicitResult::new(ElicitationAction::Decline),
        QuestionEnd::Cancelled => ElicitResult::new(ElicitationAction::Cancel),
    }
}

async fn outcome(caller: &Caller<'_>, params: &ElicitRequestParams) -> QuestionEnd {
    match params {
        ElicitRequestParams::FormElicitationParams {
            message,
            requested_schema,
            ..
        } => match RequestedForm::read(requested_schema) {
            Ok(form) => fill(caller, message, &form).await,
            Err(why) => declined(caller, "an answer of the person", &why),
        },
        ElicitRequestParams::UrlElicitationParams { message, url, .. } => {
            send_to_page(caller, message, url).await
        }
        // A later version of the protocol has more.
        _ => declined(
            caller,
            "an answer of the person",
            "gyrus does not know this form",
        ),
    }
}

fn declined(caller: &Caller<'_>, what: &str, why: &str) -> QuestionEnd {
    caller.note(&format!("{what}; it was declined: {why}"));
    QuestionEnd::Declined
}

async fn fill(caller: &Caller<'_>, message: &str, form: &RequestedForm) -> QuestionEnd {
    let what = "an answer of the person";
    if message.chars().count() > MAX_MESSAGE {
        return declined(caller, what, "its message is too long to be read");
    }
    if let Some(secret) = secrets::wanted(message).or_else(|| form.wants_secret()) {
        let why = format!("it asks for {secret}, which no server is told by an answer");
        return declined(caller, what, &why);
    }
    let question = ServerQuestion {
        sentence: format!(
            "The server `{}` asks you for {} during its call {}",
            caller.server,
            form.about(),
            caller.tool
        ),
        reasons: form.how_to_answer(),
        text: caller.shown(&format!("{}\n{}", message.trim_end(), form.described())),
        wants: form.wants(),
    };
    let mut wrong: Option<String> = None;
    for _ in 0..ATTEMPTS {
        let mut asked = question.clone();
        if let Some(wrong) = wrong.take() {
            let again = format!("your last answer did not fit: {wrong}");
            asked.reasons.insert(0, again);
        }
        match caller.site.ask_person(asked).await {
            PersonReply::Accepted(words) if form::declines(&words) => {
                return declined(caller, what, "a person refused to answer");
            }
            PersonReply::Accepted(words) => match form.filled(&words) {
                Ok(content) => {
                    caller.note(&format!("{what}, who gave it {}", form.about()));
                    return QuestionEnd::Accepted(Some(content));
                }
                Err(why) => wrong = Some(why),
            },
            other => return not_accepted(caller, what, other),
        }
    }
    caller.note(&format!("{what}; no answer fitted the form"));
    QuestionEnd::Cancelled
}

fn not_accepted(caller: &Caller<'_>, what: &str, reply: PersonReply) -> QuestionEnd {
    match reply {
        PersonReply::Accepted(_) => QuestionEnd::Accepted(None),
        PersonReply::Declined => declined(caller, what, "a person refused"),
        PersonReply::NotAsked(why) => declined(caller, what, &why),
        PersonReply::NoAnswer(why) => {
            caller.note(&format!("{what}; no answer came: {why}"));
            QuestionEnd::Cancelled
        }
    }
}

/// Asks the person to visit a page of the server.
async fn send_to_page(caller: &Caller<'_>, message: &str, url: &str) -> QuestionEnd {
    let what = "the person to open a page";
    let (address, host) = match page(url) {
        Ok(page) => page,
        Err(why) => return declined(caller, what, why),
    };
    if message.chars().count() > MAX_MESSAGE {
        return declined(caller, what, "its message is too long to be read");
    }
    let question = ServerQuestion {
        sentence: format!(
            "The server `{}` asks you to open a page at {host} during its call {}",
            caller.server, caller.tool
        ),
        reasons: vec![
            "gyrus opens nothing by itself: to go there, copy the address into your browser"
                .to_owned(),
            "a yes tells the server that you have done what it asks there; gyrus cannot see \
                 whether you did, nor what you type there"
                .to_owned(),
        ],
        text: caller.shown(&format!("{address}\n{}", message.trim_end())),
        wants: AnswerForm::Decision,
    };
    match caller.site.ask_person(question).await {
        accepted @ PersonReply::Accepted(_) => {
            caller.note(&format!("{what}, who says that it is done"));
            not_accepted(caller, what, accepted)
        }
        other => not_accepted(caller, what, other),
    }
}

enum QuestionEnd {
    /// The person answered, with the content of a form if there was one.
    Accepted(Option<Value>),
    Declined,
    Cancelled,
}

/// Returns the address that will be opened, if a person may be asked to open it, with its host.
fn page(url: &str) -> Result<(String, String), &'static str> {
    let address = Url::parse(url).map_err(|_| "its address is not valid")?;
    let host = address.host_str().unwrap_or_default().to_owned();
    let is_here = gyrus_net::is_loopback_host(&host);
    match address.scheme() {
        "https" => {}
        "http" if is_here => {}
        _ => return Err("its address does not begin with https://"),
    }
    if !address.username().is_empty() || address.password().is_some() {
        return Err("its address holds a user name before the host");
    }
    if address.as_str().len() > MAX_URL {
        return Err("its address is too long to be read");
    }
    Ok((address.to_string(), host))
}
