//! A task as the player knows it: its goal, and what a person would do, step by step.

use std::{fs, path::Path};

use serde::Deserialize;

/// A task.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Task {
    /// Its name.
    pub id: String,
    /// Text by which it is recognised in a prompt.
    pub goal: String,
    /// Steps of the task.
    #[serde(default)]
    pub does: Vec<Step>,
}

/// One thing that is done. Exactly one of its kinds is there.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Step {
    /// Role and name of what is clicked.
    pub click: Option<String>,
    /// Name of a field that is filled with `text`.
    #[serde(rename = "type")]
    pub types: Option<String>,
    /// Name of a list of which `option` is chosen.
    pub select: Option<String>,
    /// A key.
    pub press: Option<String>,
    /// A direction, until something is in view.
    pub scroll: Option<String>,
    /// Name of a thing that is dragged to another one.
    pub drag: Option<String>,
    /// Name of a thing on which a line is drawn, from the first point to the last, as shares of its
    /// box.
    pub draw: Option<String>,
    /// Name of a control at which `file` is handed over.
    pub upload: Option<String>,
    /// `accept` or `dismiss`, perhaps with `text`.
    pub dialog: Option<String>,
    /// Name of a thing that is pointed at.
    pub hover: Option<String>,
    /// Condition that is waited for: `text WORDS`, or role and name.
    pub wait: Option<String>,
    /// Description of the text that is read.
    pub extract: Option<String>,
    /// The answer at the end.
    pub answer: Option<String>,
    /// An application of a desktop that is started, with `file` if there is one.
    pub open: Option<String>,
    /// Words of the title of a window of a desktop that is brought to the front.
    pub window: Option<String>,
    /// Words of the title of a window of a desktop that is closed.
    pub close: Option<String>,
    /// Name of a field of which `text` is selected, or all of it.
    pub mark: Option<String>,
    /// Text that is typed where the keyboard is.
    pub enter: Option<String>,
    /// The row, group or dialog that it is in.
    pub within: Option<String>,
    /// Number among several, from 1.
    pub nth: Option<usize>,
    /// Kind of a click, beside one of the left button: `double`, `right`.
    pub kind: Option<String>,
    /// Text that is typed.
    pub text: Option<String>,
    /// Option that is chosen.
    pub option: Option<String>,
    /// The role of what is opened, one after the other, until the target is in it.
    pub opens: Option<String>,
    /// Name of the thing until which is scrolled.
    pub until: Option<String>,
    /// Name of the thing to which it is dragged.
    pub to: Option<String>,
    /// A file of the folder.
    pub file: Option<String>,
    /// Points through which is drawn.
    pub points: Vec<[f64; 2]>,
    /// A command line that is called without a screen.
    pub shell: Option<String>,
    /// A tool that is called without a screen, with the arguments `with`.
    pub call: Option<String>,
    /// The arguments of the tool.
    pub with: toml::Table,
    /// The answer in words, without a claim, where there is no screen.
    pub say: Option<String>,
    /// The reason why the goal cannot be reached, with which the work ends.
    pub gives_up: Option<String>,
}

/// Reads all tasks of a file or of the files of a folder.
///
/// # Errors
/// What is wrong with which file, in a sentence.
pub fn read(path: &Path) -> Result<Vec<Task>, String> {
    #[derive(Deserialize)]
    struct Written {
        #[serde(default)]
        task: Vec<Task>,
    }
    let said = |path: &Path, why: &dyn std::fmt::Display| format!("{}: {why}", path.display());
    let mut files = vec![path.to_owned()];
    if path.is_dir() {
        let entries = fs::read_dir(path).map_err(|error| said(path, &error))?;
        files = entries
            .filter_map(|entry| Some(entry.ok()?.path()))
            .collect();
        files.retain(|file| file.extension().is_some_and(|end| end == "toml"));
        files.sort();
    }
    let mut tasks = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).map_err(|error| said(&file, &error))?;
        let written: Written = toml::from_str(&text).map_err(|error| said(&file, &error))?;
        tasks.extend(written.task);
    }
    Ok(tasks)
}
