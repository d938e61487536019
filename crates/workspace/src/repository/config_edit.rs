//! Changes single settings in a configuration file, and leaves the rest as it is.

use super::{
    config::{ConfigError, GitConfig, SectionHeader, SettingName, Values},
    settings::SettingChange,
};

/// Returns the text with some settings changed.
pub(super) fn edit(text: &str, changes: &[&SettingChange]) -> Result<String, ConfigError> {
    let mut expected = GitConfig::parse(text.as_bytes())?.values();
    let mut text = text.to_owned();
    for change in changes {
        let config = GitConfig::parse(text.as_bytes())?;
        text = set(&config, &change.name, &change.after);
        expected.remove(&change.name);
        if !change.after.is_empty() {
            expected.insert(change.name.clone(), change.after.clone());
        }
    }
    if GitConfig::parse(text.as_bytes())?.values() == expected {
        Ok(text)
    } else {
        Err(ConfigError { line: 1 })
    }
}

fn set(config: &GitConfig, name: &SettingName, values: &Values) -> String {
    let text = &config.text;
    let old = config
        .settings
        .iter()
        .filter(|setting| setting.name == *name);
    // Includes the blanks before each, so that nothing of its line is left.
    let cuts = old.map(|setting| {
        let start = text[..setting.span.start]
            .trim_end_matches([' ', '\t'])
            .len();
        (start..setting.span.end, setting.header)
    });
    let cuts: Vec<_> = cuts.collect();
    let is_its = |header: &SectionHeader| {
        header.section == name.section && header.subsection == name.subsection
    };
    let (at, header) = match cuts.first() {
        Some((cut, header)) => (cut.start, Some(*header)),
        None => match config.headers.iter().rposition(is_its) {
            Some(header) => (end_of(config, header), Some(header)),
            None => (text.len(), None),
        },
    };
    let mut new: String = values
        .iter()
        .map(|value| line(&name.name, value.as_deref()))
        .collect();
    if header.is_none() && !new.is_empty() {
        new.insert_str(0, &format!("{}\n", head(name)));
    }
    if !new.is_empty() && !text[..at].is_empty() && !text[..at].ends_with('\n') {
        new.insert(0, '\n');
    }
    let mut edited = text.clone();
    // From the end, so that earlier positions stay valid.
    for (cut, _) in cuts.iter().rev() {
        edited.replace_range(cut.clone(), "");
    }
    edited.insert_str(at, &new);
    match header {
        Some(header) if values.is_empty() => without_empty_section(&edited, header),
        Some(_) | None => edited,
    }
}

/// Returns the end of the last setting under a header, or of the header itself.
fn end_of(config: &GitConfig, header: usize) -> usize {
    let last = config
        .settings
        .iter()
        .rev()
        .find(|setting| setting.header == header);
    last.map_or(config.headers[header].span.end, |setting| setting.span.end)
}

/// Returns the text without the header of an empty section.
fn without_empty_section(text: &str, header: usize) -> String {
    let Ok(config) = GitConfig::parse(text.as_bytes()) else {
        return text.to_owned();
    };
    let start = config.headers[header].span.start;
    let next = config.headers.get(header + 1);
    let end = next.map_or(text.len(), |next| next.span.start);
    let inside = &text[config.headers[header].span.end..end];
    if !inside.trim().is_empty() {
        return text.to_owned();
    }
    let mut text = text.to_owned();
    text.replace_range(start..end, "");
    text
}

fn head(name: &SettingName) -> String {
    match &name.subsection {
        None => format!("[{}]", name.section),
        Some(subsection) => {
            let escaped = subsection.replace('\\', "\\\\").replace('"', "\\\"");
            format!("[{} \"{escaped}\"]", name.section)
        }
    }
}

fn line(name: &str, value: Option<&str>) -> String {
    let Some(value) = value else {
        return format!("\t{name}\n");
    };
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@+ ".contains(c);
    if value.chars().all(plain) && value.trim() == value && !value.is_empty() {
        return format!("\t{name} = {value}\n");
    }
    let escaped = value.replace('\\', "\\\\").replace('"', "\\\"");
    let escaped = escaped
        .replace('\n', "\\n")
        .replace('\t', "\\t")
        .replace('\u{8}', "\\b");
    format!("\t{name} = \"{escaped}\"\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# mine\n[core]\n\tbare = false ; no\n\tx = \"a;b\\n\"\n[branch \"a.\\\"b\"]\n\tremote = origin\n\tmerge = refs/heads/a\n[Old.Style] one = 1\n";

    fn name(section: &str, subsection: Option<&str>, name: &str) -> SettingName {
        SettingName {
            section: section.into(),
            subsection: subsection.map(Into::into),
            name: name.into(),
        }
    }

    #[test]
    fn configuration_is_read_as_git_reads_it() {
        let values = GitConfig::parse(TEXT.as_bytes()).unwrap().values();
        let found: Vec<_> = values
            .iter()
            .map(|(name, values)| format!("{name}={:?}", values[0].as_deref().unwrap()))
            .collect();
        assert_eq!(
            found,
            [
                "branch.a.\"b.merge=\"refs/heads/a\"",
                "branch.a.\"b.remote=\"origin\"",
                "core.bare=\"false\"",
                "core.x=\"a;b\\n\"",
                "old.style.one=\"1\"",
            ]
        );
        // Blanks as git counts them: none before a value that is still empty.
        for (text, expected) in [
            ("[a]x=\\\n\t b", "b"),
            ("[a]x= \"\" b \\\n  c ", "b   c"),
            ("[a]x=\u{b}b", "\u{b}b"),
            ("[a]x=a\r\n", "a"),
            ("[a]x=\"a ; b\" ; c", "a ; b"),
        ] {
            let config = GitConfig::parse(text.as_bytes()).unwrap();
            assert_eq!(config.last("a", "x"), Some(expected), "{text:?}");
        }
        for bad in [
            "x = 1",
            "[a\nb]",
            "[a] x = \"1",
            "[a] x = \\q",
            "[a \"b] x=1",
            "[a] x # y",
            "[a]\n1x=2",
            "[a] x=\0",
            "[a]\n\u{c}x=1",
        ] {
            assert!(GitConfig::parse(bad.as_bytes()).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn only_what_is_named_changes() {
        let check = |name: SettingName, values: &[&str], expected: &str| {
            let change = SettingChange {
                name,
                before: Vec::new(),
                after: values
                    .iter()
                    .map(|value| Some((*value).to_owned()))
                    .collect(),
            };
            assert_eq!(edit(TEXT, &[&change]).unwrap(), expected, "{change:?}");
        };
        let branch = "[branch \"a.\\\"b\"]\n\tremote = origin\n\tmerge = refs/heads/a\n";
        check(
            name("core", None, "bare"),
            &["true"],
            &TEXT.replace("false ; no", "true"),
        );
        check(
            name("core", None, "y"),
            &[" # "],
            &TEXT.replace("n\"\n[b", "n\"\n\ty = \" # \"\n[b"),
        );
        check(
            name("user", None, "name"),
            &["A"],
            &(TEXT.to_owned() + "[user]\n\tname = A\n"),
        );
        check(
            name("old", Some("style"), "one"),
            &["2"],
            &TEXT.replace("] one = 1", "]\n\tone = 2"),
        );
        check(
            name("old", Some("style"), "one"),
            &[],
            &TEXT.replace("[Old.Style] one = 1\n", ""),
        );
        let gone = edit(
            TEXT,
            &[
                &SettingChange {
                    name: name("branch", Some("a.\"b"), "remote"),
                    before: Vec::new(),
                    after: Vec::new(),
                },
                &SettingChange {
                    name: name("branch", Some("a.\"b"), "merge"),
                    before: Vec::new(),
                    after: Vec::new(),
                },
            ],
        );
        assert_eq!(gone.unwrap(), TEXT.replace(branch, ""));
    }
}
