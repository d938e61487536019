//! Walks the parsed line and hands every simple command to [`programs`].

use brush_parser::ast::{
    AndOr, AndOrList, ArithmeticForClauseCommand, Assignment, AssignmentName, AssignmentValue,
    BinaryPredicate, CaseClauseCommand, Command, CommandPrefixOrSuffixItem, CompoundCommand,
    CompoundList, ExtendedTestExpr, ForClauseCommand, IfClauseCommand, IoFileRedirectKind,
    IoFileRedirectTarget, IoRedirect, Pipeline, Program, RedirectList, SeparatorOperator,
    SimpleCommand, UnaryPredicate, UnexpandedArithmeticExpr, Word as Written,
};
use gyrus_contract::Does;

use super::{
    arithmetic, programs,
    reader::{Held, Reader},
    variables::{self, Effect},
    words::{self, Value, Word},
};

pub(super) fn program(reader: &mut Reader<'_>, program: &Program) {
    for list in &program.complete_commands {
        self::list(reader, list);
    }
}

fn list(reader: &mut Reader<'_>, list: &CompoundList) {
    for item in &list.0 {
        match item.1 {
            SeparatorOperator::Sequence => and_or(reader, &item.0),
            SeparatorOperator::Async => {
                reader.apart(|reader| and_or(reader, &item.0));
                let why = "it goes on in the background while others run";
                reader.runs_code(&item.0.to_string(), why);
            }
        }
    }
}

fn and_or(reader: &mut Reader<'_>, list: &AndOrList) {
    let start = reader.folder.clone();
    pipeline(reader, &list.first);
    let entered = reader.folder.clone();
    for item in &list.additional {
        let (AndOr::And(next) | AndOr::Or(next)) = item;
        // Where the command before failed, the folder is still the one before.
        if matches!(item, AndOr::Or(_)) && reader.folder != start {
            let sure = reader.folder.clone();
            reader.folder = None;
            conditional(reader, |reader| pipeline(reader, next));
            reader.folder = sure.filter(|_| reader.folder.is_none());
        } else {
            conditional(reader, |reader| pipeline(reader, next));
        }
    }
    let sure = reader.folder == entered && reader.folder.as_ref().is_some_and(|f| f.is_dir());
    if reader.folder != start && !sure {
        reader.folder = None;
    }
}

fn conditional(reader: &mut Reader<'_>, read: impl FnOnce(&mut Reader<'_>)) {
    reader.conditions += 1;
    read(reader);
    reader.conditions -= 1;
}

fn pipeline(reader: &mut Reader<'_>, pipeline: &Pipeline) {
    match pipeline.seq.as_slice() {
        [only] => command(reader, only),
        all => {
            let mut before = None;
            for one in all {
                reader.piped_text = before.is_some_and(says_only_this);
                reader.apart(|reader| command(reader, one));
                before = Some(one);
            }
            reader.piped_text = false;
        }
    }
}

/// Whether what a command prints stands in the line as it is.
fn says_only_this(command: &Command) -> bool {
    let Command::Simple(simple) = command else {
        return false;
    };
    let name = simple.word_or_name.as_ref().map(|word| word.value.as_str());
    let suffix = simple.suffix.as_ref().map_or(&[][..], |suffix| &suffix.0);
    let is_plain = |item: &CommandPrefixOrSuffixItem| {
        let CommandPrefixOrSuffixItem::Word(word) = item else {
            return false;
        };
        let quoted = word
            .value
            .strip_prefix('\'')
            .and_then(|rest| rest.strip_suffix('\''));
        match quoted {
            Some(inner) => !inner.contains('\''),
            None => !word
                .value
                .contains(['$', '`', '*', '?', '[', '{', '~', '\\']),
        }
    };
    matches!(name, Some("echo" | "printf"))
        && simple.prefix.is_none()
        && suffix.iter().all(is_plain)
}

fn command(reader: &mut Reader<'_>, command: &Command) {
    match command {
        Command::Simple(simple) => self::simple(reader, simple),
        Command::Compound(compound, redirects) => {
            self::redirects(reader, redirects.as_ref());
            self::compound(reader, compound);
        }
        Command::Function(function) => {
            reader.hides(&function.to_string(), "it defines a function");
        }
        Command::ExtendedTest(test, redirects) => {
            self::redirects(reader, redirects.as_ref());
            self::test(reader, &test.expr, &test.to_string());
        }
    }
}

fn compound(reader: &mut Reader<'_>, command: &CompoundCommand) {
    match command {
        CompoundCommand::Arithmetic(sum) => arithmetic(reader, &sum.expr),
        CompoundCommand::ArithmeticForClause(clause) => counted_loop(reader, clause),
        CompoundCommand::BraceGroup(group) => list(reader, &group.list),
        CompoundCommand::Subshell(shell) => reader.apart(|reader| list(reader, &shell.list)),
        CompoundCommand::ForClause(clause) => for_loop(reader, clause),
        CompoundCommand::CaseClause(clause) => case(reader, clause),
        CompoundCommand::IfClause(clause) => if_clause(reader, clause),
        CompoundCommand::WhileClause(clause) | CompoundCommand::UntilClause(clause) => {
            looped(reader, |reader| {
                list(reader, &clause.0);
                list(reader, &clause.1.list);
            });
        }
        CompoundCommand::Coprocess(process) => {
            reader.hides(&process.to_string(), "it starts a process to talk to");
        }
    }
}

fn arithmetic(reader: &mut Reader<'_>, text: &UnexpandedArithmeticExpr) {
    // Another shell would take the comparison for a redirection.
    let result = match text.value.contains('>') {
        true => Err("arithmetic that another shell takes for a redirection"),
        false => arithmetic::check(&text.value, &reader.line),
    };
    // `((1) )` are two subshells.
    let apart = reader.line.contains(") )") || reader.line.contains(")\t)");
    match result {
        Ok(()) if apart => reader.hides(&text.value, "arithmetic that may be a command"),
        Ok(()) => {}
        Err(why) => reader.hides(&text.value, why),
    }
}

fn counted_loop(reader: &mut Reader<'_>, clause: &ArithmeticForClauseCommand) {
    for part in [&clause.initializer, &clause.condition, &clause.updater]
        .into_iter()
        .flatten()
    {
        arithmetic(reader, part);
    }
    looped(reader, |reader| list(reader, &clause.body.list));
}

/// A body that runs again: what it leaves behind, it also finds.
fn looped(reader: &mut Reader<'_>, read: impl FnOnce(&mut Reader<'_>)) {
    let start = reader.folder.clone();
    conditional(reader, read);
    if reader.folder != start {
        reader.hides("", "a loop changes the folder for what it runs next");
        reader.folder = None;
    }
}

fn for_loop(reader: &mut Reader<'_>, clause: &ForClauseCommand) {
    let values = clause.values.iter().flatten();
    let values: Vec<Word> = values.map(|written| word(reader, written)).collect();
    let known: Vec<Value> = values.iter().map(Word::as_value).collect();
    let given = clause.values.is_some();
    let value = Value {
        quoted: false,
        number: given && known.iter().all(|value| value.number),
        tame: given && known.iter().all(|value| value.tame),
        splits: !given || known.iter().any(|value| value.splits),
        below: all_below(&known).filter(|_| given && !reader.line.contains("nullglob")),
    };
    assign(reader, &clause.variable_name, value, None, "for");
    looped(reader, |reader| list(reader, &clause.body.list));
}

/// The folder below which all of them lie.
fn all_below(values: &[Value]) -> Option<String> {
    let folders: Option<Vec<&String>> = values.iter().map(|value| value.below.as_ref()).collect();
    let folders = folders?;
    let (first, rest) = folders.split_first()?;
    if rest.iter().all(|folder| folder == first) {
        return Some((*first).clone());
    }
    let relative = folders.iter().all(|folder| !folder.starts_with('/'));
    relative.then(|| ".".to_owned())
}

fn case(reader: &mut Reader<'_>, clause: &CaseClauseCommand) {
    word(reader, &clause.value);
    branches(reader, |reader, start| {
        for item in &clause.cases {
            for pattern in &item.patterns {
                word(reader, pattern);
            }
            if let Some(body) = &item.cmd {
                list(reader, body);
                end_branch(reader, start);
            }
        }
    });
}

fn if_clause(reader: &mut Reader<'_>, clause: &IfClauseCommand) {
    list(reader, &clause.condition);
    branches(reader, |reader, start| {
        list(reader, &clause.then);
        end_branch(reader, start);
        for other in clause.elses.iter().flatten() {
            if let Some(condition) = &other.condition {
                list(reader, condition);
            }
            list(reader, &other.body);
            end_branch(reader, start);
        }
    });
}

/// Reads what may or may not run. If a branch changes the folder, it is unknown from then on.
fn branches(
    reader: &mut Reader<'_>,
    read: impl FnOnce(&mut Reader<'_>, &Option<std::path::PathBuf>),
) {
    let start = reader.folder.clone();
    conditional(reader, |reader| read(reader, &start));
}

fn end_branch(reader: &mut Reader<'_>, start: &Option<std::path::PathBuf>) {
    if reader.folder != *start {
        reader.folder = None;
    }
}

/// `[[ … ]]`. Numbers are evaluated, so only numbers may be compared as such.
fn test(reader: &mut Reader<'_>, expression: &ExtendedTestExpr, part: &str) {
    match expression {
        ExtendedTestExpr::And(left, right) | ExtendedTestExpr::Or(left, right) => {
            test(reader, left, part);
            test(reader, right, part);
        }
        ExtendedTestExpr::Not(inner) | ExtendedTestExpr::Parenthesized(inner) => {
            test(reader, inner, part);
        }
        ExtendedTestExpr::UnaryTest(predicate, operand) => {
            let operand = word(reader, operand);
            let evaluates = matches!(
                predicate,
                UnaryPredicate::ShellVariableIsSetAndAssigned
                    | UnaryPredicate::ShellVariableIsSetAndNameRef
            );
            if evaluates
                && !operand
                    .literal()
                    .is_some_and(|name| variables::is_name(&name))
            {
                reader.hides(part, "a value that may be evaluated again");
            }
        }
        ExtendedTestExpr::BinaryTest(predicate, left, right) => {
            let (left, right) = (word(reader, left), word(reader, right));
            match predicate {
                BinaryPredicate::ArithmeticEqualTo
                | BinaryPredicate::ArithmeticNotEqualTo
                | BinaryPredicate::ArithmeticLessThan
                | BinaryPredicate::ArithmeticLessThanOrEqualTo
                | BinaryPredicate::ArithmeticGreaterThan
                | BinaryPredicate::ArithmeticGreaterThanOrEqualTo
                    if !(left.is_number() && right.is_number()) =>
                {
                    reader.hides(part, "a value that may be evaluated again");
                }
                // Another shell would take these for redirections.
                BinaryPredicate::LeftSortsBeforeRight | BinaryPredicate::LeftSortsAfterRight => {
                    reader.hides(
                        part,
                        "a comparison that another shell takes for a redirection",
                    );
                }
                _ => {}
            }
        }
    }
}

/// Reads a word; one that is not understood is reported and unknown.
fn word(reader: &mut Reader<'_>, written: &Written) -> Word {
    match words::word(&written.value, reader) {
        Ok(word) => word,
        Err(why) => {
            reader.hides(&written.value, why);
            Word::unknown(&written.value)
        }
    }
}

fn simple(reader: &mut Reader<'_>, command: &SimpleCommand) {
    let part = command.to_string();
    let mut words = Vec::new();
    let mut assigned: Vec<&Assignment> = Vec::new();
    let none = Vec::new();
    let prefix = command.prefix.as_ref().map_or(&none, |prefix| &prefix.0);
    for item in prefix {
        match item {
            CommandPrefixOrSuffixItem::AssignmentWord(assignment, _) => assigned.push(assignment),
            CommandPrefixOrSuffixItem::IoRedirect(redirect) => self::redirect(reader, redirect),
            CommandPrefixOrSuffixItem::Word(_)
            | CommandPrefixOrSuffixItem::ProcessSubstitution(..) => {
                reader.hides(&part, "a command that is not understood");
            }
        }
    }
    if let Some(name) = &command.word_or_name {
        words.push(word(reader, name));
    }
    let suffix = command.suffix.as_ref().map_or(&none, |suffix| &suffix.0);
    for item in suffix {
        match item {
            CommandPrefixOrSuffixItem::Word(written)
            | CommandPrefixOrSuffixItem::AssignmentWord(_, written) => {
                // An array given to `declare` and its like is one word to the parser.
                words.push(word(reader, written));
            }
            CommandPrefixOrSuffixItem::IoRedirect(redirect) => self::redirect(reader, redirect),
            CommandPrefixOrSuffixItem::ProcessSubstitution(_, shell) => {
                beside(reader, &shell.list, words.first(), &part);
                words.push(Word::made_up(&shell.to_string()));
            }
        }
    }
    let alone = words.is_empty();
    for assignment in assigned {
        self::assignment(reader, assignment, alone, words.first(), &part);
    }
    if !alone && reader.command(&words) {
        let piped = std::mem::take(&mut reader.piped_text);
        reader.given_text = piped
            || prefix.iter().chain(suffix).any(|item| {
                use IoRedirect::{HereDocument, HereString};
                let CommandPrefixOrSuffixItem::IoRedirect(redirect) = item else {
                    return false;
                };
                matches!(redirect, HereDocument(..) | HereString(..))
            });
        programs::read(reader, &words, &part);
    }
}

/// What runs beside a command: nobody waits for it, so the command must read it to its end.
fn beside(reader: &mut Reader<'_>, inner: &CompoundList, outer: Option<&Word>, part: &str) {
    const READ_ALL: &[&str] = &[
        "cat", "diff", "comm", "sort", "wc", "paste", "join", "cmp", "grep", "uniq", "jq", "awk",
        "tac",
    ];
    let before = reader.count();
    reader.apart(|reader| list(reader, inner));
    let outer = outer.map(|word| word.literal().unwrap_or_default());
    let waits = outer.is_none_or(|name| READ_ALL.contains(&name.as_str()));
    if !waits || reader.lasts_since(before) {
        reader.runs_code(part, "it may go on when the command has ended");
    }
}

fn assignment(
    reader: &mut Reader<'_>,
    assignment: &Assignment,
    alone: bool,
    program: Option<&Word>,
    part: &str,
) {
    let name = match &assignment.name {
        AssignmentName::VariableName(name) => name,
        AssignmentName::ArrayElementName(name, index) => {
            if !index.bytes().all(|byte| byte.is_ascii_digit()) {
                reader.hides(part, "an index that may be evaluated again");
            }
            name
        }
    };
    let unknown = Value {
        splits: true,
        ..Value::default()
    };
    let (value, text) = match &assignment.value {
        AssignmentValue::Scalar(written) => {
            let word = word(reader, written);
            match makes_temporary(&written.value, &reader.line) {
                true => (temporary(), None),
                false => (word.as_value(), word.literal()),
            }
        }
        AssignmentValue::Array(items) => {
            for (index, item) in items {
                if index
                    .as_ref()
                    .is_some_and(|index| !index.value.bytes().all(|byte| byte.is_ascii_digit()))
                {
                    reader.hides(part, "an index that may be evaluated again");
                }
                word(reader, item);
            }
            (unknown.clone(), None)
        }
    };
    if alone {
        let plain =
            !assignment.append && matches!(assignment.name, AssignmentName::VariableName(_));
        let (value, text) = if plain {
            (value, text)
        } else {
            (unknown, None)
        };
        assign(reader, name, value, text, part);
        return;
    }
    // `IFS= read -r line` is how lines are read whole.
    let reads_lines = name == "IFS" && program.and_then(Word::literal).as_deref() == Some("read");
    match variables::effect(name) {
        Effect::Harmless => {}
        Effect::Dangerous if reads_lines => {}
        Effect::Dangerous => reader.hides(part, "it changes which programs run, or what they run"),
        Effect::Unknown => reader.runs_code(part, "it gives a program a variable nobody knows"),
    }
}

/// Whether it is the name of a new temporary file or folder, and nothing says where to make it.
fn makes_temporary(written: &str, line: &str) -> bool {
    matches!(written.trim_matches('"'), "$(mktemp)" | "$(mktemp -d)")
        && variables::mentions(line, "TMPDIR") == 0
}

/// That name. It is a path without spaces, as the sandbox says where temporary files are made.
fn temporary() -> Value {
    Value {
        tame: true,
        below: Some("/tmp".to_owned()),
        ..Value::default()
    }
}

/// Notes what a variable holds from here on.
pub(super) fn assign(
    reader: &mut Reader<'_>,
    name: &str,
    value: Value,
    text: Option<String>,
    part: &str,
) {
    if !variables::is_name(name) || variables::is_dangerous(name) {
        return reader.hides(part, "it changes which programs run, or what they run");
    }
    // Only where the line assigns it once is it certain what it holds.
    let once = variables::mentions(&reader.line, name) == 1;
    let held = match once {
        true => Held {
            value: Value {
                below: value
                    .below
                    .filter(|_| reader.conditions == 0 || part == "for"),
                ..value
            },
            text: text.filter(|_| reader.conditions == 0),
        },
        false => Held {
            text: None,
            value: Value {
                splits: true,
                ..Value::default()
            },
        },
    };
    reader.held.insert(name.to_owned(), held);
}

fn redirects(reader: &mut Reader<'_>, redirects: Option<&RedirectList>) {
    for redirect in redirects.iter().flat_map(|list| &list.0) {
        self::redirect(reader, redirect);
    }
}

fn redirect(reader: &mut Reader<'_>, redirect: &IoRedirect) {
    match redirect {
        IoRedirect::File(_, kind, target) => redirect_file(reader, kind, target),
        IoRedirect::OutputAndError(target, _) => {
            let target = word(reader, target);
            written(reader, &target);
        }
        IoRedirect::HereString(_, text) => {
            word(reader, text);
        }
        IoRedirect::HereDocument(_, document) => {
            if document.requires_expansion
                && let Err(why) = words::quoted_text(&document.doc.value, reader)
            {
                reader.hides(&document.doc.value, why);
            }
        }
    }
}

fn redirect_file(
    reader: &mut Reader<'_>,
    kind: &IoFileRedirectKind,
    target: &IoFileRedirectTarget,
) {
    match target {
        IoFileRedirectTarget::Fd(_) => {}
        IoFileRedirectTarget::ProcessSubstitution(_, shell) => {
            beside(reader, &shell.list, None, &shell.to_string());
        }
        IoFileRedirectTarget::Duplicate(target) => {
            let target = word(reader, target);
            let number = target.literal().is_some_and(|text| {
                let digits = text.strip_suffix('-').unwrap_or(&text);
                digits.len() <= 2 && digits.bytes().all(|byte| byte.is_ascii_digit())
            });
            if !number {
                written(reader, &target);
            }
        }
        IoFileRedirectTarget::Filename(name) => {
            let name = word(reader, name);
            match kind {
                IoFileRedirectKind::Read if name.literal().is_some() => {
                    if !connects(reader, &name) {
                        reader.reads_word(&name, &name.raw);
                    }
                }
                IoFileRedirectKind::Read => {
                    reader.hides(&name.raw, "what it opens is known only when it runs");
                }
                IoFileRedirectKind::Write
                | IoFileRedirectKind::Append
                | IoFileRedirectKind::ReadAndWrite
                | IoFileRedirectKind::Clobber
                | IoFileRedirectKind::DuplicateInput
                | IoFileRedirectKind::DuplicateOutput => written(reader, &name),
            }
        }
    }
}

fn written(reader: &mut Reader<'_>, target: &Word) {
    // The name of a temporary file is not known, but where it lies.
    let temporary = target.below_which().is_some_and(|below| below == "/tmp");
    if target.literal().is_none() && !temporary {
        return reader.hides(
            &target.raw,
            "which file it writes is known only when it runs",
        );
    }
    if !connects(reader, target) {
        reader.writes(target, &target.raw);
    }
}

/// The shell itself connects where a redirection names `/dev/tcp/host/port`.
fn connects(reader: &mut Reader<'_>, target: &Word) -> bool {
    let text = target.literal().unwrap_or_default();
    let rest = text
        .strip_prefix("/dev/tcp/")
        .or(text.strip_prefix("/dev/udp/"));
    let Some(rest) = rest else {
        return false;
    };
    let host = rest.split('/').next().unwrap_or_default().to_lowercase();
    let hosts = vec![host];
    reader.fact(Does::Connects { hosts }, &text, "the shell connects there");
    true
}
