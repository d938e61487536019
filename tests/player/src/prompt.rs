//! The content of a request: the instructions' token, the goal, the memo, the log, and the screen
//! line by line. Everything is read from its text, as docs/reactive.md lays it out.

/// A prompt, taken apart.
#[derive(Debug)]
pub(crate) struct Prompt {
    /// With which the work is ended.
    pub(crate) token: String,
    /// All that was said but for the instructions.
    pub(crate) said: String,
    memo: Vec<(String, String)>,
    /// The verdicts of the last turn's actions, those of gyrus itself left out.
    pub(crate) verdicts: Vec<String>,
    /// Result of the last action: its tool and its lines.
    pub(crate) returned: Option<(String, Vec<String>)>,
    /// The screen's lines, with what is out of view as lines of their own.
    pub(crate) lines: Vec<Line>,
    /// The text of the screen.
    pub(crate) screen: String,
    /// The windows of a desktop, or the tabs of a browser, if there are several.
    pub(crate) tabs: Vec<Tab>,
    /// The picture's size in pixels, if there is one.
    pub(crate) picture: Option<(u32, u32)>,
}

/// A line of the screen.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) depth: usize,
    /// Id of something that can be used.
    pub(crate) id: Option<String>,
    pub(crate) role: String,
    pub(crate) name: String,
    /// Its value, cut if it is long.
    pub(crate) value: String,
    pub(crate) states: String,
    /// Others stand in it, further to the right.
    pub(crate) is_box: bool,
    /// It is named among what scrolling would show.
    pub(crate) is_away: bool,
}

/// A tab, or a window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tab {
    pub(crate) number: u32,
    /// Its title, cut if it is long.
    pub(crate) title: String,
    pub(crate) is_active: bool,
}

impl Prompt {
    /// Parses the instructions and everything else.
    pub(crate) fn read(instructions: &str, said: &str) -> Self {
        let token = instructions
            .rsplit_once("completion token of this run is: ")
            .map(|(_, token)| token.lines().next().unwrap_or_default().trim().to_owned());
        let memo = section(said, "=== your memo ===").unwrap_or_default();
        let memo = memo
            .lines()
            .filter_map(|line| line.strip_prefix("- ")?.split_once(": "))
            .map(|(key, text)| (key.to_owned(), text.to_owned()))
            .collect();
        let screen = match said.rsplit_once("=== the screen") {
            Some((_, screen)) => screen.split("=== end of the screen ===").next(),
            None => None,
        };
        let (head, body) = screen
            .unwrap_or_default()
            .split_once('\n')
            .unwrap_or_default();
        Self {
            token: token.unwrap_or_default(),
            memo,
            verdicts: last_turn(&section(said, "=== your last actions ===").unwrap_or_default()),
            returned: returned(said),
            lines: body.lines().flat_map(lines).collect(),
            screen: body.to_owned(),
            tabs: tabs(body),
            picture: size(head),
            said: said.to_owned(),
        }
    }

    /// A number of the memo; 0 if it has none of that name.
    pub(crate) fn number(&self, key: &str) -> usize {
        self.text(key).parse().unwrap_or(0)
    }

    /// A text of the memo.
    pub(crate) fn text(&self, key: &str) -> &str {
        let found = self.memo.iter().find(|(known, _)| known == key);
        found.map_or("", |(_, text)| text)
    }

    /// The page that is shown, by its address.
    pub(crate) fn address(&self) -> &str {
        let line = self.screen.lines().find(|line| line.starts_with("page "));
        let address = line.and_then(|line| line.rsplit_once(" at \""));
        address.map_or("", |(_, address)| address)
    }

    /// Whether the words stand anywhere on the screen, or in what a search returned.
    pub(crate) fn says(&self, words: &str) -> bool {
        let words = plain(words);
        let returned = self
            .returned
            .iter()
            .filter(|(tool, _)| tool == "find" || tool == "extract");
        let mut returned = returned.flat_map(|(_, lines)| lines);
        plain(&self.screen).contains(&words)
            || returned.any(|line| {
                !line.starts_with("Nothing on the page") && plain(line).contains(&words)
            })
    }

    /// The dialog that holds the page up.
    pub(crate) fn has_dialog(&self) -> bool {
        self.screen
            .lines()
            .any(|line| line.starts_with("dialog \"") && line.contains("use answer_dialog"))
    }
}

/// `tabs 1 "notes.txt - Mousepad" (this), 2 "Calculator"`
fn tabs(screen: &str) -> Vec<Tab> {
    let line = screen.lines().find_map(|line| line.strip_prefix("tabs "));
    let mut rest = line.unwrap_or_default();
    let mut found = Vec::new();
    while let Some((number, after)) = rest.split_once(" \"")
        && let Ok(number) = number.parse()
        && let Some((title, after)) = after.split_once('"')
    {
        let left = after.strip_prefix(" (this)");
        found.push(Tab {
            number,
            title: title.to_owned(),
            is_active: left.is_some(),
        });
        rest = left.unwrap_or(after).trim_start_matches(", ");
    }
    found
}

/// The part under a heading, up to the next one.
fn section(said: &str, heading: &str) -> Option<String> {
    let (_, rest) = said.rsplit_once(heading)?;
    let lines: Vec<&str> = rest
        .trim_start_matches('\n')
        .lines()
        .take_while(|line| !line.starts_with("=== "))
        .collect();
    Some(lines.join("\n"))
}

/// The verdicts of the newest turn's lines: `7. click b3 "Send": changed`.
fn last_turn(log: &str) -> Vec<String> {
    let numbered: Vec<(u32, &str)> = log
        .lines()
        .filter_map(|line| {
            let (number, rest) = line.split_once(". ")?;
            Some((number.parse().ok()?, rest))
        })
        .collect();
    let newest = numbered.iter().map(|(number, _)| *number).max();
    let of_turn = numbered
        .iter()
        .filter(|(number, rest)| Some(*number) == newest && !rest.starts_with("gyrus: "));
    of_turn
        .map(|(_, rest)| {
            const VERDICTS: [&str; 4] = ["changed", "no effect", "cannot tell", "refused"];
            let verdict = VERDICTS
                .into_iter()
                .filter_map(|verdict| Some((rest.rfind(&format!(": {verdict}"))?, verdict)))
                .max();
            verdict.map_or(String::new(), |(_, verdict)| verdict.to_owned())
        })
        .collect()
}

fn returned(said: &str) -> Option<(String, Vec<String>)> {
    let (_, rest) = said.rsplit_once("\n=== `")?;
    let (tool, rest) = rest.split_once("` returned (data) ===\n")?;
    let lines = rest.lines().map_while(|line| line.strip_prefix("| "));
    Some((tool.to_owned(), lines.map(str::to_owned).collect()))
}

/// `, 1280 by 800 pixels (data) ===`
fn size(head: &str) -> Option<(u32, u32)> {
    let (width, rest) = head.strip_prefix(", ")?.split_once(" by ")?;
    Some((width.parse().ok()?, rest.split(' ').next()?.parse().ok()?))
}

/// A line of the screen; one that counts what is out of view becomes one for each example.
fn lines(line: &str) -> Vec<Line> {
    let sides = ["above: ", "beside: ", "below: "];
    match sides.iter().find_map(|side| line.strip_prefix(side)) {
        Some(kinds) => kinds.split("; ").flat_map(away).collect(),
        None => vec![one(line)],
    }
}

/// `3 link, e.g. b40 "Privacy", b41 "Terms"`
fn away(kind: &str) -> Vec<Line> {
    let mut words = kind.splitn(3, ' ');
    let (_, role, rest) = (words.next(), words.next().unwrap_or_default(), words.next());
    let examples = rest.unwrap_or_default();
    let examples = examples.strip_prefix("e.g. ").unwrap_or(examples);
    let role = role.trim_end_matches([',', ':']);
    let mut found = vec![Line {
        role: role.to_owned(),
        is_away: true,
        ..Line::default()
    }];
    let mut rest = examples;
    while let Some((id, after)) = rest.split_once(" \"") {
        let Some((name, after)) = after.split_once('"') else {
            break;
        };
        found.push(Line {
            id: is_id(id.trim()).then(|| id.trim().to_owned()),
            role: role.to_owned(),
            name: name.to_owned(),
            is_away: true,
            ..Line::default()
        });
        rest = after.trim_start_matches(", ");
    }
    found
}

/// `  b17 button "Send" = "value" (states) of "option"`, or without an id.
pub(crate) fn one(text: &str) -> Line {
    let trimmed = text.trim_start_matches(' ');
    let depth = text.len() - trimmed.len();
    let (head, rest) = trimmed.split_once('"').unwrap_or((trimmed, ""));
    // A field may have a value and no name.
    let is_named = !head.ends_with("= ");
    let (name, rest) = if is_named {
        rest.split_once('"').unwrap_or((rest, ""))
    } else {
        ("", &trimmed[head.len() - 2..])
    };
    let value = rest.trim_start().strip_prefix("= \"");
    let value = value.and_then(|rest| rest.split_once('"'));
    let mut words = head.split_whitespace();
    let first = words.next().unwrap_or_default();
    let (id, role) = if is_id(first) {
        (Some(first.to_owned()), words.next().unwrap_or_default())
    } else {
        (None, first)
    };
    Line {
        depth,
        id,
        role: role.trim_end_matches(':').to_owned(),
        name: name.to_owned(),
        value: value.map_or(String::new(), |(value, _)| value.to_owned()),
        states: format!("{} {rest}", words.collect::<Vec<_>>().join(" ")),
        is_box: trimmed.ends_with(':'),
        is_away: false,
    }
}

/// A line of what a search returned: `b17 button 'Send' at 640,300`.
pub(crate) fn found(text: &str) -> Option<Line> {
    let mut words = text.splitn(3, ' ');
    let id = words.next().filter(|word| is_id(word))?;
    let (role, rest) = (words.next()?, words.next()?);
    let end = [" at ", " (out of view)", " (not painted)"]
        .iter()
        .filter_map(|end| rest.rfind(end))
        .max()?;
    let name = rest[..end].split("' = '").next()?;
    Some(Line {
        id: Some(id.to_owned()),
        role: role.to_owned(),
        name: name.trim_matches('\'').to_owned(),
        is_away: rest.ends_with("(out of view)"),
        ..Line::default()
    })
}

fn is_id(word: &str) -> bool {
    let digits = word.trim_start_matches(|c: char| c.is_ascii_lowercase());
    digits.len() < word.len() && !digits.is_empty() && digits.bytes().all(|it| it.is_ascii_digit())
}

/// Words in small letters, with one space between them and quotation marks as prompts write them.
pub(crate) fn plain(text: &str) -> String {
    let text = text.replace(['"', '“', '”'], "'");
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prompt_is_taken_apart() {
        let prompt = Prompt::read(
            "Take it.\n\nThe completion token of this run is: 00aa 11bb 22cc 33dd",
            "The goal:\nsend it\n=== your memo ===\n- step: 3\n- doing: 1 2\n=== your last actions ===\n\
             1. gyrus: open_url \"x\": changed\n2. click a1 \"Go: changed\": no effect, \"why\"\n2. type_text a2 \"To\" \"x\": refused\n\
             === `find` returned (data) ===\n| a9 link \"Terms\"\n\
             === the screen, 1280 by 800 pixels (data) ===\npage \"Mail\" at \"http://x/\"\n\
             tabs 1 \"Mail, new\" (this), 3 \"Save As\"\n \
             dialog \"New\":\n  b17 button \"Send\" (disabled, opens more)\nbelow: 3 link, e.g. b40 \"Privacy\"; 1 button: b50 \"Top\"\n\
             === end of the screen ===",
        );
        assert_eq!(prompt.token, "00aa 11bb 22cc 33dd");
        let tabs = prompt.tabs.iter();
        let tabs: Vec<_> = tabs
            .map(|tab| (tab.number, tab.title.as_str(), tab.is_active))
            .collect();
        assert_eq!(tabs, [(1, "Mail, new", true), (3, "Save As", false)]);
        assert_eq!((prompt.number("step"), prompt.text("doing")), (3, "1 2"));
        assert_eq!(prompt.verdicts, ["no effect", "refused"]);
        assert_eq!(prompt.picture, Some((1280, 800)));
        assert_eq!(prompt.returned.as_ref().unwrap().1, ["a9 link \"Terms\""]);
        let shown: Vec<_> = prompt
            .lines
            .iter()
            .map(|line| format!("{:?} {} {} {}", line.id, line.role, line.name, line.is_away))
            .collect();
        assert_eq!(shown[3], "Some(\"b17\") button Send false");
        assert!(
            shown.contains(&"Some(\"b40\") link Privacy true".to_owned()),
            "{shown:?}"
        );
        assert!(
            shown.contains(&"Some(\"b50\") button Top true".to_owned()),
            "{shown:?}"
        );
        assert!(prompt.says("privacy") && prompt.says("Terms") && !prompt.says("gone"));
    }
}
