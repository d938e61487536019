//! Names of tools as models write them: with a prefix, in other letters.

/// Returns the offered tool that a name means: the same, or the only one that differs by the case
/// of letters, hyphens, and a prefix such as `functions.`.
pub(super) fn offered<'a>(name: &str, names: &[&'a str]) -> Option<&'a str> {
    if let Some(same) = names.iter().find(|offered| **offered == name) {
        return Some(same);
    }
    let last = name.rsplit(['.', ':', '/']).next().unwrap_or(name);
    let wanted = plain(last);
    let mut alike = names.iter().filter(|offered| plain(offered) == wanted);
    let first = alike.next()?;
    alike.next().is_none().then_some(first)
}

fn plain(name: &str) -> String {
    name.trim().to_lowercase().replace(['-', ' '], "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_means_one_tool() {
        let names = ["shell", "find_tools", "Read", "read"];
        for (name, expected) in [
            ("shell", Some("shell")),
            ("functions.shell", Some("shell")),
            ("default_api:Shell", Some("shell")),
            ("find-tools", Some("find_tools")),
            ("read", Some("read")),
            ("READ", None),
            ("bash", None),
            ("", None),
        ] {
            assert_eq!(offered(name, &names), expected, "{name}");
        }
    }
}
