//! gyrus as a [`Subject`].

use std::cell::{Ref, RefCell};

use gyrus_contract::{Answer, ApprovalScope, MessageBody, OnAsk, RunId};
use gyrus_journal::LockWait;
use gyrus_kernel::{CallEnd, Entry, ForkInto, ResumeChanges};
use serde_json::{Value, json};

use crate::{
    recording::{Cut, Line, Recording},
    scenario::{ASKS, Bench, Scenario},
    script::{Script, Turn},
    subject::{Role, Step, Subject, Task},
    world::{APPEND, FINISH, LOOK, PUT, claim, line, value},
};

/// gyrus, thinking with ReAct.
pub struct Gyrus;

/// A run on a bench, and what was ever sent to it.
pub struct OurRun {
    bench: RefCell<Bench>,
    sent: RefCell<Vec<(String, MessageBody)>>,
}

impl OurRun {
    fn on(bench: Bench) -> Self {
        Self {
            bench: RefCell::new(bench),
            sent: RefCell::default(),
        }
    }

    /// The bench that it is on.
    pub fn bench(&self) -> Ref<'_, Bench> {
        self.bench.borrow()
    }

    /// Puts it on another bench: what a runtime does that begins anew.
    pub fn replace(&self, bench: Bench) {
        self.bench.replace(bench);
    }

    /// Sends a message, and remembers it for crashes.
    pub fn send(&self, body: MessageBody) {
        let id = self.bench().send(body.clone());
        self.sent.borrow_mut().push((id, body));
    }
}

/// The task as a scenario.
pub fn scenario(task: Task) -> Scenario {
    let finish = Turn::call(FINISH, claim("in order"));
    let turns = match task {
        Task::Plain => vec![
            Turn::say("I look first.").and_call(LOOK, json!({})),
            Turn::call(PUT, value("colour", "green")),
            Turn::call(APPEND, line("one")),
            finish,
        ],
        Task::NeedsApproval => vec![Turn::call(PUT, value("colour", "green")), finish],
    };
    let mut scenario = Scenario::new("react", Script::agent(turns));
    if task == Task::NeedsApproval {
        scenario.policy = ASKS;
        scenario.new.on_ask = OnAsk::Park;
    }
    scenario
}

impl Gyrus {
    /// A crash after `kept` steps, in a world where what the first `done` of them settle was done.
    pub fn crash_in(&self, run: &OurRun, kept: usize, done: usize) -> OurRun {
        let bench = run.bench();
        let whole = bench.recording();
        let cut = |entries| {
            whole.cut(Cut {
                entries,
                of_child: None,
            })
        };
        let settled = cut(done);
        let deeds = bench.world.deeds();
        let deeds = deeds.into_iter().filter(|deed| settled.has_settled(deed));
        let crashed = OurRun::on(bench.scenario.bench_after(deeds.collect()));
        cut(kept).plant(&bench.store, &crashed.bench().store);
        for (id, body) in run.sent.borrow().iter() {
            crashed.bench().send_as(id, body.clone());
            crashed.sent.borrow_mut().push((id.clone(), body.clone()));
        }
        crashed
    }
}

impl Subject for Gyrus {
    type Run = OurRun;

    async fn start(&self, task: Task) -> OurRun {
        let bench = scenario(task).bench();
        bench.start().await.expect("the task can be started");
        OurRun::on(bench)
    }

    fn steps(&self, run: &OurRun) -> Vec<Step> {
        run.bench().recording().lines.iter().map(step).collect()
    }

    fn is_over(&self, run: &OurRun) -> bool {
        run.bench().recording().count("run.ended") == 1
    }

    fn performed(&self, run: &OurRun) -> Vec<String> {
        let deeds = run.bench().world.deeds();
        deeds.iter().map(|deed| deed.effect.to_string()).collect()
    }

    fn prompts(&self, run: &OurRun) -> Vec<String> {
        let heard = run.bench().model.heard();
        let text = |prompt| serde_json::to_string(prompt).expect("a prompt is JSON");
        heard.iter().map(text).collect()
    }

    fn crash(&self, run: &OurRun, kept: usize) -> OurRun {
        self.crash_in(run, kept, kept)
    }

    async fn resume(&self, run: &OurRun) -> Result<(), String> {
        let ready = run.bench().take().map_err(|error| error.to_string())?;
        ready
            .drive()
            .await
            .map(drop)
            .map_err(|error| error.to_string())
    }

    async fn resume_twice(&self, run: &OurRun) -> [Result<(), String>; 2] {
        let other = run.bench().again();
        let one = run.bench().take();
        let other = other
            .kernel
            .take(other.run(), LockWait::IfFree, ResumeChanges::default());
        let drive = async |ready: Result<gyrus_kernel::DrivableRun, gyrus_kernel::KernelError>| {
            let finished = ready.map_err(|error| error.to_string())?.drive().await;
            finished.map(drop).map_err(|error| error.to_string())
        };
        let (one, other) = tokio::join!(drive(one), drive(other));
        [one, other]
    }

    fn fork(&self, run: &OurRun, cycle: u32) -> OurRun {
        let bench = run.bench();
        let id = {
            let changes = ResumeChanges::default();
            let forked = bench
                .kernel
                .fork(bench.run(), cycle, ForkInto::InPlace, changes);
            forked.expect("the cycle is complete").ready.id()
        };
        OurRun::on(bench.again_as(with_id(bench.scenario.clone(), id)))
    }

    fn approve(&self, run: &OurRun) {
        let recording = run.bench().recording();
        run.send(approval(&recording));
    }
}

/// A person's yes to what the run asks last.
pub fn approval(recording: &Recording) -> MessageBody {
    let asked = recording.entries().rev().find_map(|entry| match entry {
        Entry::ApprovalAsked(asked) => Some((asked.effect.clone(), asked.digest)),
        _ => None,
    });
    let (effect, digest) = asked.expect("it asks");
    MessageBody::Answer {
        effect,
        digest,
        answer: Answer::yes(ApprovalScope::Once),
    }
}

fn with_id(mut scenario: Scenario, id: RunId) -> Scenario {
    scenario.new.id = id;
    scenario
}

/// A line of a journal as a step.
pub fn step(line: &Line) -> Step {
    let mut payload = serde_json::from_str(line.payload.get()).expect("a payload is JSON");
    without_times(&mut payload);
    let role = match &line.entry {
        Entry::ToolResulted(result) if result.settled == CallEnd::Done => {
            Role::Settles(result.effect.to_string())
        }
        Entry::ApprovalAnswered(_) => Role::Answers,
        Entry::CycleEnded(ended) => Role::Ends(ended.cycle),
        Entry::RunResumed(_) => Role::Process,
        _ => Role::Other,
    };
    Step {
        words: format!("{} {payload}", line.entry.kind()),
        role,
    }
}

fn without_times(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|key, _| !matches!(key.as_str(), "took_ms" | "time_ms"));
            map.values_mut().for_each(without_times);
        }
        Value::Array(values) => values.iter_mut().for_each(without_times),
        _ => {}
    }
}
