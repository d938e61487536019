//! A homeserver on loopback (spec.matrix.org/latest/client-server-api). It checks every request as
//! the specification demands, and misbehaves when it is told to.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    io::{self, Write as _},
    net::{TcpListener, TcpStream},
    sync::{Arc, Condvar, Mutex, MutexGuard},
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use super::phone::{Phone, Seen};
use crate::{
    http::{self, Message},
    support::TIMEOUT,
};

/// The access token of the account.
pub(crate) const TOKEN: &str = "syt_Z3lydXM_abcdefghijklmnop_012345";

/// The account.
const BOT: &str = "@gyrus:home.example";

/// Something that the server does instead of what it should.
#[derive(Debug, Clone)]
pub(crate) enum Fault {
    /// It answers so, and does nothing.
    Answer(u16, Value),
    /// It does it, and the connection breaks before the answer.
    DoneInSilence,
    /// It answers as a gateway does that cannot reach it.
    BadGateway,
}

#[derive(Default)]
struct Room {
    members: BTreeSet<String>,
}

#[derive(Default)]
struct State {
    rooms: BTreeMap<String, Room>,
    /// All events of all rooms in order, each with its room. Positions count them.
    events: Vec<(String, Value)>,
    /// Invitations: the position, the room and who invites.
    invites: Vec<(usize, String, String)>,
    /// Transactions that were carried out, with the event of each.
    transactions: BTreeMap<String, String>,
    files: BTreeMap<String, Vec<u8>>,
    faults: BTreeMap<String, VecDeque<Fault>>,
    /// Whether the next synchronisation leaves out all but the last event of each room.
    is_limited: bool,
    /// Whether every synchronisation repeats what came before.
    repeats: bool,
    /// The answer without a position, which the server keeps, as Synapse does.
    first: Option<Value>,
    /// The highest position that was asked from.
    read: usize,
    violations: Vec<String>,
    is_over: bool,
}

/// The server, while it is not dropped.
pub(crate) struct Homeserver {
    state: Arc<(Mutex<State>, Condvar)>,
    pub(crate) address: String,
}

impl Homeserver {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let state: Arc<(Mutex<State>, Condvar)> = Arc::default();
        let serving = Arc::clone(&state);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if serving.0.lock().unwrap().is_over {
                    return;
                }
                let state = Arc::clone(&serving);
                thread::spawn(move || serve(&state, &stream));
            }
        });
        Self { state, address }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.0.lock().unwrap()
    }

    /// Has the next request of a kind fail so.
    pub(crate) fn fails(&self, kind: &str, fault: Fault) {
        let mut state = self.state();
        let faults = state.faults.entry(kind.to_owned()).or_default();
        faults.push_back(fault);
    }

    pub(crate) fn repeats(&self) {
        self.state().repeats = true;
    }

    pub(crate) fn limits_the_next_answer(&self) {
        self.state().is_limited = true;
    }

    /// Somebody makes a room with these people and invites the account.
    pub(crate) fn invite(&self, room: &str, people: &[&str]) {
        let mut state = self.state();
        let members = people.iter().map(|one| (*one).to_owned()).collect();
        state.rooms.insert(room.to_owned(), Room { members });
        let at = state.events.len();
        state
            .invites
            .push((at, room.to_owned(), people[0].to_owned()));
        // Positions count events, so an invitation needs one of its own.
        let note = json!({"type": "m.room.topic", "state_key": "", "sender": people[0],
            "event_id": format!("$topic{at}"), "content": {}});
        state.events.push((room.to_owned(), note));
        self.state.1.notify_all();
    }

    /// Whether the account is in a room.
    pub(crate) fn is_in(&self, room: &str) -> bool {
        let state = self.state();
        let room = state.rooms.get(room);
        room.is_some_and(|room| room.members.contains(BOT))
    }

    /// Puts an event into a room; returns its id.
    pub(crate) fn event(&self, room: &str, sender: &str, kind: &str, content: Value) -> String {
        let mut state = self.state();
        let id = add(&mut state, room, sender, kind, content);
        self.state.1.notify_all();
        id
    }

    /// Somebody writes.
    pub(crate) fn writes(&self, room: &str, sender: &str, text: &str) -> String {
        let content = json!({"msgtype": "m.text", "body": text});
        self.event(room, sender, "m.room.message", content)
    }

    /// Somebody replies.
    pub(crate) fn answers(&self, room: &str, sender: &str, to: &str, text: &str) -> String {
        let content = json!({
            "msgtype": "m.text", "body": text,
            "m.relates_to": {"m.in_reply_to": {"event_id": to}},
        });
        self.event(room, sender, "m.room.message", content)
    }

    pub(crate) fn keep_file(&self, media: &str, bytes: &[u8]) {
        self.state().files.insert(media.to_owned(), bytes.to_vec());
    }

    /// Whether the server has a file of this content.
    pub(crate) fn has_file(&self, bytes: &[u8]) -> bool {
        self.state().files.values().any(|file| file == bytes)
    }

    /// Somebody enters a room.
    pub(crate) fn enters(&self, room: &str, person: &str) {
        let mut state = self.state();
        enter(&mut state, room, person);
        self.state.1.notify_all();
    }

    /// Waits until everything was read.
    #[track_caller]
    pub(crate) fn waits_until_read(&self) {
        self.waits("all is read", |server| {
            let state = server.state();
            (state.read >= state.events.len()).then_some(())
        });
    }

    #[track_caller]
    pub(crate) fn waits<T>(&self, what: &str, wanted: impl Fn(&Self) -> Option<T>) -> T {
        let until = Instant::now() + TIMEOUT;
        loop {
            if let Some(found) = wanted(self) {
                return found;
            }
            assert!(Instant::now() < until, "{what}: {:#?}", self.seen());
            let state = self.state();
            let changed = self.state.1.wait_timeout(state, Duration::from_millis(20));
            drop(changed.unwrap());
        }
    }
}

/// The room in which a phone of these tests writes, and its person.
pub(crate) const ROOM: &str = "!direct:home.example";
pub(crate) const ADA: &str = "@ada:home.example";

impl Phone for Homeserver {
    fn says(&self, text: &str) -> String {
        self.writes(ROOM, ADA, text)
    }

    fn replies(&self, to: &str, text: &str) {
        self.answers(ROOM, ADA, to, text);
    }

    fn presses(&self, message: &Seen, label: &str) {
        let line = message.text.lines().find(|line| line.ends_with(label));
        let line = line.unwrap_or_else(|| panic!("no button {label} in {message:?}"));
        let number = line.split(' ').next().unwrap();
        self.replies(&message.id, number);
    }

    fn seen(&self) -> Vec<Seen> {
        let state = self.state();
        let mut seen: Vec<Seen> = Vec::new();
        for (_, event) in &state.events {
            if event["sender"] != BOT || event["type"] != "m.room.message" {
                continue;
            }
            let relation = &event["content"]["m.relates_to"];
            let text = event["content"]["body"].as_str().unwrap().to_owned();
            if relation["rel_type"] == "m.replace" {
                let edited = seen.iter_mut().find(|one| relation["event_id"] == *one.id);
                edited.expect("it stands there").text = text;
                continue;
            }
            seen.push(Seen {
                id: event["event_id"].as_str().unwrap().to_owned(),
                text,
                reply_to: relation["m.in_reply_to"]["event_id"]
                    .as_str()
                    .map(str::to_owned),
            });
        }
        seen
    }
}

impl Drop for Homeserver {
    fn drop(&mut self) {
        let violations = {
            let mut state = self.state();
            state.is_over = true;
            std::mem::take(&mut state.violations)
        };
        self.state.1.notify_all();
        let _ = TcpStream::connect(self.address.trim_start_matches("http://"));
        if !thread::panicking() {
            assert_eq!(violations, Vec::<String>::new());
        }
    }
}

fn add(state: &mut State, room: &str, sender: &str, kind: &str, content: Value) -> String {
    let id = format!("$event{}", state.events.len());
    let event = json!({"type": kind, "event_id": id, "sender": sender, "content": content,
        "origin_server_ts": 1});
    state.events.push((room.to_owned(), event));
    id
}

fn enter(state: &mut State, room: &str, person: &str) {
    let members = &mut state.rooms.get_mut(room).unwrap().members;
    if members.insert(person.to_owned()) {
        let id = add(
            state,
            room,
            person,
            "m.room.member",
            json!({"membership": "join"}),
        );
        let event = state.events.last_mut().unwrap();
        event.1["state_key"] = json!(person);
        assert_eq!(event.1["event_id"], json!(id));
    }
}

type Shared = (Mutex<State>, Condvar);
type Done = Result<Value, (u16, &'static str, String)>;

fn serve(shared: &Shared, stream: &TcpStream) -> io::Result<()> {
    stream.set_read_timeout(Some(TIMEOUT))?;
    let asked = Message::read(stream)?;
    let (path, query) = asked.path().split_once('?').unwrap_or((asked.path(), ""));
    let path: Vec<String> = path.split('/').skip(1).map(decoded).collect();
    let path: Vec<&str> = path.iter().map(String::as_str).collect();
    let query: BTreeMap<String, String> = query
        .split('&')
        .filter_map(|pair| pair.split_once('='))
        .map(|(name, value)| (decoded(name), decoded(value)))
        .collect();
    let head = asked.head.to_lowercase();
    if !head.contains(&format!("authorization: bearer {}", TOKEN.to_lowercase())) {
        return refuse(stream, 401, "M_UNKNOWN_TOKEN", "who are you?");
    }
    let kind = kind(&path);
    let fault = {
        let mut state = shared.0.lock().unwrap();
        state.faults.get_mut(kind).and_then(VecDeque::pop_front)
    };
    match &fault {
        Some(Fault::Answer(status, body)) => {
            return http::answer(stream, *status, "application/json", &body.to_string());
        }
        Some(Fault::BadGateway) => return raw(stream, 502, b"<html>Bad Gateway</html>"),
        Some(Fault::DoneInSilence) | None => {}
    }
    if kind == "download" {
        let bytes = shared.0.lock().unwrap().files.get(path[6]).cloned();
        return match bytes {
            Some(bytes) => raw(stream, 200, &bytes),
            None => refuse(stream, 404, "M_NOT_FOUND", "no such file"),
        };
    }
    let done = carry_out(shared, kind, (&path, &query), &asked);
    shared.1.notify_all();
    if matches!(fault, Some(Fault::DoneInSilence)) {
        return stream.shutdown(std::net::Shutdown::Both);
    }
    match done {
        Ok(result) => http::answer(stream, 200, "application/json", &result.to_string()),
        Err((status, code, why)) => refuse(stream, status, code, &why),
    }
}

/// Returns the kind of a request by its path.
fn kind(path: &[&str]) -> &'static str {
    match path {
        ["_matrix", "client", "v3", "account", "whoami"] => "whoami",
        ["_matrix", "client", "v3", "sync"] => "sync",
        [
            "_matrix",
            "client",
            "v3",
            "rooms",
            _,
            "send",
            "m.room.message",
            _,
        ] => "send",
        ["_matrix", "client", "v3", "rooms", _, "event", _] => "event",
        ["_matrix", "client", "v3", "rooms", _, "joined_members"] => "members",
        ["_matrix", "client", "v3", "rooms", _, "messages"] => "messages",
        ["_matrix", "client", "v3", "rooms", _, "join"] => "join",
        ["_matrix", "media", "v3", "upload"] => "upload",
        ["_matrix", "client", "v1", "media", "download", _, _] => "download",
        _ => "unknown",
    }
}

fn carry_out(
    shared: &Shared,
    kind: &str,
    (path, query): (&[&str], &BTreeMap<String, String>),
    asked: &Message,
) -> Done {
    let verb = match kind {
        "send" => "PUT",
        "join" | "upload" => "POST",
        _ => "GET",
    };
    if asked.method() != verb {
        return violation(shared, &format!("{kind}: {} is not {verb}", asked.method()));
    }
    if kind == "sync" {
        return sync(shared, query);
    }
    let mut state = shared.0.lock().unwrap();
    let room = path.get(4).copied().unwrap_or_default();
    let needs_membership = matches!(kind, "send" | "event" | "members" | "messages");
    let is_in = |state: &State| {
        let room = state.rooms.get(room);
        room.is_some_and(|room| room.members.contains(BOT))
    };
    if needs_membership && !is_in(&state) {
        return Err((403, "M_FORBIDDEN", "you are not in that room".to_owned()));
    }
    match kind {
        "whoami" => Ok(json!({"user_id": BOT})),
        "send" => {
            let Ok(content) = serde_json::from_slice::<Value>(&asked.body) else {
                drop(state);
                return violation(shared, "send: the content is not JSON");
            };
            if let Some(sent) = state.transactions.get(path[7]) {
                return Ok(json!({"event_id": sent}));
            }
            if let Err(why) = check(&content, asked.body.len()) {
                drop(state);
                return violation(shared, &format!("send: {why}"));
            }
            let id = add(&mut state, room, BOT, "m.room.message", content);
            state.transactions.insert(path[7].to_owned(), id.clone());
            Ok(json!({"event_id": id}))
        }
        "event" => {
            let mut events = state.events.iter();
            let found = events.find(|(place, event)| place == room && event["event_id"] == path[6]);
            let found = found.map(|(_, event)| event.clone());
            found.ok_or((404, "M_NOT_FOUND", "no such event".to_owned()))
        }
        "members" => {
            let members = state.rooms[room].members.iter();
            let joined: BTreeMap<_, _> = members.map(|one| (one, json!({}))).collect();
            Ok(json!({"joined": joined}))
        }
        "messages" => messages(&state, room, query),
        "join" => {
            enter(&mut state, room, BOT);
            Ok(json!({"room_id": room}))
        }
        "upload" => {
            let media = format!("media{}", state.files.len());
            state.files.insert(media.clone(), asked.body.clone());
            Ok(json!({"content_uri": format!("mxc://home.example/{media}")}))
        }
        _ => {
            drop(state);
            violation(shared, &format!("unknown path {path:?}"))
        }
    }
}

/// Checks the content of a message.
fn check(content: &Value, bytes: usize) -> Result<(), String> {
    let words = content["body"].as_str().unwrap_or_default();
    let relation = &content["m.relates_to"];
    let is_edit = relation["rel_type"] == "m.replace";
    if words.is_empty() || content["msgtype"].as_str().is_none() {
        return Err(format!("no body or msgtype: {content}"));
    }
    if bytes > 60_000 {
        return Err(format!("an event of {bytes} bytes"));
    }
    if is_edit && (!content["m.new_content"].is_object() || !relation["event_id"].is_string()) {
        return Err(format!("an edit of nothing: {content}"));
    }
    Ok(())
}

fn violation(shared: &Shared, why: &str) -> Done {
    shared.0.lock().unwrap().violations.push(why.to_owned());
    Err((400, "M_BAD_JSON", why.to_owned()))
}

fn position(text: Option<&String>) -> Option<usize> {
    text.and_then(|text| text.strip_prefix('s')?.parse().ok())
}

fn sync(shared: &Shared, query: &BTreeMap<String, String>) -> Done {
    let since = position(query.get("since"));
    if query.contains_key("since") && since.is_none() {
        return violation(shared, "sync: an unknown position");
    }
    if serde_json::from_str::<Value>(&query["filter"]).is_err() {
        return violation(shared, "sync: the filter is not JSON");
    }
    let timeout = query["timeout"].parse().unwrap_or(0);
    let until = Instant::now() + Duration::from_millis(timeout);
    let mut state = shared.0.lock().unwrap();
    if let (None, Some(first)) = (since, &state.first) {
        return Ok(first.clone());
    }
    let from = since.unwrap_or(0);
    state.read = state.read.max(from);
    while state.events.len() <= from && !state.is_over && Instant::now() < until {
        state = shared
            .1
            .wait_timeout(state, Duration::from_millis(200))
            .unwrap()
            .0;
    }
    let mut rooms: BTreeMap<&str, Vec<Value>> = BTreeMap::new();
    let first = if state.repeats {
        from.saturating_sub(5)
    } else {
        from
    };
    for (room, event) in &state.events[first.min(state.events.len())..] {
        if state.rooms[room].members.contains(BOT) {
            rooms.entry(room).or_default().push(event.clone());
        }
    }
    let join: BTreeMap<&str, Value> = rooms
        .into_iter()
        .map(|(room, mut events)| {
            let mut timeline = json!({});
            if state.is_limited && events.len() > 1 {
                events.drain(..events.len() - 1);
                let place = state.events.iter().position(|(_, one)| *one == events[0]);
                timeline["limited"] = json!(true);
                timeline["prev_batch"] = json!(format!("s{}", place.unwrap()));
            }
            timeline["events"] = json!(events);
            (room, json!({"timeline": timeline, "state": {"events": []}}))
        })
        .collect();
    let invited = state
        .invites
        .iter()
        .filter(|(at, room, _)| *at >= from && !state.rooms[room].members.contains(BOT));
    let invite: BTreeMap<&str, Value> = invited
        .map(|(_, room, sender)| {
            let event = json!({"type": "m.room.member", "state_key": BOT, "sender": sender,
                "content": {"membership": "invite"}});
            (room.as_str(), json!({"invite_state": {"events": [event]}}))
        })
        .collect();
    let next = format!("s{}", state.events.len());
    let answer = json!({"next_batch": next, "rooms": {"join": join, "invite": invite}});
    state.is_limited = false;
    if since.is_none() {
        state.first = Some(answer.clone());
    }
    Ok(answer)
}

/// Returns older events, two a page.
fn messages(state: &State, room: &str, query: &BTreeMap<String, String>) -> Done {
    let (Some(from), Some(to)) = (position(query.get("from")), position(query.get("to"))) else {
        return Err((400, "M_INVALID_PARAM", "no positions".to_owned()));
    };
    let events = state.events.iter().enumerate();
    let of_room = events.filter(|(at, (place, _))| (to..from).contains(at) && place == room);
    let page: Vec<_> = of_room.rev().take(2).collect();
    let chunk: Vec<&Value> = page.iter().map(|(_, (_, event))| event).collect();
    let mut answer = json!({"chunk": chunk, "start": format!("s{from}")});
    if let Some((at, _)) = page.last() {
        answer["end"] = json!(format!("s{at}"));
    }
    Ok(answer)
}

fn decoded(text: &str) -> String {
    let text = text.replace('+', " ");
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let hex = after.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
        let byte = hex.and_then(|hex| u8::from_str_radix(hex, 16).ok());
        match (first, byte) {
            (b'%', Some(byte)) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            _ => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8(bytes).unwrap()
}

fn refuse(stream: &TcpStream, status: u16, code: &str, why: &str) -> io::Result<()> {
    let body = json!({"errcode": code, "error": why}).to_string();
    http::answer(stream, status, "application/json", &body)
}

fn raw(mut stream: &TcpStream, status: u16, body: &[u8]) -> io::Result<()> {
    let length = body.len();
    write!(
        stream,
        "HTTP/1.1 {status} X\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    )?;
    stream.write_all(body)
}
