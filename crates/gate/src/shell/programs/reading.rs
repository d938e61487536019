//! Programs that only read, as a table. What writes is left out of a program's options, or named
//! as such; a program that is lenient has no option that does harm.

use gyrus_contract::Does;

use super::{
    Call,
    options::{Parsed, Spec},
};
use crate::shell::{reader::Reader, words::Word};

/// What the words are that are no options.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operands {
    /// Files to read.
    Files,
    /// Files or folders to read; the folder it runs in if there are none.
    Here,
    /// Text.
    Text,
    /// A pattern or a program first, unless an option gave it; then files.
    Pattern,
    /// None at all.
    None,
    /// One file to read; a second would be written.
    OneFile,
    /// A format that begins with a plus sign; anything else sets the clock.
    Format,
}

struct Program {
    names: &'static str,
    spec: Spec,
    operands: Operands,
    /// Options whose value is a file that is written.
    writes: &'static [&'static str],
}

const fn lenient(names: &'static str, takes: (&'static str, &'static str), o: Operands) -> Program {
    Program {
        names,
        spec: Spec::lenient(takes.0, takes.1),
        operands: o,
        writes: &[],
    }
}

const fn strict(names: &'static str, has: (&'static str, &'static str), o: Operands) -> Program {
    Program {
        names,
        spec: Spec::strict(has.0, has.1),
        operands: o,
        writes: &[],
    }
}

const fn apart(names: &'static str, has: (&'static str, &'static str), o: Operands) -> Program {
    Program {
        names,
        spec: Spec::apart(has.0, has.1),
        operands: o,
        writes: &[],
    }
}

const fn writing(program: Program, writes: &'static [&'static str]) -> Program {
    Program { writes, ..program }
}

use Operands::{Files, Format, Here, None as Nothing, OneFile, Pattern, Text};

const PROGRAMS: &[Program] = &[
    lenient("cat tac rev nl expand unexpand fold", ("w:t:", ""), Files),
    lenient("head tail", ("n:c:s:", "lines= bytes= pid="), Files),
    lenient(
        "wc cksum sum md5sum sha1sum sha224sum sha256sum sha384sum sha512sum b2sum",
        ("", ""),
        Files,
    ),
    lenient(
        "ls dir vdir",
        ("I:w:T:", "ignore= hide= width= block-size="),
        Here,
    ),
    lenient(
        "stat readlink realpath",
        ("c:t:", "format= printf= relative-to="),
        Files,
    ),
    lenient("basename dirname", ("s:", "suffix="), Text),
    lenient(
        "du",
        ("d:t:B:X:", "max-depth= exclude= threshold= block-size="),
        Here,
    ),
    lenient("df", ("B:t:x:", "type= exclude-type= block-size="), Text),
    lenient(
        "cut paste join comm cmp tsort",
        (
            "d:f:c:b:t:o:j:1:2:a:v:e:i:n:",
            "delimiter= fields= characters=",
        ),
        Files,
    ),
    lenient(
        "tr seq expr factor numfmt echo true false : sleep arch nproc yes sync",
        ("", ""),
        Text,
    ),
    lenient("od hexdump hd", ("A:j:N:t:w:s:n:e:", ""), Files),
    lenient(
        "column fmt pr",
        (
            "s:o:N:t:c:w:l:H:J:",
            "separator= output-separator= table-columns=",
        ),
        Files,
    ),
    lenient(
        "diff",
        (
            "U:C:x:X:I:W:F:",
            "exclude= label= unified= context= width= color=",
        ),
        Files,
    ),
    lenient(
        "id groups whoami uname free uptime lscpu printenv logname users",
        ("", ""),
        Text,
    ),
    lenient("ps", ("o:u:p:C:t:g:G:U:", "sort= pid= user="), Text),
    lenient("which", ("", ""), Text),
    lenient(
        "grep egrep fgrep",
        (
            "e:f:A:B:C:m:d:D:",
            "regexp= file= after-context= before-context= context= max-count= include= exclude= exclude-dir= color= colour=",
        ),
        Pattern,
    ),
    lenient("jq", ("", "tab indent="), Pattern),
    strict(
        "pgrep pidof",
        ("flaxncvoP:u:U:s:t:g:", "full list-full list-name"),
        Text,
    ),
    strict("lsblk", ("abdfilmnoprtSJ", "all json fs"), Text),
    strict(
        "base64 base32",
        ("diw:", "decode ignore-garbage wrap="),
        Files,
    ),
    strict(
        "strings",
        ("afn:t:e:", "all bytes= radix= encoding="),
        Files,
    ),
    strict(
        "file",
        (
            "bikLNr0hE",
            "brief mime mime-type mime-encoding keep-going dereference no-dereference raw extension",
        ),
        Files,
    ),
    strict(
        "date",
        (
            "d:uRI;r:",
            "date= utc universal rfc-email iso-8601? rfc-3339= reference=",
        ),
        Format,
    ),
    strict("hostname tty cal locale", ("", ""), Nothing),
    strict("bc", ("lqsw", "mathlib quiet standard warn"), Files),
    strict("less more", ("NRSFXiInMe#", ""), Files),
    strict("getconf", ("a", ""), Text),
    writing(
        strict(
            "sort",
            (
                "bdfghiMnRrsuVzmcCk:t:S:o:",
                "ignore-leading-blanks dictionary-order ignore-case general-numeric-sort human-numeric-sort month-sort numeric-sort reverse unique version-sort stable zero-terminated merge check? key= field-separator= buffer-size= parallel= output= debug",
            ),
            Files,
        ),
        &["o", "output"],
    ),
    writing(
        strict(
            "shuf",
            (
                "en:i:rzo:",
                "echo head-count= input-range= repeat zero-terminated output=",
            ),
            Files,
        ),
        &["o", "output"],
    ),
    writing(
        apart(
            "tree",
            (
                "adfispughDFtrcvxlCnJXNQL:I:P:o:",
                "noreport dirsfirst filelimit= prune du si gitignore charset= matchdirs ignore-case",
            ),
            Here,
        ),
        &["o"],
    ),
    writing(
        strict(
            "iconv",
            ("f:t:lcso:", "from-code= to-code= list output="),
            Files,
        ),
        &["o", "output"],
    ),
    strict(
        "uniq",
        (
            "cdDuizf:s:w:",
            "count repeated unique ignore-case skip-fields= skip-chars= check-chars= all-repeated? group? zero-terminated",
        ),
        OneFile,
    ),
    apart("xxd", ("abeEuiprc:g:l:s:", ""), OneFile),
    strict("zcat bzcat xzcat lzcat zstdcat", ("fq", ""), Files),
    strict(
        "rg",
        (
            "incvwlosSFxLHhNaUPpqu.0bIe:f:g:t:T:A:B:C:m:j:M:r:E:d:",
            "ignore-case line-number no-line-number count count-matches invert-match word-regexp files-with-matches files-without-match only-matching case-sensitive smart-case fixed-strings line-regexp follow with-filename no-filename heading no-heading text multiline pcre2 pretty quiet unrestricted hidden null files no-ignore no-ignore-vcs json stats trim vimgrep column type-list no-messages no-config passthru multiline-dotall glob-case-insensitive one-file-system regexp= file= glob= iglob= type= type-not= after-context= before-context= context= max-count= max-depth= max-columns= threads= replace= encoding= sort= sortr= color= colors= max-filesize= engine= context-separator= debug",
        ),
        Pattern,
    ),
    strict(
        "fd fdfind",
        (
            "HIgisFapL0lqut:e:E:d:c:S:1j:",
            "hidden no-ignore glob ignore-case case-sensitive fixed-strings absolute-path full-path follow print0 list-details quiet type= extension= exclude= max-depth= min-depth= exact-depth= color= size= changed-within= changed-before= max-results= strip-cwd-prefix unrestricted",
        ),
        Pattern,
    ),
    strict(
        "nm size",
        (
            "aACDgnrSu",
            "all demangle? dynamic extern-only numeric-sort print-size",
        ),
        Files,
    ),
    strict(
        "readelf",
        (
            "ahlSsedrWnVA",
            "all file-header headers sections symbols dynamic wide",
        ),
        Files,
    ),
    strict("zipinfo", ("12slmvhtzT", ""), Files),
    strict("lsof", ("niPp:u:a", ""), Text),
    strict(
        "dpkg dpkg-query",
        (
            "lLsSW",
            "list listfiles status search print-architecture show",
        ),
        Text,
    ),
    strict("tput", ("", ""), Text),
];

/// Reads the call if the program is one of the table's.
pub(super) fn read(reader: &mut Reader<'_>, call: &Call<'_>) -> bool {
    let is = |program: &&Program| program.names.split(' ').any(|name| name == call.name);
    let Some(program) = PROGRAMS.iter().find(is) else {
        return false;
    };
    if asks_about_itself(call) {
        return true;
    }
    if let Some(why) = tells_more(call) {
        reader.fact(Does::UsesCredentials, call.part, why);
    }
    match program.spec.parse(call.args) {
        Ok(_) if call.name == "jq" && other_programs(call) => {
            reader.runs_code(call.part, "it runs a program from another file");
        }
        Ok(parsed) if call.name == "less" && plus(&parsed.operands) => {
            reader.hides(call.part, "it is given commands of its own");
        }
        Ok(parsed) => operands(reader, call, program, &parsed),
        Err(why) => reader.hides(call.part, why),
    }
    true
}

/// `--help` or `--version`, and nothing else.
pub(super) fn asks_about_itself(call: &Call<'_>) -> bool {
    let [only] = call.args else {
        return false;
    };
    matches!(only.literal().as_deref(), Some("--help" | "--version"))
}

/// `ps e` shows the variables of other programs.
fn tells_more(call: &Call<'_>) -> Option<&'static str> {
    let shows = |word: &Word| {
        let text = word.prefix();
        !text.starts_with('-') && text.contains(['e', 'E'])
            || text.contains("environ")
            || word.literal().is_none()
    };
    let columns = |at: usize| {
        let before = at.checked_sub(1).and_then(|at| call.args[at].literal());
        let plain = |word: &Word| word.literal().is_some_and(|text| !text.contains("environ"));
        before.as_deref() == Some("-o") && plain(&call.args[at])
            || before.as_deref() == Some("-p") && call.args[at].is_number()
    };
    let mut args = call.args.iter().enumerate();
    let ps = call.name == "ps" && args.any(|(at, word)| shows(word) && !columns(at));
    ps.then_some("it may show the variables of other programs")
}

fn other_programs(call: &Call<'_>) -> bool {
    call.args.iter().any(|word| {
        let text = word.prefix();
        let option = text.starts_with('-') && !text.starts_with("--") && text.contains(['f', 'L']);
        option || text.contains("include ") || text.contains("import ") || text == "--from-file"
    })
}

fn plus(words: &[Word]) -> bool {
    words.iter().any(|word| word.may_begin_with('+'))
}

fn operands(reader: &mut Reader<'_>, call: &Call<'_>, program: &Program, parsed: &Parsed) {
    for value in parsed.values(program.writes) {
        reader.writes(value, call.part);
    }
    if program.operands != Text && program.names.contains("grep") {
        for file in parsed.values(&["f", "file"]) {
            reader.reads_word(file, call.part);
        }
    }
    let words = parsed.operands.as_slice();
    match program.operands {
        Files => files(reader, call, words),
        Here if words.is_empty() => reader.reads(".", call.part),
        Here => files(reader, call, words),
        Text => {}
        Nothing if words.is_empty() => {}
        Nothing => reader.hides(call.part, "it may set what it is given"),
        Pattern => pattern(reader, call, parsed),
        OneFile => match words {
            [] => {}
            [one] if one.is_one() && is_last(call, program) => files(reader, call, words),
            [input, output] if input.is_one() && output.is_one() => {
                reader.reads_word(input, call.part);
                reader.writes(output, call.part);
            }
            _ => reader.hides(call.part, "one of its arguments would be written"),
        },
        Format => {
            let format = |word: &Word| word.prefix().starts_with('+') && word.is_one();
            if !words.iter().all(format) {
                reader.hides(call.part, "it may set the clock");
            }
        }
    }
}

fn files(reader: &mut Reader<'_>, call: &Call<'_>, words: &[Word]) {
    for word in words {
        reader.reads_word(word, call.part);
    }
}

/// Whether the operand is the last word: some programs take no options after it, so that what looks
/// like one would be the file that is written.
fn is_last(call: &Call<'_>, program: &Program) -> bool {
    let before = call
        .args
        .split_last()
        .map_or(call.args, |(_, before)| before);
    let parsed = program.spec.parse(before);
    parsed.is_ok_and(|parsed| parsed.operands.is_empty())
}

fn pattern(reader: &mut Reader<'_>, call: &Call<'_>, parsed: &Parsed) {
    let given = parsed.has(&["e", "f", "regexp", "file", "files", "from-file"]);
    let files = match (given, parsed.operands.as_slice()) {
        (true, all) => all,
        (false, [_, files @ ..]) => files,
        (false, []) => &[],
    };
    let deep = parsed.has(&["r", "R", "recursive"]) || matches!(call.name, "rg" | "fd" | "fdfind");
    if files.is_empty() && deep {
        reader.reads(".", call.part);
    }
    self::files(reader, call, files);
}

#[cfg(test)]
#[test]
fn no_letter_is_listed_twice() {
    for program in PROGRAMS {
        assert_eq!(program.spec.listed_twice(), None, "{}", program.names);
    }
}
