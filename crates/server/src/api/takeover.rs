//! The browsers of runs: what they show now, and taking them over.

use std::{sync::Arc, time::Duration};

use axum::{
    Extension, Json,
    extract::State,
    http::{
        StatusCode,
        header::{CACHE_CONTROL, CONTENT_TYPE},
    },
    response::{IntoResponse, Response},
    routing::{delete, get, post},
};
use gyrus_contract::RunId;
use gyrus_kernel::now_ms;
use tokio::{sync::watch, time::timeout};

use crate::{
    app::{App, CommandPiece, CommandPieces},
    endpoint::{BodyForm, Endpoint, decides, reads},
    error::ApiError,
    extract::RunInPath,
    leases::TakeoverLease,
    tokens::Requester,
};

/// Time for which a client waits for the browser. The run may have to finish a long command first;
/// the lease goes on waiting.
const ANSWER_WITHIN: Duration = Duration::from_secs(3);

pub(super) fn endpoints() -> Vec<Endpoint> {
    let lease = "The lease. Its address is there once the run has finished what is in progress.";
    vec![
        reads("/api/runs/{run}/screen", get(screen))
            .named(
                "seeScreen",
                "Return a picture of the page in a run's browser now",
            )
            .answer(
                200,
                "The picture, with secrets covered.",
                BodyForm::Other("image/png"),
            ),
        decides("/api/runs/{run}/takeover", post(take_over))
            .named("takeOver", "Take a run's browser over")
            .json::<TakeoverLease>(200, lease),
        reads("/api/runs/{run}/takeover", get(taken_over))
            .named("showTakeover", "Show who has a run's browser")
            .json::<Option<TakeoverLease>>(200, "The lease, if a dashboard or a program has one."),
        decides("/api/runs/{run}/takeover", delete(give_back))
            .deleting()
            .named("giveBack", "Give a run its browser back")
            .answer(204, "The run goes on.", BodyForm::Empty),
    ]
}

async fn screen(
    State(app): State<Arc<App>>,
    RunInPath(run): RunInPath,
) -> Result<Response, ApiError> {
    let picture = app.program.picture(run).await?;
    let headers = [(CONTENT_TYPE, "image/png"), (CACHE_CONTROL, "no-store")];
    Ok((headers, picture).into_response())
}

pub(crate) async fn take_over(
    State(app): State<Arc<App>>,
    Extension(identity): Extension<Requester>,
    RunInPath(run): RunInPath,
) -> Result<Json<TakeoverLease>, ApiError> {
    let lease = TakeoverLease {
        by: identity.principal,
        since_ms: now_ms(),
        address: None,
    };
    let begun = app.leases.begin(run, &lease);
    let held = begun.map_err(|TakeoverLease { by, .. }| {
        let error = format!("{by} has the browser already");
        ApiError::conflict(error)
    })?;
    let person = format!("--for={}", lease.by.id);
    let arguments = vec!["take".to_owned(), run.to_string(), person];
    let pieces = app.program.begin_command(arguments, Vec::new());
    let pieces = pieces.inspect_err(|_| app.leases.is_over(run, &lease))?;
    let (told, mut hears) = watch::channel(None);
    tokio::spawn(hold(
        Arc::clone(&app),
        run,
        lease.clone(),
        pieces,
        held,
        told,
    ));
    let Ok(decided) = timeout(ANSWER_WITHIN, hears.wait_for(Option::is_some)).await else {
        return Ok(Json(lease));
    };
    match decided.ok().and_then(|decided| decided.clone()) {
        Some(Ok(address)) => Ok(Json(TakeoverLease {
            address: Some(address),
            ..lease
        })),
        Some(Err(error)) => Err(ApiError::conflict(error)),
        None => Err(ApiError::conflict("the browser was given back already")),
    }
}

/// The address of the takeover page, or the reason why there is none.
type Decided = Option<Result<String, String>>;

/// Holds a browser through the command that took it over, until the command or the lease ends.
async fn hold(
    app: Arc<App>,
    run: RunId,
    lease: TakeoverLease,
    mut pieces: CommandPieces,
    mut held: watch::Receiver<()>,
    told: watch::Sender<Decided>,
) {
    let (mut printed, mut said) = (String::new(), String::new());
    loop {
        let piece = tokio::select! {
            piece = pieces.recv() => piece,
            // Dropping the pieces ends the command, which gives the browser back.
            _ = held.changed() => break,
        };
        match piece {
            Some(CommandPiece::Stdout(text)) => printed.push_str(&text),
            Some(CommandPiece::Stderr(text)) => said.push_str(&text),
            Some(CommandPiece::Ended(_)) | None => break,
        }
        let is_told = told.borrow().is_some();
        if !is_told && let Some((address, _)) = printed.split_once('\n') {
            app.leases.hand_out(run, &lease, address.to_owned());
            told.send_replace(Some(Ok(address.to_owned())));
            app.heads.tell_again(run);
        }
    }
    app.leases.is_over(run, &lease);
    let failed = said.lines().find_map(|line| line.strip_prefix("error: "));
    if let Some(failed) = failed
        && told.borrow().is_none()
    {
        told.send_replace(Some(Err(failed.to_owned())));
    }
    app.heads.tell_again(run);
}

async fn taken_over(
    State(app): State<Arc<App>>,
    Extension(identity): Extension<Requester>,
    RunInPath(run): RunInPath,
) -> Json<Option<TakeoverLease>> {
    Json(app.leases.of(run).map(|lease| lease.seen_by(&identity)))
}

pub(crate) async fn give_back(
    State(app): State<Arc<App>>,
    RunInPath(run): RunInPath,
) -> Result<StatusCode, ApiError> {
    if app.leases.end(run) {
        return Ok(StatusCode::NO_CONTENT);
    }
    let error = format!("nobody took the browser of run {} over here", run.short());
    Err(ApiError::conflict(error))
}
