//! The table of endpoints, a line each. The handlers stand in the modules, by subject.

mod commands;
mod control;
mod questions;
mod runs;
mod server;

use axum::{
    http::Method,
    routing::{delete, get, post},
};

use crate::{
    endpoint::{Endpoint, Form, endpoint},
    tokens::{Scope, Token},
};

/// Returns all endpoints.
pub(crate) fn endpoints() -> Vec<Endpoint> {
    let mut all = about_runs();
    all.extend(about_control());
    all.extend(about_the_queue());
    all.extend(about_the_server());
    all
}

fn about_runs() -> Vec<Endpoint> {
    use runs::{Entries, EntriesQuery, EventsQuery, RunDetail, RunList, RunsQuery};
    vec![
        endpoint(
            Method::GET,
            "/api/runs",
            Scope::Read,
            "listRuns",
            "List runs, newest first",
            get(runs::list),
        )
        .query::<RunsQuery>()
        .json::<RunList>(200, "The runs."),
        endpoint(
            Method::POST,
            "/api/runs",
            Scope::Act,
            "startRun",
            "Start a run",
            post(commands::start),
        )
        .body::<commands::StartRun>()
        .json::<commands::CommandView>(202, "The command that was accepted; it is on disk."),
        endpoint(
            Method::GET,
            "/api/runs/{run}",
            Scope::Read,
            "showRun",
            "Show a run",
            get(runs::show),
        )
        .json::<RunDetail>(200, "The run."),
        endpoint(
            Method::GET,
            "/api/runs/{run}/entries",
            Scope::Read,
            "listEntries",
            "Return entries of a run's journal",
            get(runs::entries),
        )
        .query::<EntriesQuery>()
        .json::<Entries>(200, "The entries."),
        endpoint(
            Method::GET,
            "/api/runs/{run}/events",
            Scope::Read,
            "followRun",
            "Follow the entries of a run as they reach the disk",
            get(runs::events),
        )
        .query::<EventsQuery>()
        .answer(
            200,
            "The entries, each with its number as its id; the stream ends with the run.",
            Form::Events,
        ),
        endpoint(
            Method::GET,
            "/api/runs/{run}/blobs/{blob}",
            Scope::Read,
            "getBlob",
            "Return a blob of a run",
            get(runs::blob),
        )
        .answer(200, "The bytes.", Form::Other("application/octet-stream")),
        endpoint(
            Method::GET,
            "/api/runs/{run}/page",
            Scope::Read,
            "getPage",
            "Return a run as one page",
            get(runs::page),
        )
        .answer(200, "The page.", Form::Other("text/html")),
        endpoint(
            Method::GET,
            "/api/stream",
            Scope::Read,
            "followPositions",
            "Follow how far all runs are",
            get(runs::stream),
        )
        .answer(200, "A list of positions in each event.", Form::Events),
    ]
}

fn about_control() -> Vec<Endpoint> {
    use control::{Fork, Steer, Undo};
    use questions::{Answer, Question};
    vec![
        endpoint(
            Method::POST,
            "/api/runs/{run}/steer",
            Scope::Act,
            "steerRun",
            "Add to the goal of a run, for good",
            post(control::steer),
        )
        .body::<Steer>()
        .answer(202, "It is in the run's inbox.", Form::Empty),
        endpoint(
            Method::POST,
            "/api/runs/{run}/pause",
            Scope::Act,
            "pauseRun",
            "Finish what is in progress, then park the run",
            post(control::pause),
        )
        .answer(202, "It is in the run's inbox.", Form::Empty),
        endpoint(
            Method::POST,
            "/api/runs/{run}/stop",
            Scope::Act,
            "stopRun",
            "Cut off what a run does, and park it",
            post(control::stop),
        )
        .answer(202, "It is in the run's inbox.", Form::Empty),
        endpoint(
            Method::POST,
            "/api/runs/{run}/resume",
            Scope::Act,
            "resumeRun",
            "Go on with a run",
            post(commands::resume),
        )
        .json::<commands::CommandView>(202, "The command that was accepted; it is on disk."),
        endpoint(
            Method::POST,
            "/api/runs/{run}/fork",
            Scope::Act,
            "forkRun",
            "Go another way from a step of a run",
            post(control::fork),
        )
        .body::<Fork>()
        .json::<control::Done>(200, "It was forked."),
        endpoint(
            Method::POST,
            "/api/runs/{run}/replay",
            Scope::Act,
            "replayRun",
            "Run it again from its journal, with nothing live behind it",
            post(control::replay),
        )
        .json::<control::Done>(200, "Whether it took the same way."),
        endpoint(
            Method::POST,
            "/api/runs/{run}/undo",
            Scope::Act,
            "undoRun",
            "Put files back as they were before a run, or after a step",
            post(control::undo),
        )
        .body::<Undo>()
        .json::<control::Done>(200, "What was put back, or would be."),
        endpoint(
            Method::GET,
            "/api/runs/{run}/diff",
            Scope::Read,
            "diffRun",
            "Return what a run changed as a patch",
            get(control::diff),
        )
        .answer(200, "A unified diff.", Form::Other("text/x-diff")),
        endpoint(
            Method::GET,
            "/api/questions",
            Scope::Read,
            "listQuestions",
            "List what runs ask",
            get(questions::all),
        )
        .json::<Vec<Question>>(200, "The open questions, oldest first."),
        endpoint(
            Method::GET,
            "/api/runs/{run}/questions",
            Scope::Read,
            "listQuestionsOfRun",
            "List what a run asks",
            get(questions::of_run),
        )
        .json::<Vec<Question>>(200, "The open questions, oldest first."),
        endpoint(
            Method::POST,
            "/api/runs/{run}/questions/{question}/answer",
            Scope::Approve,
            "answerQuestion",
            "Answer a question of a run",
            post(questions::answer),
        )
        .body::<Answer>()
        .answer(
            202,
            "The answer is on disk; no other one counts.",
            Form::Empty,
        ),
        endpoint(
            Method::POST,
            "/api/stop",
            Scope::Act,
            "stopAll",
            "Emergency stop: end every run at once, and let none begin",
            post(control::stop_all),
        )
        .body::<control::StopAll>()
        .json::<control::Done>(200, "What was ended."),
        endpoint(
            Method::DELETE,
            "/api/stop",
            Scope::Approve,
            "rearm",
            "Lift the emergency stop",
            delete(control::rearm),
        )
        .json::<control::Done>(200, "It is lifted."),
    ]
}

fn about_the_queue() -> Vec<Endpoint> {
    use commands::{CommandView, CommandsQuery};
    vec![
        endpoint(
            Method::GET,
            "/api/commands",
            Scope::Read,
            "listCommands",
            "List commands of the queue, newest first",
            get(commands::list),
        )
        .query::<CommandsQuery>()
        .json::<Vec<CommandView>>(200, "The commands."),
        endpoint(
            Method::GET,
            "/api/commands/{command}",
            Scope::Read,
            "showCommand",
            "Show a command",
            get(commands::show),
        )
        .json::<CommandView>(200, "The command."),
        endpoint(
            Method::DELETE,
            "/api/commands/{command}",
            Scope::Act,
            "cancelCommand",
            "Take a command back that has not begun",
            delete(commands::cancel),
        )
        .answer(204, "It is taken back.", Form::Empty),
    ]
}

fn about_the_server() -> Vec<Endpoint> {
    use server::{CommandLine, Health, Invitation, MadeToken, NewToken};
    vec![
        endpoint(
            Method::GET,
            "/healthz",
            Scope::Read,
            "health",
            "Return whether the server works",
            get(server::health),
        )
        .json::<Health>(200, "It works.")
        .for_everybody(),
        endpoint(
            Method::GET,
            "/metrics",
            Scope::Read,
            "metrics",
            "Return figures for Prometheus",
            get(server::metrics),
        )
        .answer(200, "The figures.", Form::Other("text/plain")),
        endpoint(
            Method::GET,
            "/openapi.json",
            Scope::Read,
            "openapi",
            "Return this document",
            get(server::openapi),
        )
        .json::<serde_json::Value>(200, "The document.")
        .for_everybody(),
        endpoint(
            Method::POST,
            "/api/command",
            Scope::Approve,
            "runCommand",
            "Carry out a command of the command line",
            post(server::command),
        )
        .body::<CommandLine>()
        .answer(
            200,
            "What it prints, and how it ends, in lines of JSON: `{\"stdout\": TEXT}`, \
             `{\"stderr\": TEXT}`, at last `{\"ended\": CODE}`.",
            Form::Other("application/jsonl"),
        ),
        endpoint(
            Method::POST,
            "/api/invitations",
            Scope::Approve,
            "invite",
            "Make a code that lets a browser in",
            post(server::invite),
        )
        .json::<Invitation>(200, "The code."),
        endpoint(
            Method::GET,
            "/api/tokens",
            Scope::Approve,
            "listTokens",
            "List tokens, without their secrets",
            get(server::tokens),
        )
        .json::<Vec<Token>>(200, "The tokens."),
        endpoint(
            Method::POST,
            "/api/tokens",
            Scope::Approve,
            "makeToken",
            "Make a token",
            post(server::make_token),
        )
        .body::<NewToken>()
        .json::<MadeToken>(201, "The token; its secret is never shown again."),
        endpoint(
            Method::DELETE,
            "/api/tokens/{name}",
            Scope::Approve,
            "revokeToken",
            "Revoke a token",
            delete(server::revoke_token),
        )
        .answer(204, "It does not count any more.", Form::Empty),
        endpoint(
            Method::POST,
            "/login",
            Scope::Read,
            "login",
            "Exchange the code of the printed address for a cookie",
            post(server::login),
        )
        .body::<server::Login>()
        .answer(204, "The browser is let in.", Form::Empty)
        .for_everybody(),
    ]
}
