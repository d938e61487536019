//! Programs that change files, and which.

use gyrus_contract::Does;

use super::{
    Call,
    options::{Parsed, Spec},
};
use crate::shell::{reader::Reader, words::Word};

/// What becomes of the operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// All are written.
    Written,
    /// All are removed.
    Removed,
    /// The last is written from the others, which remain.
    Copied,
    /// The last is written from the others, which go.
    Moved,
    /// The last is a link to the others.
    Linked,
    /// The first says how the others are changed.
    ModeFirst,
    /// Removed beyond recall.
    Destroyed,
    /// Each is packed into a file beside it, and goes.
    Packed,
}

const WRITERS: &[(&str, Spec, Fate)] = &[
    (
        "mkdir",
        Spec::lenient("pvm:", "parents verbose mode="),
        Fate::Written,
    ),
    (
        "touch",
        Spec::lenient("acmhr:d:t:", "no-create date= reference= time="),
        Fate::Written,
    ),
    (
        "tee",
        Spec::lenient("aip", "append ignore-interrupts"),
        Fate::Written,
    ),
    (
        "truncate",
        Spec::strict("s:r:co", "size= reference= no-create"),
        Fate::Written,
    ),
    (
        "fallocate",
        Spec::strict("l:o:n", "length= offset="),
        Fate::Written,
    ),
    ("mkfifo", Spec::strict("m:", "mode="), Fate::Written),
    (
        "rm",
        Spec::lenient(
            "rRfvidI",
            "recursive force verbose dir interactive? one-file-system preserve-root? no-preserve-root",
        ),
        Fate::Removed,
    ),
    (
        "rmdir",
        Spec::lenient("pv", "parents verbose ignore-fail-on-non-empty"),
        Fate::Removed,
    ),
    ("unlink", Spec::strict("", ""), Fate::Removed),
    (
        "cp",
        Spec::strict(
            "aRrfinpuvLPHdlsTxbt:S:",
            "backup? suffix= archive recursive force interactive no-clobber preserve? update? verbose dereference no-dereference link symbolic-link no-target-directory one-file-system target-directory= parents reflink? sparse= attributes-only",
        ),
        Fate::Copied,
    ),
    (
        "install",
        Spec::strict(
            "Ddm:vpTCt:",
            "directory mode= verbose preserve-timestamps target-directory=",
        ),
        Fate::Copied,
    ),
    (
        "mv",
        Spec::strict(
            "finuvTt:",
            "force interactive no-clobber update? verbose no-target-directory target-directory=",
        ),
        Fate::Moved,
    ),
    (
        "ln",
        Spec::strict(
            "sfnvTrit:P",
            "symbolic force no-dereference verbose relative no-target-directory target-directory=",
        ),
        Fate::Linked,
    ),
    (
        "chmod",
        Spec::lenient("Rvcf", "recursive verbose changes silent quiet reference="),
        Fate::ModeFirst,
    ),
    (
        "shred",
        Spec::strict(
            "fuvzxn:s:",
            "force remove? verbose zero iterations= size= exact",
        ),
        Fate::Destroyed,
    ),
    (
        "gzip gunzip bzip2 bunzip2 xz unxz zstd unzstd lzma",
        Spec::strict(
            "cdfklnNqrtv123456789T:",
            "stdout decompress force keep list recursive test verbose quiet best fast",
        ),
        Fate::Packed,
    ),
];

pub(super) fn read(reader: &mut Reader<'_>, call: &Call<'_>) -> bool {
    let writer = WRITERS
        .iter()
        .find(|(names, ..)| names.split(' ').any(|name| name == call.name));
    if let Some((_, spec, fate)) = writer {
        if !super::reading::asks_about_itself(call) {
            fated(reader, call, spec, *fate);
        }
        return true;
    }
    match call.name {
        "dd" => dd(reader, call),
        "tar" | "bsdtar" => tar(reader, call),
        "unzip" => unzip(reader, call),
        "zip" => zip(reader, call),
        "mktemp" => mktemp(reader, call),
        "split" | "csplit" | "patch" | "cpio" | "ar" | "rename"
            if super::reading::asks_about_itself(call) => {}
        "split" | "csplit" | "patch" | "cpio" | "ar" | "rename" => {
            somewhere(reader, call);
        }
        name if name.starts_with("mkfs") => destroys_device(reader, call),
        "wipe" | "wipefs" | "fdisk" | "sfdisk" | "parted" | "mkswap" | "cryptsetup" => {
            destroys_device(reader, call);
        }
        _ => return false,
    }
    true
}

fn destroys_device(reader: &mut Reader<'_>, call: &Call<'_>) {
    reader.fact(Does::Destroys, call.part, "it overwrites what a disk holds");
    reader.fact(
        Does::ChangesSystem,
        call.part,
        "it changes the machine's disks",
    );
}

fn fated(reader: &mut Reader<'_>, call: &Call<'_>, spec: &Spec, fate: Fate) {
    // A mode such as `-x` looks like an option.
    let mode = |word: &&Word| {
        fate == Fate::ModeFirst
            && word.literal().is_some_and(|text| {
                text.starts_with('-') && text[1..].chars().all(|c| "rwxXst".contains(c))
            })
    };
    let (modes, args): (Vec<&Word>, Vec<&Word>) = call.args.iter().partition(mode);
    let args: Vec<Word> = args.into_iter().cloned().collect();
    let parsed = match spec.parse(&args) {
        Ok(parsed) => parsed,
        Err(why) => return reader.hides(call.part, why),
    };
    let operands = parsed.operands.as_slice();
    match fate {
        Fate::Written => all(reader, call, operands, Reader::writes),
        Fate::Removed => all(reader, call, operands, Reader::removes),
        Fate::ModeFirst => {
            let skip = usize::from(modes.is_empty() && !parsed.has(&["reference"]));
            all(
                reader,
                call,
                operands.get(skip..).unwrap_or_default(),
                Reader::writes,
            );
        }
        Fate::Destroyed => {
            reader.fact(Does::Destroys, call.part, "it overwrites before it deletes");
            all(reader, call, operands, Reader::removes);
        }
        Fate::Packed => packed(reader, call, &parsed),
        Fate::Copied | Fate::Moved | Fate::Linked => into(reader, call, &parsed, fate),
    }
}

fn all<'a>(
    reader: &mut Reader<'a>,
    call: &Call<'_>,
    words: &[Word],
    each: fn(&mut Reader<'a>, &Word, &str),
) {
    for word in words {
        each(reader, word, call.part);
    }
}

fn packed(reader: &mut Reader<'_>, call: &Call<'_>, parsed: &Parsed) {
    let only = parsed.has(&["c", "l", "t", "stdout", "list", "test"]);
    for word in &parsed.operands {
        reader.reads_word(word, call.part);
        if only {
            continue;
        }
        let beside = Word::plain(&word.literal().map_or(".".to_owned(), |path| parent(&path)));
        reader.writes(&beside, call.part);
        if !parsed.has(&["k", "keep"]) {
            reader.removes(word, call.part);
        }
    }
}

/// Programs whose files are not told apart: whatever they are given may be changed.
fn somewhere(reader: &mut Reader<'_>, call: &Call<'_>) {
    reader.writes(&Word::plain("."), call.part);
    for word in call.args {
        let text = word.prefix();
        if text.starts_with("--f") {
            reader.hides(call.part, "it hands what it reads to a command");
        }
        let value = match (text.find('='), text.starts_with('-')) {
            (Some(at), true) if text.starts_with("--") => word.after(at + 1),
            (_, true) => word.after(text.len().min(2)),
            (_, false) => word.clone(),
        };
        let path = value.prefix();
        if path == ".." || path.contains('/') {
            reader.writes(&value, call.part);
        }
    }
    reader.runs_code(call.part, "which files it changes is not read");
}

fn parent(path: &str) -> String {
    match path.trim_end_matches('/').rsplit_once('/') {
        Some(("", _)) => "/".to_owned(),
        Some((folder, _)) => folder.to_owned(),
        None => ".".to_owned(),
    }
}

/// `cp`, `mv`, `ln`: sources and a target.
fn into(reader: &mut Reader<'_>, call: &Call<'_>, parsed: &Parsed, fate: Fate) {
    if call.name == "install" && parsed.has(&["d", "directory"]) {
        return all(reader, call, &parsed.operands, Reader::writes);
    }
    let named = parsed.values(&["t", "target-directory"]).last().cloned();
    let (sources, target) = match (named, parsed.operands.split_last()) {
        (Some(target), _) => (parsed.operands.as_slice(), target),
        // `ln -s target` makes the link here.
        (None, Some((only, []))) if fate == Fate::Linked => {
            (std::slice::from_ref(only), Word::plain("."))
        }
        (None, Some((target, sources))) if !sources.is_empty() => (sources, target.clone()),
        _ => return,
    };
    let far = |end: &Word| end.literal().is_none_or(|end| end.contains('/'));
    if parsed.values(&["S", "suffix"]).any(far) {
        reader.hides(call.part, "it keeps the old file in another place");
    }
    for source in sources {
        match fate {
            Fate::Moved => reader.removes(source, call.part),
            _ => reader.reads_word(source, call.part),
        }
    }
    let Some(text) = target.literal() else {
        return reader.writes(&target, call.part);
    };
    let folder = reader.absolute(&text).is_ok_and(|path| path.is_dir());
    let below = folder || text.ends_with('/') || sources.len() > 1;
    let written: Vec<Word> = match below && !parsed.has(&["T", "no-target-directory"]) {
        true => sources.iter().map(|source| inside(&text, source)).collect(),
        false => vec![target.clone()],
    };
    let plain = fate == Fate::Copied
        && !parsed.has(&["a", "R", "r", "d", "P", "l", "s", "archive", "recursive"]);
    for word in &written {
        reader.writes(word, call.part);
        // Written through later, it would lead somewhere else.
        if !plain && let Some(Ok(path)) = word.literal().map(|path| reader.absolute(&path)) {
            reader.links.push(path);
        }
    }
}

/// Where a source lands in a folder; the folder itself if its name is open.
fn inside(folder: &str, source: &Word) -> Word {
    let name = source.literal().and_then(|path| {
        let name = path
            .trim_end_matches('/')
            .rsplit('/')
            .next()
            .unwrap_or_default()
            .to_owned();
        (!matches!(name.as_str(), "" | "." | "..")).then_some(name)
    });
    match name {
        Some(name) => Word::plain(&format!("{}/{name}", folder.trim_end_matches('/'))),
        None => Word::plain(folder),
    }
}

fn dd(reader: &mut Reader<'_>, call: &Call<'_>) {
    for word in call.args {
        let prefix = word.prefix();
        match prefix.split_once('=') {
            Some(("of", _)) => reader.writes(&word.after(3), call.part),
            Some(("if", _)) => reader.reads_word(&word.after(3), call.part),
            Some((
                "bs" | "count" | "skip" | "seek" | "conv" | "status" | "ibs" | "obs" | "iflag"
                | "oflag" | "cbs",
                _,
            )) if word.is_one() => {}
            _ => return reader.hides(call.part, "an argument that is not known"),
        }
    }
}

const TAR: Spec = Spec::strict(
    "ctxvzjJapkf:C:hmOW",
    "create list extract verbose gzip bzip2 xz zstd auto-compress file= directory= exclude= \
     strip-components= to-stdout keep-old-files no-same-owner wildcards \
     numeric-owner same-owner same-permissions preserve-permissions no-same-permissions",
);

fn tar(reader: &mut Reader<'_>, call: &Call<'_>) {
    let mut args = call.args.to_vec();
    // `tar xzf a` is `tar -xzf a` where only the last letter takes a value.
    if let Some(first) = args.first_mut()
        && let Some(text) = first.literal()
        && !text.starts_with('-')
    {
        if text.trim_end_matches('f').contains(['f', 'C']) {
            return reader.hides(call.part, "options that are not understood");
        }
        *first = Word::plain(&format!("-{text}"));
    }
    let parsed = match TAR.parse(&args) {
        Ok(parsed) => parsed,
        Err(why) => return reader.hides(call.part, why),
    };
    let archive = parsed.values(&["f", "file"]).last().cloned();
    let archive = archive.unwrap_or(Word::plain("-"));
    if archive.literal().is_none_or(|name| name.contains(':')) {
        return reader.hides(call.part, "an archive on another machine");
    }
    let folder = parsed.values(&["C", "directory"]).last().cloned();
    let folder = folder.unwrap_or(Word::plain("."));
    if parsed.has(&["t", "list"]) {
        reader.reads_word(&archive, call.part);
    } else if parsed.has(&["x", "extract"]) {
        reader.reads_word(&archive, call.part);
        if !parsed.has(&["O", "to-stdout"]) {
            reader.writes(&folder, call.part);
            // An archive may hold links.
            if let Some(Ok(path)) = folder.literal().map(|path| reader.absolute(&path)) {
                reader.links.push(path);
            }
        }
    } else if parsed.has(&["c", "create"]) {
        reader.reads_word(&folder, call.part);
        all(reader, call, &parsed.operands, Reader::reads_word);
        if archive.literal().as_deref() != Some("-") {
            reader.writes(&archive, call.part);
        }
    } else {
        reader.hides(call.part, "what it does is not said");
    }
}

fn unzip(reader: &mut Reader<'_>, call: &Call<'_>) {
    let parsed = match Spec::apart("lvtpqonjZcd:", "").parse(call.args) {
        Ok(parsed) => parsed,
        Err(why) => return reader.hides(call.part, why),
    };
    if let Some(archive) = parsed.operands.first() {
        reader.reads_word(archive, call.part);
    }
    if !parsed.has(&["l", "v", "t", "p", "Z", "c"]) {
        let folder = parsed
            .values(&["d"])
            .last()
            .cloned()
            .unwrap_or(Word::plain("."));
        reader.writes(&folder, call.part);
        if let Some(Ok(path)) = folder.literal().map(|path| reader.absolute(&path)) {
            reader.links.push(path);
        }
    }
}

fn zip(reader: &mut Reader<'_>, call: &Call<'_>) {
    match Spec::strict("rqj9v", "recurse-paths quiet").parse(call.args) {
        Ok(parsed) => {
            let Some((archive, files)) = parsed.operands.split_first() else {
                return;
            };
            all(reader, call, files, Reader::reads_word);
            let named = archive.literal().map(|name| match name.contains('.') {
                true => name,
                false => format!("{name}.zip"),
            });
            match named {
                Some(name) => reader.writes(&Word::plain(&name), call.part),
                None => reader.writes(archive, call.part),
            }
        }
        Err(why) => reader.hides(call.part, why),
    }
}

fn mktemp(reader: &mut Reader<'_>, call: &Call<'_>) {
    match Spec::strict("dqtup:", "directory quiet suffix= tmpdir=").parse(call.args) {
        Ok(parsed) if parsed.has(&["p", "tmpdir"]) => {
            for folder in parsed.values(&["p", "tmpdir"]) {
                reader.writes(folder, call.part);
            }
        }
        Ok(parsed) if parsed.operands.is_empty() => {
            reader.writes(&Word::plain("/tmp"), call.part);
        }
        Ok(parsed) => all(reader, call, &parsed.operands, Reader::writes),
        Err(why) => reader.hides(call.part, why),
    }
}
