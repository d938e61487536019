//! Live output: the reply of a model while it arrives. It is never stored, and never shown before
//! it is redacted: a secret may arrive in pieces, so text is held back until nothing that follows
//! can change how it is read.

use std::sync::Arc;

use gyrus_contract::{Delta, EffectId, Purpose, RunId};

use crate::{
    redact::{Redactor, TextBefore},
    typed::SecretFields,
};

/// Receives the replies of the models of all runs of a process. Called often and must not block.
pub type Live = Arc<dyn Fn(LiveEvent<'_>) + Send + Sync>;

/// A piece of a model's reply, with its run and effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveEvent<'a> {
    /// The run that asked.
    pub run: RunId,
    /// The effect in that run.
    pub effect: &'a EffectId,
    /// The purpose of the question.
    pub purpose: Purpose,
    pub said: LivePiece,
}

/// A piece of a reply, without secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LivePiece {
    /// The question was sent; nothing has been received yet.
    Asked,
    /// Text: whole lines, sentences of a long one, or words of prose.
    Text(String),
    /// Thinking, in the same units.
    Thinking(String),
    /// A call of a tool begins.
    Tool(String),
    /// The progress of a tool call.
    Progress(String),
    /// A background process has ended, by the name of the call that started it.
    ProcessEnded(String),
    /// The reply has ended, or was abandoned.
    Ended,
}

/// Length in bytes from which an unfinished line is passed on at the end of a sentence.
pub(crate) const LONG_LINE: usize = 200;

/// Number of held bytes up to which every piece is examined. More are looked at again only when
/// they are a quarter more, so that the time is proportional to the text however long it is held.
const ALWAYS_READ: usize = 1024;

/// Passes a reply on as it arrives.
pub(crate) struct Speaker<'a> {
    live: Option<&'a Live>,
    redactor: &'a Redactor,
    /// The fields in which passwords are typed. If there are any, nothing is passed on before the
    /// reply is complete.
    fields: SecretFields,
    run: RunId,
    effect: &'a EffectId,
    purpose: Purpose,
    held: String,
    /// Length of the held text at which it is examined next.
    next_look: usize,
    /// Whether the held text waits for more than the end of its line.
    holds_lines: bool,
    /// The text before the held one.
    before: TextBefore,
    /// Whether `held` is thinking.
    thinking: bool,
}

impl<'a> Speaker<'a> {
    pub(crate) fn new(
        live: Option<&'a Live>,
        redactor: &'a Redactor,
        fields: SecretFields,
        run: RunId,
        effect: &'a EffectId,
        purpose: Purpose,
    ) -> Self {
        let speaker = Self {
            live,
            redactor,
            fields,
            run,
            effect,
            purpose,
            held: String::new(),
            next_look: 0,
            holds_lines: false,
            before: TextBefore::Nothing,
            thinking: false,
        };
        speaker.say(LivePiece::Asked);
        speaker
    }

    pub(crate) fn hear(&mut self, delta: Delta) {
        if self.live.is_none() {
            return;
        }
        match delta {
            Delta::Text(text) => self.hold(&text, false),
            Delta::Thinking(text) => self.hold(&text, true),
            Delta::Tool(name) => {
                self.let_go(self.held.len());
                self.plan_look();
                self.say(LivePiece::Tool(self.redactor.redact(&name).into_owned()));
            }
        }
    }

    fn hold(&mut self, text: &str, thinking: bool) {
        if thinking != self.thinking {
            self.let_go(self.held.len());
            self.plan_look();
            self.thinking = thinking;
            self.before = TextBefore::Nothing;
        }
        self.held.push_str(text);
        // A separable part always ends with white space.
        let ends_line = text.contains('\n') && !self.holds_lines;
        let may_end = self.held.len() >= self.next_look && text.contains(['\n', ' ']);
        if (ends_line || may_end) && !self.redactor.needs_whole_text() && self.fields.is_empty() {
            self.let_go(self.redactor.separable(&self.held, LONG_LINE));
            self.plan_look();
        }
    }

    /// Decides at which length the held text is examined next.
    fn plan_look(&mut self) {
        let length = self.held.len();
        self.holds_lines = self.held.contains('\n');
        self.next_look = if length > ALWAYS_READ {
            length + length / 4
        } else {
            0
        };
    }

    fn let_go(&mut self, length: usize) {
        if length == 0 {
            return;
        }
        let rest = self.held.split_off(length);
        let text = std::mem::replace(&mut self.held, rest);
        let ends_line = text.ends_with('\n');
        let text = if self.fields.is_empty() {
            text
        } else {
            self.fields.concealed(&text, self.redactor)
        };
        let text = self.redactor.redact_after(self.before, &text).into_owned();
        self.before = if ends_line {
            TextBefore::LineEnd
        } else {
            TextBefore::Text
        };
        self.say(if self.thinking {
            LivePiece::Thinking(text)
        } else {
            LivePiece::Text(text)
        });
    }

    fn say(&self, said: LivePiece) {
        if let Some(live) = self.live {
            live(LiveEvent {
                run: self.run,
                effect: self.effect,
                purpose: self.purpose,
                said,
            });
        }
    }
}

/// Returns the shown text of a reply that arrives in these pieces.
#[cfg(feature = "fuzz")]
pub fn shown(redactor: &Redactor, pieces: &[&str]) -> String {
    let heard = Arc::new(parking_lot::Mutex::new(String::new()));
    let hearing = heard.clone();
    let live: Live = Arc::new(move |event: LiveEvent<'_>| {
        if let LivePiece::Text(text) = event.said {
            let mut heard = hearing.lock();
            heard.push_str(&text);
        }
    });
    let effect = EffectId::cycle(1);
    let none = SecretFields::default();
    let run = RunId::new();
    let mut speaker = Speaker::new(Some(&live), redactor, none, run, &effect, Purpose::Agent);
    for piece in pieces {
        speaker.hear(Delta::Text((*piece).to_owned()));
    }
    drop(speaker);
    let heard = heard.lock();
    heard.clone()
}

/// Ends the reply, however that happens.
impl Drop for Speaker<'_> {
    fn drop(&mut self) {
        self.let_go(self.held.len());
        self.say(LivePiece::Ended);
    }
}

#[cfg(test)]
mod tests {
    use parking_lot::Mutex;

    use super::*;
    use crate::redact::Secret;

    fn said(pieces: &[&str]) -> Vec<LivePiece> {
        let heard: Arc<Mutex<Vec<LivePiece>>> = Arc::default();
        let live: Live = {
            let heard = heard.clone();
            Arc::new(move |event: LiveEvent<'_>| heard.lock().push(event.said))
        };
        let secrets = vec![Secret {
            name: "KEY".to_owned(),
            value: "hunter2hunter2".to_owned(),
        }];
        let redactor = Redactor::new([7; 32], secrets);
        let effect = EffectId::cycle(1).then(1);
        let mut speaker = Speaker::new(
            Some(&live),
            &redactor,
            SecretFields::default(),
            RunId::new(),
            &effect,
            Purpose::Agent,
        );
        for piece in pieces {
            speaker.hear(Delta::Text((*piece).to_owned()));
        }
        drop(speaker);
        let heard = heard.lock();
        heard.clone()
    }

    fn text(text: &str) -> LivePiece {
        LivePiece::Text(text.to_owned())
    }

    #[test]
    fn a_secret_in_pieces_is_never_shown() {
        assert_eq!(
            said(&["first\nthe key is hunt", "er2hun", "ter2, is", " it?"]),
            [
                LivePiece::Asked,
                text("first\n"),
                text("the key is ⟦secret:KEY⟧, is it?"),
                LivePiece::Ended
            ]
        );
        let body = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7\n".repeat(6);
        let key = format!("-----BEGIN PRIVATE KEY-----\n{body}");
        let shown = said(&["see\n", &key, "-----END PRIVATE KEY-----\nthat\n"]);
        assert!(!format!("{shown:?}").contains("MIIEvQ"), "{shown:?}");
        assert_eq!(shown[1], text("see\n"));
    }

    #[test]
    fn time_is_proportional_to_the_text_however_long_it_is_held() {
        for unit in [
            "words ",
            "secret ",
            "echo ",
            "-----BEGIN A KEY-----\n",
            "x = '''\n",
        ] {
            let pieces: Vec<&str> = std::iter::repeat_n(unit, (1 << 18) / unit.len()).collect();
            let since = std::time::Instant::now();
            said(&pieces);
            // Without optimisation it takes a tenth of this; it took minutes when each piece had all
            // that was held read again.
            let took = since.elapsed();
            assert!(took.as_secs() < 20, "{unit}: {took:?}");
        }
    }

    #[test]
    fn prose_is_shown_by_words() {
        let shown = said(&["The answer is", " four, as", " `a b` says."]);
        let words = ["The answer", " is four,", " as `a b`", " says."].map(text);
        let all = [vec![LivePiece::Asked], words.into(), vec![LivePiece::Ended]].concat();
        assert_eq!(shown, all);
        // What an ordinary word gives a meaning to is not shown before it is whole.
        let shown = said(&["Log in with login bob ", "password x1y2z3w4 ", "now\n"]);
        assert_eq!(shown.len(), 3, "{shown:?}");
    }

    #[test]
    fn a_long_line_is_shown_by_sentences() {
        let sentence = "word: ".repeat(60);
        let shown = said(&[&sentence, "end. next"]);
        assert_eq!(shown[1], text(&format!("{sentence}end. ")));
        assert_eq!(shown[2], text("next"));
    }
}
