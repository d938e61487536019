//! One turn of an editor's session: a run on threads of its own, so that a run that fails or is slow
//! touches no other, and none holds the editor's messages up.

use std::thread;

use gyrus::runtime::{self, Home, RunScreen};
use gyrus_acp::{
    EditorBuffers, EditorServer, EditorServerWay, TurnAtWork, TurnControls, TurnRequest, TurnWork,
};
use gyrus_contract::{OnAsk, RunId, SandboxOptions};
use gyrus_journal::{LockWait, Store};
use gyrus_kernel::{Ending, Kernel, Live, NewRun, ResumeChanges, StandingRun, check_not_record};
use gyrus_mcp::ServerSection;
use gyrus_surfaces::watching::live_replies;
use tokio::{runtime::Runtime, sync::oneshot};

use super::unsaved;
use gyrus_runtime::request::{RunFlags, RunRequest};

use crate::{
    Gyrus,
    config::Config,
    drive::{self, RunServices, Teaches},
    failure::Failure,
    kernels::{self, RunContext},
    mcp::{
        self, ServedTools, ServerCandidates, ServerSet, ServerSource, ServerWish, StartSurroundings,
    },
    model_choice::ReadyModels,
    new_run::RunBuilder,
    screen::ScreenOptions,
    setup, stopped, telemetry,
};

/// Longest name of a server.
const MAX_NAME: usize = 24;

struct TurnBeginning {
    gyrus: Gyrus,
    home: Home,
    config: Config,
    store: Store,
    flags: RunFlags,
    run: RunId,
    servers: Vec<EditorServer>,
    buffers: Option<EditorBuffers>,
    asks_words: bool,
}

pub(super) fn begin(
    gyrus: &Gyrus,
    flags: Result<RunFlags, Failure>,
    request: TurnRequest,
    controls: TurnControls,
) -> TurnAtWork {
    let (live, replies) = live_replies();
    let (begins, began) = oneshot::channel();
    let (ends, ended) = oneshot::channel();
    let gyrus = gyrus.clone();
    let driving = move || {
        let done = flags.and_then(|flags| drive(gyrus, flags, request, (&controls, live, begins)));
        // An editor that has gone needs no answer.
        let _ = ends.send(done.map_err(|failure| failure.in_words()));
    };
    // If there is no thread, the channel says that the turn is over.
    let _ = thread::Builder::new()
        .name("turn".to_owned())
        .spawn(driving);
    TurnAtWork {
        began,
        replies,
        ended,
    }
}

fn drive(
    gyrus: Gyrus,
    flags: RunFlags,
    request: TurnRequest,
    (controls, live, begins): (&TurnControls, Live, oneshot::Sender<()>),
) -> Result<Ending, Failure> {
    stopped::check(&gyrus)?;
    let (home, config) = (gyrus.home()?, gyrus.config()?);
    let beginning = TurnBeginning {
        store: home.store()?,
        gyrus,
        home,
        config,
        flags,
        run: request.run,
        servers: request.servers,
        buffers: request.buffers,
        asks_words: request.asks_words,
    };
    let runtime = drive::runtime()?;
    let ended = match request.work {
        TurnWork::Start {
            goal,
            context,
            continues,
        } => {
            let mut request = RunRequest::with_flags(goal, beginning.flags.clone());
            request.continues = continues;
            let TurnBeginning {
                gyrus,
                home,
                config,
                ..
            } = &beginning;
            let new = RunBuilder {
                context,
                ..RunBuilder::new(gyrus, home, config, &request)
            };
            beginning.start(&runtime, new.new_run()?, (controls, live, begins))
        }
        TurnWork::Resume => beginning.resume(&runtime, controls, live),
    };
    runtime.shutdown_background();
    ended
}

impl TurnBeginning {
    fn start(
        &self,
        runtime: &Runtime,
        mut new: NewRun,
        (controls, live, begins): (&TurnControls, Live, oneshot::Sender<()>),
    ) -> Result<Ending, Failure> {
        new.id = self.run;
        // The editor asks.
        new.on_ask = OnAsk::Wait;
        let named = &self.flags.model;
        let choice =
            setup::models_for(runtime, &self.gyrus, &self.config, named, &new.loop_config)?;
        new.pins = choice.pins();
        runtime.block_on(async {
            let workspace = new.workspace.clone();
            let around = self.around(&workspace);
            let models =
                choice.start_for(&self.gyrus, (&self.config, &self.store, &new.loop_config));
            let starting = self.connect(&around)?.ready(models);
            let (connected, models, served) = tokio::select! {
                begun = starting => begun?,
                () = controls.ended() => return Ok(Ending::Interrupted),
            };
            let screen = ScreenOptions::open(new.screen.as_ref(), &around)?;
            let parts = (models, live, screen, served);
            let (agent, thinks) = (new.agent.clone(), new.cognitive_loop.clone());
            let sandbox = new.sandbox.clone();
            let ended = self
                .drive(
                    &around,
                    parts,
                    (&agent, &thinks, &sandbox),
                    controls,
                    |kernel| {
                        let ready = kernel.create(new)?;
                        // An editor that has gone follows nothing.
                        let _ = begins.send(());
                        Ok(ready)
                    },
                )
                .await;
            connected.leave().await;
            ended
        })
    }

    fn resume(
        &self,
        runtime: &Runtime,
        controls: &TurnControls,
        live: Live,
    ) -> Result<Ending, Failure> {
        check_not_record(&self.store, self.run)?;
        let before = StandingRun::read(&self.store, self.run)?;
        let started = &before.started;
        let named = &self.flags.model;
        let model = setup::models_again(runtime, &self.gyrus, &self.config, named, &before)?;
        let changes = ResumeChanges {
            mode: self.flags.approvals.mode(),
            on_ask: Some(OnAsk::Wait),
            pins: Some(model.pins()),
            ..ResumeChanges::default()
        };
        runtime.block_on(async {
            let around = self.around(&started.workspace);
            let mut connected = self.connect(&around)?;
            let starting = model.start_for(
                &self.gyrus,
                (&self.config, &self.store, &started.loop_config),
            );
            let mut models = tokio::select! {
                models = starting => models?,
                () = controls.ended() => return Ok(Ending::Interrupted),
            };
            models.secrets.extend(connected.secrets());
            let served = connected.tools_of(&self.store, self.run)?;
            let screen = ScreenOptions::open(started.screen.as_ref(), &around)?;
            let parts = (models, live, screen, served);
            let thinks = (&*started.agent, &*started.cognitive_loop, &started.sandbox);
            let ended = self
                .drive(&around, parts, thinks, controls, |kernel| {
                    Ok(kernel.take(self.run, LockWait::IfFree, changes)?)
                })
                .await;
            connected.leave().await;
            ended
        })
    }

    fn around<'a>(&'a self, workspace: &'a std::path::Path) -> StartSurroundings<'a> {
        StartSurroundings {
            home: &self.home,
            config: &self.config,
            workspace,
            confinement: self.flags.approvals.confinement(),
            // A question that the next prompt answers ends the turn, and the call with it.
            on_ask: if self.asks_words {
                OnAsk::Wait
            } else {
                OnAsk::Deny
            },
        }
    }

    /// Begins to start the servers of the person, of the project, and of the editor. One of the
    /// editor's never takes the place of another one of its name.
    fn connect(&self, around: &StartSurroundings<'_>) -> Result<ServerSet, Failure> {
        let ServerCandidates {
            mut wanted,
            mut notes,
        } = mcp::find(around)?;
        for server in &self.servers {
            let server = editors(server);
            let name = &server.name;
            if wanted.iter().any(|known| known.name == *name) {
                notes.push(format!(
                    "the server `{name}` of the editor is not started: another one has its name"
                ));
            } else if let Err(why) = server.section.check(name) {
                notes.push(format!("the server `{name}` of the editor {why}"));
            } else {
                wanted.push(server);
            }
        }
        ServerSet::start_these(around, &wanted, notes)
    }

    /// Drives a run until it ends or parks.
    async fn drive(
        &self,
        around: &StartSurroundings<'_>,
        (models, live, screen, mut served): (ReadyModels, Live, Option<RunScreen>, ServedTools),
        (agent, cognitive_loop, sandbox): (&str, &str, &SandboxOptions),
        controls: &TurnControls,
        begin: impl FnOnce(&Kernel) -> Result<gyrus_kernel::DrivableRun, Failure>,
    ) -> Result<Ending, Failure> {
        if let Some(buffers) = &self.buffers {
            let tools = runtime::built_in_tools(cognitive_loop).all();
            served.tools.extend(unsaved::respecting(tools, buffers));
        }
        let run_context = RunContext {
            agent,
            cognitive_loop,
            screen: screen.as_ref(),
            served: &served,
            sandbox,
            typed: &[],
        };
        let kernel = kernels::kernel(around, self.store.clone(), models, live, run_context)?;
        let ready = begin(&kernel)?;
        let obeying = tokio::spawn({
            let (controls, of_run) = (controls.clone(), ready.controls());
            async move { controls.obey(of_run).await }
        });
        let with = (screen.clone(), None, Teaches::Lessons);
        let beside = RunServices::begin(&self.gyrus, &self.store, &ready, with)?;
        let done = ready.drive().await;
        obeying.abort();
        let ending = match done {
            Ok(done) => {
                let (export, _) = beside.end(&done).await;
                telemetry::finish(export).await;
                Ok(done.ending)
            }
            Err(error) => Err(error.into()),
        };
        if let Some(screen) = screen {
            screen.leave().await;
        }
        ending
    }
}

/// Returns a server of the editor as one of ours. Its name is made to fit.
fn editors(server: &EditorServer) -> ServerWish {
    let fit = |c: char| match c.to_ascii_lowercase() {
        c @ ('a'..='z' | '0'..='9') => c,
        _ => '-',
    };
    let mut section = ServerSection::default();
    match server.way.clone() {
        EditorServerWay::Program {
            command,
            arguments,
            environment,
        } => {
            section.command = Some(command);
            section.args = arguments;
            section.env = environment;
        }
        EditorServerWay::Http { url, headers } => {
            section.url = Some(url);
            section.headers = headers;
        }
    }
    ServerWish {
        name: server.name.chars().take(MAX_NAME).map(fit).collect(),
        section,
        source: ServerSource::Editor,
        package: None,
    }
}
