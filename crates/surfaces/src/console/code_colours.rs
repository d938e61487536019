//! Colours of programming languages: marks around the words of a line of code, which a painter turns
//! into colours. One table says what comments, texts and keywords look like; nothing is parsed.

use super::paint::{ASIDE, KEYWORD, NUMBER, QUOTED};

/// The signs and words of a language.
struct Language {
    /// Its names after a fence, and the extensions of its files.
    names: &'static str,
    keywords: &'static str,
    /// Beginnings of comments that end with the line.
    line_comments: &'static [&'static str],
    block_comment: Option<[&'static str; 2]>,
    /// The beginnings and ends of texts; those of three characters may have several lines.
    texts: &'static [[&'static str; 2]],
}

const C_COMMENT: Option<[&str; 2]> = Some(["/*", "*/"]);
const DOUBLE: [&str; 2] = ["\"", "\""];
const SINGLE: [&str; 2] = ["'", "'"];
const BACKTICK: [&str; 2] = ["`", "`"];
const LONG: [&str; 2] = ["\"\"\"", "\"\"\""];

const fn language(
    names: &'static str,
    keywords: &'static str,
    line_comments: &'static [&'static str],
    block_comment: Option<[&'static str; 2]>,
    texts: &'static [[&'static str; 2]],
) -> Language {
    Language {
        names,
        keywords,
        line_comments,
        block_comment,
        texts,
    }
}

#[rustfmt::skip]
const LANGUAGES: [Language; 17] = [
    language("rust rs", "as async await box break const continue crate dyn else enum extern false fn for if impl in let loop match mod move mut pub ref return self Self static struct super trait true type unsafe use where while", &["//"], C_COMMENT, &[["'\"'", ""], ["'\\\"'", ""], DOUBLE]),
    language("python py pyi", "False None True and as assert async await break class continue def del elif else except finally for from global if import in is lambda match nonlocal not or pass raise return self try while with yield", &["#"], None, &[LONG, ["'''", "'''"], DOUBLE, SINGLE]),
    language("javascript js jsx mjs cjs typescript ts tsx", "any as async await boolean break case catch class const continue default delete do else enum export extends false finally for from function if implements import in instanceof interface let new null number of return static string super switch this throw true try type typeof undefined var void while yield", &["//"], C_COMMENT, &[DOUBLE, SINGLE, BACKTICK]),
    language("go golang", "any bool break case chan const continue default defer else error fallthrough false for func go goto if import int interface iota map nil package range return select string struct switch true type var", &["//"], C_COMMENT, &[DOUBLE, SINGLE, BACKTICK]),
    language("c h cpp c++ cc cxx hpp hh", "auto bool break case catch char class const constexpr continue default delete do double else enum explicit extern false float for friend goto if inline int long namespace new nullptr operator private protected public return short signed sizeof static struct switch template this throw true try typedef typename union unsigned using virtual void volatile while", &["//"], C_COMMENT, &[DOUBLE, SINGLE]),
    language("java", "abstract boolean break byte case catch char class const continue default do double else enum extends false final finally float for if implements import instanceof int interface long new null package private protected public record return short static super switch synchronized this throw throws true try var void while", &["//"], C_COMMENT, &[LONG, DOUBLE, SINGLE]),
    language("csharp cs kotlin kt kts swift scala", "abstract as async await bool break case catch class const data default do else enum extension false final for foreach fun func get guard if import in int init interface internal is let namespace new nil null object out override private protected public return sealed self set static string struct super switch this throw trait true try using val var void when where while", &["//"], C_COMMENT, &[LONG, DOUBLE, SINGLE]),
    language("ruby rb", "alias and begin break case class def do else elsif end ensure false for if in module next nil not or raise redo require rescue retry return self super then true undef unless until when while yield", &["#"], None, &[DOUBLE, SINGLE]),
    language("php", "abstract as break case catch class const continue default do echo else elseif extends false final fn for foreach function if implements interface match namespace new null private protected public return static switch this throw trait true try use var while", &["//", "#"], C_COMMENT, &[DOUBLE, SINGLE]),
    language("shell sh bash zsh console fish", "case cd do done echo elif else esac exit export fi for function if in local read return set shift source then trap unset until while", &["#"], None, &[DOUBLE, SINGLE]),
    language("sql", "add all alter and as asc begin between by case commit create cross default delete desc distinct drop else end exists foreign from full group having if in index inner insert into is join key left like limit not null offset on or order outer primary references right rollback select set table then union unique update values view when where with", &["--"], C_COMMENT, &[SINGLE, DOUBLE]),
    language("toml ini cfg conf", "false true", &["#", ";"], None, &[LONG, DOUBLE, SINGLE]),
    language("yaml yml", "false no null true yes", &["#"], None, &[DOUBLE, SINGLE]),
    language("json json5 jsonc", "false null true", &["//"], None, &[DOUBLE]),
    language("css scss less", "and from important media not only to", &["//"], C_COMMENT, &[DOUBLE, SINGLE]),
    language("html xml svg vue", "", &[], Some(["<!--", "-->"]), &[DOUBLE]),
    language("lua", "and break do else elseif end false for function goto if in local nil not or repeat return then true until while", &["--"], None, &[DOUBLE, SINGLE]),
];

/// The colours of a text in one language, line after line.
#[derive(Debug, Default)]
pub(super) struct CodeColours {
    /// The number of the language in the table.
    language: usize,
    /// The end of the comment or the text that goes on in the next line, and its mark.
    inside: Option<(&'static str, char)>,
}

impl CodeColours {
    /// Returns the colours of a language, by its name after a fence.
    pub(super) fn named(name: &str) -> Option<Self> {
        let name = name.to_ascii_lowercase();
        let is_named = |language: &Language| language.names.split(' ').any(|known| known == name);
        let language = LANGUAGES.iter().position(is_named)?;
        Some(Self {
            language,
            inside: None,
        })
    }

    /// Returns the colours of a file.
    pub(super) fn of_file(path: &str) -> Option<Self> {
        let name = path.trim_end().rsplit('/').next()?;
        Self::named(name.rsplit_once('.')?.1)
    }

    /// Forgets what the lines before have begun.
    pub(super) fn restart(&mut self) {
        self.inside = None;
    }

    /// Returns a line with marks around its words.
    pub(super) fn marked(&mut self, line: &str) -> String {
        let mut marked = String::with_capacity(line.len() + 16);
        let mut rest = line;
        let mut is_within_word = false;
        while let Some(first) = rest.chars().next() {
            let (length, mark) = self.next(rest, first, is_within_word);
            let (word, after) = rest.split_at(length);
            marked.extend(mark);
            marked.push_str(word);
            marked.extend(mark);
            is_within_word = mark.is_none() && is_of_word(first);
            rest = after;
        }
        marked
    }

    /// Returns the length of what stands at the beginning of a text that is not empty, and its mark.
    fn next(&mut self, text: &str, first: char, is_within_word: bool) -> (usize, Option<char>) {
        if let Some((end, mark)) = self.inside {
            let length = end_of(text, end);
            if length.is_some() {
                self.inside = None;
            }
            return (length.unwrap_or(text.len()), Some(mark));
        }
        let language = &LANGUAGES[self.language];
        let begins = |sign: &&str| text.starts_with(*sign);
        if language.line_comments.iter().any(begins) && !is_within_word {
            return (text.len(), Some(ASIDE));
        }
        let block = language.block_comment.iter().map(|ends| (ends, ASIDE));
        let texts = language.texts.iter().map(|ends| (ends, QUOTED));
        if let Some(([begin, end], mark)) = block.chain(texts).find(|(ends, _)| begins(&ends[0])) {
            let length = end_of(&text[begin.len()..], end);
            if length.is_none() && (mark == ASIDE || begin.len() == 3 || *begin == "`") {
                self.inside = Some((end, mark));
            }
            let length = length.map_or(text.len(), |length| begin.len() + length);
            return (length, Some(mark));
        }
        if !is_of_word(first) {
            return (first.len_utf8(), None);
        }
        let end = text.find(|c| !is_of_word(c)).unwrap_or(text.len());
        let word = &text[..end];
        let is_sql = language.names == "sql";
        let is_word = |known: &str| known == word || (is_sql && known.eq_ignore_ascii_case(word));
        if first.is_ascii_digit() {
            (end, Some(NUMBER))
        } else if language.keywords.split(' ').any(is_word) {
            (end, Some(KEYWORD))
        } else {
            (end, None)
        }
    }
}

fn is_of_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Returns the length of a text up to its end mark and with it; what a backslash is before does not
/// count.
fn end_of(text: &str, end: &str) -> Option<usize> {
    let mut from = 0;
    loop {
        let at = from + text[from..].find(end)?;
        let before = text[..at].bytes().rev().take_while(|byte| *byte == b'\\');
        if end.is_empty() || before.count() % 2 == 0 {
            return Some(at + end.len());
        }
        from = at + end.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_marked_and_nothing_else_changes() {
        let marks = [(KEYWORD, 'k'), (QUOTED, 's'), (NUMBER, 'n'), (ASIDE, 'c')];
        for (name, text, shown) in [
            ("rust", "let x = 1; // a\"", "kletk x = n1n; c// a\"c"),
            (
                "rs",
                "'a' '\"' x\"b\\\"c\" /* y\nz */ fn",
                "'a' s'\"'s xs\"b\\\"c\"s c/* yc\ncz */c kfnk",
            ),
            (
                "py",
                "def f(): \"\"\"a\nb\"\"\" # c",
                "kdefk f(): s\"\"\"as\nsb\"\"\"s c# cc",
            ),
            ("SQL", "SELECT 'it' -- x", "kSELECTk s'it's c-- xc"),
            ("js", "`a\n${b}` 12px", "s`as\ns${b}`s n12pxn"),
            ("yaml", "a: \"b\nc: true", "a: s\"bs\nc: ktruek"),
            ("sh", "a#b 'x", "a#b s'xs"),
        ] {
            let mut colours = CodeColours::named(name).unwrap();
            let lines = text.lines().map(|line| colours.marked(line));
            let mut words = lines.collect::<Vec<_>>().join("\n");
            for (mark, letter) in marks {
                words = words.replace(mark, &letter.to_string());
            }
            assert_eq!(words, shown);
        }
        assert!(CodeColours::of_file("a/b.rs").is_some() && CodeColours::of_file("rs").is_none());
        for language in LANGUAGES {
            let name = language.names.split(' ').next().unwrap();
            for odd in [
                "",
                "\"",
                "'\\",
                "\\\"",
                "日本\"語\\",
                "/*",
                "<!--",
                "\"\"\"\"",
                "1\u{301}",
            ] {
                let mut colours = CodeColours::named(name).unwrap();
                let marked = colours.marked(odd) + &colours.marked(odd);
                let plain = marked.replace(|c| marks.iter().any(|(mark, _)| *mark == c), "");
                assert_eq!(plain, odd.repeat(2), "{name}");
            }
        }
    }
}
