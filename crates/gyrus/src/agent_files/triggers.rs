//! The triggers of an agent file, each with the mistakes that it may have.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use gyrus_runtime::{
    agents::Agents,
    triggers::{
        Comparison, Condition, CronError, FileGlobs, MAX_CONDITIONS, MAX_GLOBS, MAX_TRIGGERS,
        MissedPolicy, PAUSE_AFTER, SETTLE, TriggerConfig, TriggerSource,
    },
};
use jiff::tz::TimeZone;
use serde_json::Value;

use gyrus_text::{Yaml, YamlNode};

use super::{
    agent_file::FileTrigger,
    fields::{FieldMap, Fields},
};

/// The keys that every trigger may have, and the keys of each kind, of which the first names it.
const COMMON: [&str; 3] = ["when", "wakes", "pause-after"];
const CRON: [&str; 3] = ["cron", "zone", "missed"];
const FILES: [&str; 4] = ["files", "match", "settle", "missed"];
const CLIPBOARD: [&str; 1] = ["clipboard"];
const WEBHOOK: [&str; 1] = ["webhook"];

/// The keys of a condition beside `path`.
const COMPARISONS: [&str; 5] = ["equals", "matches", "above", "below", "changed"];

/// Bounds of the time to settle.
const SETTLES: std::ops::RangeInclusive<Duration> =
    Duration::from_millis(100)..=Duration::from_secs(60 * 60);

impl Fields {
    pub(super) fn triggers(
        &mut self,
        root: &FieldMap,
        workdir: Option<&Path>,
        person: Option<&Path>,
    ) -> Vec<FileTrigger> {
        let Some((line, node)) = root.get("triggers") else {
            return Vec::new();
        };
        let described = self.map(node, "`triggers`");
        if described.len() > MAX_TRIGGERS {
            self.mistake(line, format!("there are more than {MAX_TRIGGERS} triggers"));
            return Vec::new();
        }
        let mut triggers = Vec::new();
        for (line, name, node) in described {
            if Agents::check_name(&name).is_err() {
                let reason = "1 to 40 of a-z, 0-9 and single dashes";
                self.mistake(
                    line,
                    format!("invalid name `{name}` of a trigger: {reason}"),
                );
            }
            let fields = self.map(node, &format!("trigger `{name}`"));
            let settings = FieldMap { line, fields };
            triggers.extend(self.trigger(name, &settings, workdir, person));
        }
        triggers
    }

    fn trigger(
        &mut self,
        name: String,
        settings: &FieldMap,
        workdir: Option<&Path>,
        person: Option<&Path>,
    ) -> Option<FileTrigger> {
        let kinds: [&[&str]; 4] = [&CRON, &FILES, &CLIPBOARD, &WEBHOOK];
        let named = kinds
            .into_iter()
            .filter(|kind| settings.get(kind[0]).is_some());
        let named: Vec<&[&str]> = named.collect();
        let [kind] = named[..] else {
            let message = "a trigger has one of `cron`, `files`, `clipboard` and `webhook`";
            self.mistake(settings.line, message);
            return None;
        };
        self.only(settings, &[kind, &COMMON].concat());
        let secret = (kind == WEBHOOK).then(|| self.secret(settings));
        let source = match kind[0] {
            "cron" => self.cron(settings),
            "files" => self.files(settings, workdir, person),
            "clipboard" => self.clipboard(settings),
            _ => Some(TriggerSource::Webhook { secret: None }),
        };
        let when = self.conditions(settings);
        let wakes = self.count(settings, "wakes");
        let pause_after = self.count(settings, "pause-after");
        let pause_after = pause_after.map(|count| u32::try_from(count).unwrap_or(u32::MAX));
        let config = TriggerConfig {
            when,
            wakes,
            pause_after: pause_after.unwrap_or(PAUSE_AFTER),
            ..TriggerConfig::new(name, source?)
        };
        Some(FileTrigger {
            config,
            secret: secret.flatten(),
        })
    }

    fn cron(&mut self, settings: &FieldMap) -> Option<TriggerSource> {
        let (line, text) = self.text(settings, "cron")?;
        let schedule = text.parse();
        let schedule = schedule.map_err(|error: CronError| self.mistake(line, error.to_string()));
        let zone = self.read(settings, "zone", TimeZone::UTC, |name| {
            let unknown =
                |_| format!("there is no time zone `{name}` (write it like Europe/Berlin)");
            TimeZone::get(name).map_err(unknown)
        });
        let missed = self.read(
            settings,
            "missed",
            MissedPolicy::default(),
            |word| match word {
                "skip" => Ok(MissedPolicy::Skip),
                "once" => Ok(MissedPolicy::Once),
                "all" => Ok(MissedPolicy::All),
                _ => Err("possible values: skip, once, all"),
            },
        );
        Some(TriggerSource::Cron {
            schedule: schedule.ok()?,
            zone,
            missed,
        })
    }

    fn files(
        &mut self,
        settings: &FieldMap,
        workdir: Option<&Path>,
        person: Option<&Path>,
    ) -> Option<TriggerSource> {
        let (_, given) = self.text(settings, "files")?;
        let folder = match (given.strip_prefix("~/"), person) {
            (Some(rest), Some(person)) => person.join(rest),
            // An absolute path stays as it is.
            _ => workdir?.join(&given),
        };
        let globs = self.globs(settings);
        let settle = self.read(settings, "settle", SETTLE, |text| {
            let settle = gyrus_text::parse_duration(text)?;
            let is_fit = SETTLES.contains(&settle);
            is_fit
                .then_some(settle)
                .ok_or("it must be 100ms to 1h".to_owned())
        });
        let missed = self.read(settings, "missed", false, |word| match word {
            "skip" | "once" => Ok(word == "once"),
            _ => Err("for files it is skip or once"),
        });
        // Without `.` and `..`, so that names are those that a person sees.
        let folder: PathBuf = folder.components().collect();
        Some(TriggerSource::Files {
            folder,
            globs,
            settle,
            missed,
        })
    }

    fn clipboard(&mut self, settings: &FieldMap) -> Option<TriggerSource> {
        let (line, text) = self.text(settings, "clipboard")?;
        if text != "true" {
            self.mistake(line, "invalid `clipboard`: it is true");
        }
        if settings.get("when").is_none() {
            // What does not pass is not stored.
            self.mistake(
                line,
                "`when` is missing: a copied text may be a password; say which ones count",
            );
        }
        Some(TriggerSource::Clipboard)
    }

    fn globs(&mut self, settings: &FieldMap) -> FileGlobs {
        let patterns = self.texts(settings, "match", "patterns of files");
        if patterns.len() > MAX_GLOBS {
            let message = format!("there are more than {MAX_GLOBS} patterns");
            self.mistake(patterns[0].0, message);
            return FileGlobs::default();
        }
        let (lines, patterns): (Vec<_>, Vec<_>) = patterns.into_iter().unzip();
        FileGlobs::new(patterns).unwrap_or_else(|(number, error)| {
            let line = lines.get(number).copied().unwrap_or(settings.line);
            self.mistake(line, format!("invalid `match`: {error}"));
            FileGlobs::default()
        })
    }

    /// Returns the name of the variable with the secret of a webhook.
    fn secret(&mut self, settings: &FieldMap) -> Option<String> {
        // It may be the secret itself, so it is not repeated.
        self.read(settings, "webhook", None, |name| {
            let wrong = "it names the variable with the secret, like BUILD_HOOK (the secret itself \
                         stands in no agent file)";
            is_variable(name)
                .then(|| Some(name.to_owned()))
                .ok_or(wrong)
        })
    }

    fn conditions(&mut self, settings: &FieldMap) -> Vec<Condition> {
        let Some((line, node)) = settings.get("when") else {
            return Vec::new();
        };
        let items = match node.value {
            Yaml::List(items) => items,
            Yaml::Map(_) => vec![node],
            Yaml::Text(..) => {
                self.mistake(line, "invalid `when`: it must be a list of conditions");
                return Vec::new();
            }
        };
        if items.len() > MAX_CONDITIONS {
            let message = format!("there are more than {MAX_CONDITIONS} conditions");
            self.mistake(line, message);
            return Vec::new();
        }
        items
            .into_iter()
            .filter_map(|item| self.condition(item))
            .collect()
    }

    fn condition(&mut self, node: YamlNode) -> Option<Condition> {
        let line = node.line;
        let known = [&["path"], &COMPARISONS[..]].concat();
        let settings = self.settings(node, "condition", &known);
        let path = self.text(&settings, "path");
        if path.is_none() && settings.get("path").is_none() {
            let message = "`path` is missing: the place to compare, like /build/state";
            self.mistake(line, message);
        }
        let named = COMPARISONS
            .into_iter()
            .filter(|key| settings.get(key).is_some());
        let named: Vec<&str> = named.collect();
        let [key] = named[..] else {
            let message = format!("a condition has one of {}", COMPARISONS.join(", "));
            self.mistake(line, message);
            return None;
        };
        let (key_line, node) = settings.get(key)?;
        let Yaml::Text(text, is_plain) = node.value else {
            self.mistake(
                key_line,
                format!("invalid `{key}`: it is not a single value"),
            );
            return None;
        };
        let comparison = match key {
            "equals" => Ok(Comparison::Equals(scalar(text, is_plain))),
            "matches" => Comparison::matches(&text).map_err(|error| error.to_string()),
            "changed" if text == "true" => Ok(Comparison::Changed),
            "changed" => Err("invalid `changed`: it is true".to_owned()),
            _ => match text.parse::<f64>() {
                Ok(number) if number.is_finite() && key == "above" => Ok(Comparison::Above(number)),
                Ok(number) if number.is_finite() => Ok(Comparison::Below(number)),
                _ => Err(format!("invalid `{key}`: it is not a number")),
            },
        };
        let condition = match (comparison, path) {
            (Ok(comparison), Some((_, path))) => {
                Condition::new(&path, comparison).map_err(|error| error.to_string())
            }
            (Ok(_), None) => return None,
            (Err(error), _) => Err(error),
        };
        condition
            .map_err(|error| self.mistake(key_line, error))
            .ok()
    }

    /// Returns a whole number of 1 or more.
    fn count(&mut self, settings: &FieldMap, key: &str) -> Option<u64> {
        self.read(settings, key, None, |text| {
            let count = text.parse().ok().filter(|count| *count >= 1);
            count
                .map(Some)
                .ok_or("it is not a whole number of 1 or more")
        })
    }
}

pub(crate) fn is_variable(name: &str) -> bool {
    let is_known = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
    (1..=100).contains(&name.len())
        && name.bytes().all(is_known)
        && !name.as_bytes()[0].is_ascii_digit()
}

/// Returns a scalar as a value: a number, a switch or null only if it stands without quotes.
fn scalar(text: String, is_plain: bool) -> Value {
    if is_plain {
        match &*text {
            "true" => return Value::Bool(true),
            "false" => return Value::Bool(false),
            "null" | "~" | "" => return Value::Null,
            _ => {}
        }
        if let Ok(Value::Number(number)) = serde_json::from_str(&text) {
            return Value::Number(number);
        }
    }
    Value::String(text)
}
