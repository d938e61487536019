//! A server of the Bot API on loopback (core.telegram.org/bots/api). It checks every request as the
//! documentation demands, and misbehaves when it is told to.

use std::{
    collections::{BTreeMap, VecDeque},
    io::{self, Write as _},
    net::{TcpListener, TcpStream},
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use parking_lot::{Condvar, Mutex, MutexGuard};
use serde_json::{Value, json};

use crate::{
    http::{self, Message},
    support::TIMEOUT,
};

/// The token of the bot.
pub(crate) const TOKEN: &str = "110201543:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw";

/// The id of the bot.
const BOT: i64 = 110_201_543;

/// Something that the server does instead of what it should.
#[derive(Debug, Clone)]
pub(crate) enum Fault {
    /// It answers so, and does nothing.
    Answer(u16, Value),
    /// It does it, and the connection breaks before the answer.
    DoneInSilence,
    /// It answers as a gateway does that cannot reach it.
    BadGateway,
    /// It does nothing unusual.
    Nothing,
}

/// A message as it stands in a conversation.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Shown {
    pub(crate) chat: i64,
    pub(crate) id: i64,
    pub(crate) text: String,
    /// Labels and data of buttons.
    pub(crate) buttons: Vec<(String, String)>,
    pub(crate) reply_to: Option<i64>,
    /// Name and content of a file.
    pub(crate) file: Option<(String, Vec<u8>)>,
    pub(crate) is_picture: bool,
    pub(crate) at: Instant,
}

#[derive(Default)]
struct State {
    updates: Vec<Value>,
    last_update: i64,
    last_message: i64,
    shown: Vec<Shown>,
    faults: BTreeMap<String, VecDeque<Fault>>,
    files: BTreeMap<String, Vec<u8>>,
    toasts: Vec<String>,
    violations: Vec<String>,
    polling: usize,
    /// The last random number, if the server fails by chance.
    chance: Option<u64>,
    is_over: bool,
}

impl State {
    /// Returns the next number of `xorshift64` (Marsaglia), if something happens by chance.
    fn chance(&mut self) -> Option<u64> {
        let number = self.chance.as_mut()?;
        *number ^= *number << 13;
        *number ^= *number >> 7;
        *number ^= *number << 17;
        Some(*number)
    }
}

/// The server, while it is not dropped.
pub(crate) struct BotApi {
    state: Arc<(Mutex<State>, Condvar)>,
    pub(crate) address: String,
}

/// A person.
#[derive(Clone, Copy)]
pub(crate) struct Person(pub(crate) i64);

impl Person {
    fn user(self) -> Value {
        json!({"id": self.0, "is_bot": false, "first_name": "A", "username": "same_name"})
    }

    pub(crate) fn private(self) -> Value {
        json!({"id": self.0, "type": "private"})
    }
}

impl BotApi {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let state = Arc::new((Mutex::new(State::default()), Condvar::new()));
        state.0.lock().last_update = 1_000;
        let serving = Arc::clone(&state);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if serving.0.lock().is_over {
                    return;
                }
                let state = Arc::clone(&serving);
                thread::spawn(move || serve(&state, &stream));
            }
        });
        Self { state, address }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.0.lock()
    }

    /// Has the next call of a method fail so.
    pub(crate) fn fails(&self, method: &str, fault: Fault) {
        let mut state = self.state();
        state
            .faults
            .entry(method.to_owned())
            .or_default()
            .push_back(fault);
    }

    /// Has the server fail by chance from now on: gateways that do not reach it, answers that are
    /// lost, updates that come twice and out of order.
    pub(crate) fn fails_by_chance(&self, seed: u64) {
        self.state().chance = Some(seed);
    }

    /// Puts an update there; without an id it gets the next one.
    pub(crate) fn update(&self, mut update: Value) {
        let mut state = self.state();
        if update["update_id"].is_null() {
            state.last_update += 1;
            update["update_id"] = json!(state.last_update);
        }
        state.updates.push(update);
        self.state.1.notify_all();
    }

    /// Has ids of updates begin anew at this number.
    pub(crate) fn begin_ids_at(&self, id: i64) {
        self.state().last_update = id;
    }

    /// Returns a message of a person, which was not sent yet.
    pub(crate) fn message(&self, person: Person, text: &str) -> Value {
        let mut state = self.state();
        state.last_message += 1;
        json!({
            "message_id": state.last_message, "date": 1, "from": person.user(),
            "chat": person.private(), "text": text,
        })
    }

    /// Sends a message; returns its id.
    pub(crate) fn send(&self, message: Value) -> i64 {
        let id = message["message_id"].as_i64().unwrap();
        self.update(json!({"message": message}));
        id
    }

    /// A person writes to the bot alone; returns the id of the message.
    pub(crate) fn says(&self, person: Person, text: &str) -> i64 {
        let message = self.message(person, text);
        self.send(message)
    }

    /// A person replies to a message.
    pub(crate) fn replies(&self, person: Person, to: i64, text: &str) -> i64 {
        let mut message = self.message(person, text);
        message["reply_to_message"] =
            json!({"message_id": to, "from": {"id": BOT, "is_bot": true}});
        self.send(message)
    }

    /// A person presses the button with this label below a message.
    pub(crate) fn presses(&self, person: Person, shown: &Shown, label: &str) {
        let button = shown.buttons.iter().find(|(name, _)| name == label);
        let (_, data) = button.unwrap_or_else(|| panic!("no button {label} in {shown:?}"));
        self.presses_data(person, shown, data);
    }

    pub(crate) fn presses_data(&self, person: Person, shown: &Shown, data: &str) {
        let id = self.state().last_update;
        self.update(json!({"callback_query": {
            "id": format!("press-{id}-{}", person.0), "from": person.user(), "data": data,
            "message": {"message_id": shown.id, "chat": {"id": shown.chat, "type": "private"}, "date": 1},
        }}));
    }

    /// Keeps a file, by its id.
    pub(crate) fn keep_file(&self, id: &str, bytes: &[u8]) {
        self.state().files.insert(id.to_owned(), bytes.to_vec());
    }

    /// Returns all messages of the bot, as they stand now.
    pub(crate) fn shown(&self) -> Vec<Shown> {
        self.state().shown.clone()
    }

    /// Returns the words that answered presses.
    pub(crate) fn toasts(&self) -> Vec<String> {
        self.state().toasts.clone()
    }

    /// Waits until something about the server holds.
    #[track_caller]
    pub(crate) fn waits<T>(&self, what: &str, wanted: impl Fn(&Self) -> Option<T>) -> T {
        let until = Instant::now() + TIMEOUT;
        loop {
            if let Some(found) = wanted(self) {
                return found;
            }
            assert!(Instant::now() < until, "{what}: {:#?}", self.shown());
            let mut state = self.state();
            let _ = self.state.1.wait_for(&mut state, Duration::from_millis(20));
        }
    }

    /// Waits until a message of the bot has these words; returns it.
    #[track_caller]
    pub(crate) fn waits_for(&self, words: &str) -> Shown {
        self.waits(words, |bot| {
            bot.shown()
                .into_iter()
                .find(|shown| shown.text.contains(words))
        })
    }

    /// Waits until a message of the bot is this text.
    #[track_caller]
    pub(crate) fn waits_for_exactly(&self, text: &str) -> Shown {
        self.waits(text, |bot| {
            bot.shown().into_iter().find(|shown| shown.text == text)
        })
    }

    /// Waits until every update was confirmed.
    #[track_caller]
    pub(crate) fn waits_until_read(&self) {
        self.waits("all is read", |bot| {
            bot.state().updates.is_empty().then_some(())
        });
    }

    /// Whether a message of the bot has these words.
    pub(crate) fn has_said(&self, words: &str) -> bool {
        self.shown().iter().any(|shown| shown.text.contains(words))
    }
}

impl Drop for BotApi {
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

type Shared = (Mutex<State>, Condvar);

fn serve(state: &Shared, stream: &TcpStream) -> io::Result<()> {
    stream.set_read_timeout(Some(TIMEOUT))?;
    let asked = Message::read(stream)?;
    let path = asked.path().to_owned();
    let files = format!("/file/bot{TOKEN}/");
    if let Some(file) = path.strip_prefix(&files) {
        let bytes = state.0.lock().files.get(file).cloned();
        return raw(
            stream,
            if bytes.is_some() { 200 } else { 404 },
            &bytes.unwrap_or_default(),
        );
    }
    let Some(method) = path.strip_prefix(&format!("/bot{TOKEN}/")) else {
        return refuse(stream, 401, "Unauthorized");
    };
    let fault = {
        let mut state = state.0.lock();
        let given = state.faults.get_mut(method).and_then(VecDeque::pop_front);
        given.or_else(|| match state.chance()? % 32 {
            0 => Some(Fault::BadGateway),
            1 | 2 => Some(Fault::DoneInSilence),
            _ => None,
        })
    };
    match &fault {
        Some(Fault::Answer(status, body)) => {
            return http::answer(stream, *status, "application/json", &body.to_string());
        }
        Some(Fault::BadGateway) => return raw(stream, 502, b"<html>Bad Gateway</html>"),
        Some(Fault::DoneInSilence | Fault::Nothing) | None => {}
    }
    let done = carry_out(state, method, &asked);
    if matches!(fault, Some(Fault::DoneInSilence)) {
        return stream.shutdown(std::net::Shutdown::Both);
    }
    match done {
        Ok(result) => {
            let body = json!({"ok": true, "result": result}).to_string();
            http::answer(stream, 200, "application/json", &body)
        }
        Err((status, why)) => refuse(stream, status, &why),
    }
}

fn refuse(stream: &TcpStream, status: u16, why: &str) -> io::Result<()> {
    let body = json!({"ok": false, "error_code": status, "description": why}).to_string();
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

type Done = Result<Value, (u16, String)>;

fn carry_out(shared: &Shared, method: &str, asked: &Message) -> Done {
    let arguments = match Arguments::read(asked) {
        Ok(arguments) => arguments,
        Err(why) => return violation(shared, method, &why),
    };
    let done = match method {
        "getMe" => Ok(json!({"id": BOT, "is_bot": true, "first_name": "G", "username": "g_bot"})),
        "setMyCommands" => set_commands(&arguments),
        "getUpdates" => return updates(shared, &arguments),
        "sendMessage" => send(shared, &arguments),
        "editMessageText" => return edit(shared, &arguments),
        "sendDocument" => send_file(shared, &arguments, "document"),
        "sendPhoto" => send_file(shared, &arguments, "photo"),
        "getFile" => get_file(shared, &arguments),
        "answerCallbackQuery" => answer_press(shared, &arguments),
        _ => Err(format!("there is no method {method}")),
    };
    shared.1.notify_all();
    done.or_else(|why| violation(shared, method, &why))
}

fn violation(shared: &Shared, method: &str, why: &str) -> Done {
    let mut state = shared.0.lock();
    state.violations.push(format!("{method}: {why}"));
    Err((400, format!("Bad Request: {why}")))
}

/// The arguments of a call, from JSON or a form.
struct Arguments {
    json: Value,
    file: Option<(String, String, Vec<u8>)>,
}

impl Arguments {
    fn read(asked: &Message) -> Result<Self, String> {
        let head = asked.head.clone();
        let boundary = head.split_once("multipart/form-data; boundary=");
        let Some((_, boundary)) = boundary else {
            let is_json = head
                .to_lowercase()
                .contains("content-type: application/json");
            if !is_json {
                return Err("neither JSON nor a form".to_owned());
            }
            let json = serde_json::from_slice(&asked.body).map_err(|error| error.to_string())?;
            return Ok(Self { json, file: None });
        };
        let boundary = format!("--{}", boundary.lines().next().unwrap_or_default());
        form(&asked.body, &boundary)
    }

    fn number(&self, name: &str) -> Result<i64, String> {
        let value = &self.json[name];
        let number = value.as_i64().or_else(|| value.as_str()?.parse().ok());
        number.ok_or_else(|| format!("`{name}` is not an integer: {value}"))
    }

    fn text(&self, name: &str, most: usize) -> Result<String, String> {
        let text = self.json[name]
            .as_str()
            .ok_or(format!("`{name}` is missing"))?;
        let units = text.encode_utf16().count();
        if text.trim().is_empty() {
            return Err(format!("`{name}` is empty"));
        }
        if units > most {
            return Err(format!(
                "`{name}` has {units} UTF-16 code units, over {most}"
            ));
        }
        Ok(text.to_owned())
    }

    fn reply_to(&self) -> Option<i64> {
        let reply = &self.json["reply_parameters"];
        let reply = match reply.as_str() {
            Some(text) => serde_json::from_str(text).unwrap_or_default(),
            None => reply.clone(),
        };
        reply["message_id"].as_i64()
    }
}

fn form(body: &[u8], boundary: &str) -> Result<Arguments, String> {
    let find = |bytes: &[u8], wanted: &[u8]| {
        bytes
            .windows(wanted.len())
            .position(|window| window == wanted)
    };
    let (mut json, mut file, mut rest) = (json!({}), None, body);
    loop {
        let at = find(rest, boundary.as_bytes()).ok_or("a part without an end")?;
        rest = &rest[at + boundary.len()..];
        if rest.starts_with(b"--") {
            return Ok(Arguments { json, file });
        }
        let head_end = find(rest, b"\r\n\r\n").ok_or("a part without a head")?;
        let head = String::from_utf8_lossy(&rest[..head_end]).into_owned();
        let content = &rest[head_end + 4..];
        let end = find(content, format!("\r\n{boundary}").as_bytes()).ok_or("no end")?;
        let field = |name: &str| {
            let (_, after) = head.split_once(&format!("{name}=\""))?;
            Some(after.split('"').next().unwrap_or_default().to_owned())
        };
        let name = field("; name").ok_or("a part without a name")?;
        match field("filename") {
            Some(given) => file = Some((name, given, content[..end].to_vec())),
            None => json[name] = json!(String::from_utf8_lossy(&content[..end])),
        }
        rest = &content[end..];
    }
}

fn set_commands(arguments: &Arguments) -> Result<Value, String> {
    let commands = arguments.json["commands"].as_array().ok_or("no commands")?;
    for command in commands {
        let name = command["command"].as_str().unwrap_or_default();
        let is_plain =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        let description = command["description"].as_str().unwrap_or_default();
        if !(1..=32).contains(&name.len())
            || !name.bytes().all(is_plain)
            || !(1..=256).contains(&description.len())
        {
            return Err(format!("invalid command {command}"));
        }
    }
    Ok(json!(commands.len() <= 100))
}

fn updates(shared: &Shared, arguments: &Arguments) -> Done {
    let offset = arguments.json["offset"].as_i64();
    let timeout = arguments.number("timeout").unwrap_or(0);
    if !(0..=50).contains(&timeout) {
        return violation(shared, "getUpdates", "`timeout` is over 50");
    }
    let until = Instant::now() + Duration::from_secs(u64::try_from(timeout).unwrap_or(0));
    let mut state = shared.0.lock();
    if let Some(offset) = offset {
        state
            .updates
            .retain(|update| update["update_id"].as_i64() >= Some(offset));
        shared.1.notify_all();
    }
    state.polling += 1;
    loop {
        if !state.updates.is_empty() || state.is_over || Instant::now() >= until {
            state.polling -= 1;
            let mut updates: Vec<Value> = state.updates.iter().take(100).cloned().collect();
            if state
                .chance()
                .is_some_and(|chance| chance.is_multiple_of(3))
            {
                updates.extend(updates.clone());
                updates.reverse();
            }
            return Ok(json!(updates));
        }
        let _ = shared.1.wait_for(&mut state, Duration::from_millis(200));
    }
}

fn buttons(arguments: &Arguments) -> Result<Vec<(String, String)>, String> {
    let rows = &arguments.json["reply_markup"]["inline_keyboard"];
    let rows = rows.as_array().into_iter().flatten();
    let mut buttons = Vec::new();
    for button in rows.flat_map(|row| row.as_array().into_iter().flatten()) {
        let label = button["text"].as_str().unwrap_or_default();
        let data = button["callback_data"].as_str().unwrap_or_default();
        if label.is_empty() || !(1..=64).contains(&data.len()) {
            return Err(format!("invalid button {button}"));
        }
        buttons.push((label.to_owned(), data.to_owned()));
    }
    Ok(buttons)
}

fn send(shared: &Shared, arguments: &Arguments) -> Result<Value, String> {
    let chat = arguments.number("chat_id")?;
    let text = arguments.text("text", 4_096)?;
    if arguments.json["link_preview_options"]["is_disabled"] != true {
        return Err("a preview of links would be made".to_owned());
    }
    if !arguments.json["parse_mode"].is_null() {
        return Err("texts are plain".to_owned());
    }
    let buttons = buttons(arguments)?;
    Ok(show(
        shared,
        chat,
        text,
        buttons,
        arguments.reply_to(),
        None,
        false,
    ))
}

fn show(
    shared: &Shared,
    chat: i64,
    text: String,
    buttons: Vec<(String, String)>,
    reply_to: Option<i64>,
    file: Option<(String, Vec<u8>)>,
    is_picture: bool,
) -> Value {
    let mut state = shared.0.lock();
    state.last_message += 1;
    let id = state.last_message;
    state.shown.push(Shown {
        chat,
        id,
        text,
        buttons,
        reply_to,
        file,
        is_picture,
        at: Instant::now(),
    });
    json!({"message_id": id, "date": 1, "chat": {"id": chat, "type": "private"}})
}

fn edit(shared: &Shared, arguments: &Arguments) -> Done {
    let checked = || {
        let place = (
            arguments.number("chat_id")?,
            arguments.number("message_id")?,
        );
        Ok::<_, String>((place, arguments.text("text", 4_096)?, buttons(arguments)?))
    };
    let ((chat, id), text, buttons) = match checked() {
        Ok(checked) => checked,
        Err(why) => return violation(shared, "editMessageText", &why),
    };
    let mut state = shared.0.lock();
    let mut shown = state.shown.iter_mut();
    let Some(shown) = shown.find(|shown| (shown.chat, shown.id) == (chat, id)) else {
        return Err((400, "Bad Request: message to edit not found".to_owned()));
    };
    if (&shown.text, &shown.buttons) == (&text, &buttons) {
        return Err((400, "Bad Request: message is not modified".to_owned()));
    }
    (shown.text, shown.buttons) = (text, buttons);
    shared.1.notify_all();
    Ok(json!({"message_id": id, "date": 1, "chat": {"id": chat, "type": "private"}}))
}

fn send_file(shared: &Shared, arguments: &Arguments, field: &str) -> Result<Value, String> {
    let chat = arguments.number("chat_id")?;
    let (name, file, bytes) = arguments.file.clone().ok_or("no file")?;
    if name != field || file.is_empty() || bytes.is_empty() {
        return Err(format!("invalid file `{file}` as `{name}`"));
    }
    let caption = if arguments.json["caption"].is_null() {
        String::new()
    } else {
        arguments.text("caption", 1_024)?
    };
    let (reply_to, file) = (arguments.reply_to(), Some((file, bytes)));
    Ok(show(
        shared,
        chat,
        caption,
        Vec::new(),
        reply_to,
        file,
        field == "photo",
    ))
}

fn get_file(shared: &Shared, arguments: &Arguments) -> Result<Value, String> {
    let id = arguments.text("file_id", 200)?;
    let state = shared.0.lock();
    let bytes = state.files.get(&id).ok_or("invalid file_id")?;
    Ok(json!({"file_id": id, "file_size": bytes.len(), "file_path": id}))
}

fn answer_press(shared: &Shared, arguments: &Arguments) -> Result<Value, String> {
    arguments.text("callback_query_id", 200)?;
    let text = arguments.text("text", 200)?;
    shared.0.lock().toasts.push(text);
    Ok(json!(true))
}
