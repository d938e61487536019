//! Combinations of options of `gyrus run` under which every task is tried.

use std::str::FromStr;

/// The most combinations of one evaluation.
pub(super) const MOST: usize = 64;

/// An option of `gyrus run`, and the values that it has in turn: `--over loop=react,plan`.
#[derive(Debug, Clone, PartialEq)]
pub struct OptionAxis {
    option: String,
    values: Vec<String>,
}

impl FromStr for OptionAxis {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let form = || "write OPTION=VALUE,VALUE, such as loop=react,plan".to_owned();
        let (option, values) = text.split_once('=').ok_or_else(form)?;
        let option = option.trim().trim_start_matches('-');
        let values: Vec<_> = values.split(',').map(|it| it.trim().to_owned()).collect();
        let is_name = |c: char| c.is_ascii_lowercase() || c == '-';
        if option.is_empty() || !option.chars().all(is_name) || values.iter().any(String::is_empty)
        {
            return Err(form());
        }
        if OWN.contains(&option) {
            return Err(format!("an evaluation sets `--{option}` itself"));
        }
        let twice = (1..values.len()).find(|&at| values[..at].contains(&values[at]));
        match twice {
            Some(at) => Err(format!("`{}` is named twice", values[at])),
            None => Ok(Self {
                option: option.to_owned(),
                values,
            }),
        }
    }
}

impl OptionAxis {
    pub(super) fn is_model(&self) -> bool {
        self.option == "model"
    }
}

/// Options that every attempt has from the evaluation.
const OWN: [&str; 10] = [
    "workdir",
    "json",
    "approve",
    "on-ask",
    "url",
    "check",
    "require",
    "max-steps",
    "max-time",
    "mcp-config",
];

#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct EvalSetting {
    /// Its values in words, such as `loop=plan effort=low`; empty if nothing varies.
    pub(super) name: String,
    /// Arguments of `gyrus run`.
    pub(super) arguments: Vec<String>,
}

/// Returns all combinations, the last option varying first; one without a name if there is none.
pub(super) fn combinations(axes: &[OptionAxis]) -> Vec<EvalSetting> {
    let mut settings = vec![EvalSetting::default()];
    for axis in axes {
        let with = |before: &EvalSetting, value: &String| {
            let mut setting = before.clone();
            let gap = if before.name.is_empty() { "" } else { " " };
            setting.name = format!("{}{gap}{}={value}", before.name, axis.option);
            setting.arguments.extend(arguments(&axis.option, value));
            setting
        };
        settings = settings
            .iter()
            .flat_map(|before| axis.values.iter().map(move |value| with(before, value)))
            .collect();
    }
    settings
}

/// Returns an option as arguments; `true` and `false` are for one without a value.
pub(super) fn arguments(option: &str, value: &str) -> Vec<String> {
    match value {
        "true" => vec![format!("--{option}")],
        "false" => Vec::new(),
        value => vec![format!("--{option}={value}")],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_combined() {
        let axes = ["loop=react,plan", "--reflect=true,false"].map(|it| it.parse().unwrap());
        let settings = combinations(&axes);
        let names: Vec<_> = settings.iter().map(|it| it.name.as_str()).collect();
        let all = [
            "loop=react reflect=true",
            "loop=react reflect=false",
            "loop=plan reflect=true",
            "loop=plan reflect=false",
        ];
        assert_eq!(names, all);
        assert_eq!(settings[2].arguments, ["--loop=plan", "--reflect"]);
        assert_eq!(settings[1].arguments, ["--loop=react"]);
        assert_eq!(combinations(&[]), [EvalSetting::default()]);
        for wrong in [
            "loop",
            "loop=",
            "=a",
            "loop=a,,b",
            "loop=a,a",
            "json=true",
            "l p=a",
        ] {
            assert!(wrong.parse::<OptionAxis>().is_err(), "{wrong}");
        }
    }
}
