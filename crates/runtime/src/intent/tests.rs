use super::*;

/// Goals as people write them, with their expected sizes. `no-tools` is simple, and answered
/// without a look at anything.
const GOALS: &[(&str, &str)] = &[
    // English
    ("no-tools", "What is the capital of Peru?"),
    ("no-tools", "Translate \"good morning\" into Finnish"),
    ("no-tools", "please tell me a joke"),
    ("no-tools", "17 * (23 - 4) = ?"),
    ("no-tools", "Write a haiku about rain"),
    ("simple", "what time zone is Lima in"),
    ("simple", "How many lines does notes.txt have?"),
    ("simple", "list the files in this folder"),
    ("simple", "Which version of Python is installed here?"),
    ("simple", "show me the last commit"),
    ("simple", "Is port 8080 in use?"),
    ("simple", "What is the weather in Oslo today?"),
    ("simple", "Can you check whether the tests pass?"),
    ("multi-step", "say hello"),
    ("multi-step", "Fix the failing test in parser.rs"),
    ("multi-step", "Translate README.md into German"),
    ("multi-step", "Write a haiku into poem.txt"),
    (
        "multi-step",
        "rename report.txt to report-2026.txt and commit it",
    ),
    (
        "multi-step",
        "Download the invoice from the shop, then put it into ~/Invoices",
    ),
    ("multi-step", "Find the cheapest flight to Rome next Friday"),
    ("multi-step", "sort the photos in ./inbox by year"),
    ("multi-step", "make the build green"),
    ("multi-step", "Implement a --verbose flag"),
    ("multi-step", "remove all trailing whitespace"),
    (
        "multi-step",
        "Answer the mail of Anna and put the date into the calendar",
    ),
    ("multi-step", "add bread to the shopping list"),
    ("complex", "Refactor the whole storage layer to use async"),
    ("complex", "Migrate every test from unittest to pytest"),
    (
        "complex",
        "Research three CRM products, compare them and write a report with a recommendation",
    ),
    (
        "complex",
        "Design and implement a plugin system, then document it",
    ),
    ("complex", "Audit the entire repository for secrets"),
    (
        "complex",
        "- read the spec\n- write the parser\n- write tests\n- update the docs",
    ),
    (
        "complex",
        "1. clone it\n2. build it\n3. run the benchmarks\n4. write down what is slow",
    ),
    (
        "complex",
        "Build a web shop from scratch and deploy it and test it",
    ),
    // German
    ("no-tools", "Übersetze \"guten Morgen\" ins Spanische"),
    ("no-tools", "Was ist die Hauptstadt von Peru?"),
    ("simple", "Wie viele Zeilen hat notizen.txt?"),
    ("simple", "Zeig mir die größten Dateien in diesem Ordner"),
    (
        "multi-step",
        "Benenne bericht.txt um und lege sie in den Ordner Archiv",
    ),
    ("multi-step", "Bring den Test in parser.rs in Ordnung"),
    (
        "complex",
        "Refaktoriere das gesamte Modul für die Speicherung",
    ),
    (
        "complex",
        "Recherchiere drei Anbieter, vergleiche sie und schreibe danach einen Bericht",
    ),
    // French
    ("no-tools", "Traduis \"bonjour\" en allemand"),
    ("no-tools", "Quelle est la capitale du Pérou ?"),
    ("simple", "Combien de lignes a notes.txt ?"),
    (
        "multi-step",
        "Corrige l'erreur dans main.py puis lance les tests",
    ),
    (
        "complex",
        "Migre toutes les pages vers le nouveau framework",
    ),
    // Spanish
    ("no-tools", "¿Cuál es la capital de Finlandia?"),
    ("simple", "Muestra los archivos de esta carpeta"),
    (
        "multi-step",
        "Corrige el error de main.py y luego ejecuta las pruebas",
    ),
    ("complex", "Refactoriza todo el código de almacenamiento"),
    // Italian, Portuguese
    ("no-tools", "Come si dice \"grazie\" in tedesco?"),
    ("simple", "Quante righe ha appunti.txt?"),
    (
        "complex",
        "Analizza tutti i file di log, poi scrivi un rapporto",
    ),
    ("simple", "Quantas linhas tem notas.txt?"),
    (
        "multi-step",
        "Renomeie o arquivo relatorio.txt e depois envie por e-mail",
    ),
    // Russian
    ("no-tools", "Переведи «доброе утро» на испанский"),
    ("simple", "Сколько строк в файле notes.txt?"),
    (
        "multi-step",
        "Исправь тест в parser.rs, затем запусти сборку",
    ),
    ("complex", "Проанализируй все логи и составь отчёт"),
    // Chinese, Japanese
    ("no-tools", "把“早上好”翻译成法语"),
    ("simple", "notes.txt 有多少行?"),
    ("multi-step", "修复 parser.rs 里的测试,然后提交"),
    ("complex", "重构整个存储模块"),
    ("no-tools", "「おはよう」をドイツ語に訳して"),
    ("simple", "このフォルダにファイルはいくつありますか"),
    (
        "complex",
        "すべてのテストを新しいフレームワークに移行してください",
    ),
];

#[test]
fn goals_have_the_size_that_a_person_would_say() {
    assert!(GOALS.len() >= 60);
    let wrong: Vec<String> = GOALS
        .iter()
        .filter_map(|(expected, goal)| {
            let found = classify(goal);
            let word = match (found.intent, found.needs_no_tools) {
                (Intent::Simple, true) => "no-tools",
                (intent, _) => intent.word(),
            };
            let because = found.because;
            (word != *expected).then(|| format!("{goal}: {word}, not {expected}: {because}"))
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn reasons_are_words_of_ours() {
    for (goal, because) in [
        ("Refactor all modules", "it says `refactor*` of `all`"),
        ("say hello", "as most goals are"),
        ("Fix it, then test it", "it names 2 steps"),
        (
            "count the lines of a.txt",
            "it asks for one thing (`count`)",
        ),
        ("2+2", "it is a calculation"),
    ] {
        assert_eq!(classify(goal).because, because.replace('*', "…"), "{goal}");
    }
    assert!(!classify("say hello").is_sure);
}

#[test]
fn no_text_is_too_strange() {
    for goal in [
        "",
        " ",
        "-",
        "*",
        "...",
        "a/b/c",
        "\u{202e}x",
        "1.",
        "🙂",
        "что",
        "何",
    ] {
        let _ = classify(goal);
    }
    let long = "word and ".repeat(1 << 20);
    assert_eq!(classify(&long).intent, Intent::Complex);
}
