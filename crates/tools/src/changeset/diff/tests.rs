//! Texts are turned into each other, whole or hunk by hunk, and nothing else is touched.

use std::{
    cell::RefCell,
    ops::Range,
    time::{Duration, Instant},
};

use gyrus_workspace::patch::{NO_NEWLINE, hunks};

use super::*;

fn diff(old: &str, new: &str) -> String {
    hunks(old, new, Instant::now() + Duration::from_secs(600))
}

/// Random texts made of lines that could be mistaken for parts of a diff.
struct Random(RefCell<fastrand::Rng>);

impl Random {
    fn below(&self, bound: usize) -> usize {
        self.0.borrow_mut().usize(..bound)
    }

    fn line(&self) -> String {
        const LINES: [&str; 12] = [
            "",
            "a",
            "a",
            "b",
            "-",
            "+b",
            " ",
            "@@ -1,1 +1,1 @@",
            NO_NEWLINE,
            "é\u{2028}",
            "\r",
            "diff a new",
        ];
        let ends = ["\n", "\n", "\r\n"][self.below(3)];
        format!("{}{ends}", LINES[self.below(12)])
    }

    fn text(&self) -> String {
        let mut text: String = (0..self.below(30)).map(|_| self.line()).collect();
        if self.below(3) == 0 {
            text.pop();
        }
        text
    }

    /// Returns the text with some lines changed.
    fn changed(&self, text: &str) -> String {
        let mut changed = String::new();
        for line in text.split_inclusive('\n') {
            match self.below(12) {
                0 => changed.push_str(&self.line()),
                1 => {}
                2 => changed.extend([line.to_owned(), self.line()]),
                _ => changed.push_str(line),
            }
        }
        if self.below(6) == 0 {
            changed.pop();
        }
        changed
    }
}

/// Returns the hunks of a diff, each with its ranges of lines in the old and the new text.
fn apart(diff: &str) -> Vec<(String, Range<usize>, Range<usize>)> {
    let mut hunks: Vec<(String, Range<usize>, Range<usize>)> = Vec::new();
    for line in diff.split_inclusive('\n') {
        if line.starts_with("@@") {
            let mut sides = line.split(' ').skip(1).map(|side| {
                let (first, count) = side[1..].split_once(',').unwrap();
                let (first, count): (usize, usize) =
                    (first.parse().unwrap(), count.parse().unwrap());
                let start = first - usize::from(count > 0);
                start..start + count
            });
            let (olds, news) = (sides.next().unwrap(), sides.next().unwrap());
            hunks.push((String::new(), olds, news));
        }
        hunks.last_mut().unwrap().0.push_str(line);
    }
    hunks
}

#[test]
fn any_text_becomes_any_other_and_any_hunk_can_be_left_out() {
    let random = Random(RefCell::new(fastrand::Rng::with_seed(1)));
    let (mut several, mut refused) = (0, 0);
    for round in 0..4_000 {
        let old = random.text();
        let new = match random.below(4) {
            0 => random.text(),
            _ => random.changed(&old),
        };
        let diff = diff(&old, &new);
        assert_eq!(diff.is_empty(), old == new);
        let patched = patch(old.as_bytes(), &diff).unwrap();
        assert_eq!(patched, new.as_bytes(), "round {round}: {diff}");
        assert_eq!(
            unpatch(new.as_bytes(), &diff).unwrap(),
            old.as_bytes(),
            "{diff}"
        );

        let mut hunks = apart(&diff);
        hunks.retain(|_| random.below(2) == 0);
        several += usize::from(hunks.len() > 1);
        let olds: Vec<&str> = old.split_inclusive('\n').collect();
        let news: Vec<&str> = new.split_inclusive('\n').collect();
        let (mut expected, mut next): (Vec<&str>, _) = (Vec::new(), 0);
        for (_, of_old, of_new) in &hunks {
            expected.extend(&olds[next..of_old.start]);
            expected.extend(&news[of_new.clone()]);
            next = of_old.end;
        }
        expected.extend(&olds[next..]);
        let kept: String = hunks.iter().map(|(text, ..)| text.as_str()).collect();
        let patched = patch(old.as_bytes(), &kept).unwrap();
        assert_eq!(
            patched,
            expected.concat().as_bytes(),
            "round {round}: {kept}"
        );
        assert_eq!(unpatch(&patched, &kept).unwrap(), old.as_bytes(), "{kept}");

        // Another line where a hunk looks.
        if let Some((_, of_old, _)) = hunks.iter().find(|(_, of_old, _)| !of_old.is_empty()) {
            let mut other: Vec<&str> = olds.clone();
            other[of_old.start + random.below(of_old.len())] = "other\n";
            let error = patch(other.concat().as_bytes(), &kept).unwrap_err();
            assert!(matches!(error, DiffError::Mismatch { .. }), "{error}");
            let gone = of_old.start + random.below(of_old.len());
            other = olds.clone();
            other.truncate(gone);
            assert!(patch(other.concat().as_bytes(), &kept).is_err());
            refused += 1;
        }
    }
    assert!(several > 100 && refused > 1_000, "{several}, {refused}");
}

#[test]
fn hunks_look_as_everywhere() {
    let old = "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\nlast";
    let new = "1\n2\n4\n5\n6\n7\n8\n9\n10\n11\n12\r\nlast\n";
    let expected = "@@ -1,6 +1,5 @@\n 1\n 2\n-3\n 4\n 5\n 6\n@@ -9,5 +8,5 @@\n 9\n 10\n 11\n-12\n\
                    -last\n\\ No newline at end of file\n+12\r\n+last\n";
    assert_eq!(diff(old, new), expected);
    assert_eq!(diff("", "a\n"), "@@ -0,0 +1,1 @@\n+a\n");
    assert_eq!(diff("a\n", ""), "@@ -1,1 +0,0 @@\n-a\n");
}

#[test]
fn what_a_person_may_edit_and_what_not() {
    let old = "a\nb\n\nc\nd";
    let check = |diff: &str| match patch(old.as_bytes(), diff) {
        Ok(new) => String::from_utf8(new).unwrap(),
        Err(error) => error.to_string(),
    };
    for (diff, expected) in [
        ("", old),
        // The new side's numbers, a missing last line break, counts of one, trimmed lines.
        ("@@ -2,2 +77,0 @@ fn main()\n b\n+x\n\n", "a\nb\nx\n\nc\nd"),
        ("@@ -2 +2 @@\n-b\n+x", "a\nx\n\nc\nd"),
        ("@@ -4,0 +9,1 @@\n+x\n", "a\nb\n\nc\nx\nd"),
        (
            "@@ -1,2 +1,1 @@\n a\n",
            "the hunk `@@ -1,2 +1,1 @@` has 1 lines of the old file, not 2",
        ),
        (
            "@@ -2,1 +2,1 @@\n-x\n",
            "line 2 of the file is not what the hunk `@@ -2,1 +2,1 @@` says",
        ),
        (
            "@@ -5,1 +5,1 @@\n-d\n",
            "line 5 of the file is not what the hunk `@@ -5,1 +5,1 @@` says",
        ),
        (
            "@@ -9,1 +9,1 @@\n-d\n",
            "line 6 of the file is not what the hunk `@@ -9,1 +9,1 @@` says",
        ),
        (
            "@@ -2,1 +2,1 @@\n-b\n@@ -1,1 +1,1 @@\n-a\n",
            "the hunk `@@ -1,1 +1,1 @@` begins before the one above it ends",
        ),
        (
            "@@ -5,0 +5,1 @@\n+e\n",
            "a line that is said to have no newline would not be the last one of the file",
        ),
        (
            "b\n",
            "line 1 of the diff stands before the first hunk, which begins with @@",
        ),
        (
            "@@ -1,1 @@\n",
            "line 1 of the diff is not the head of a hunk like @@ -1,3 +1,4 @@",
        ),
        (
            "@@ -0,1 +1,1 @@\n",
            "line 1 of the diff is not the head of a hunk like @@ -1,3 +1,4 @@",
        ),
        (
            "@@ -1,1 +1,1 @@\n a\nb\n",
            "line 3 of the diff, in a hunk, begins with neither a space nor - nor + nor \\",
        ),
    ] {
        assert_eq!(check(diff), expected, "{diff}");
    }
}

#[test]
fn large_files_take_no_time() {
    let lines = |every: usize| (0..200_000).map(move |line| format!("{}\n", line / every));
    let (old, new): (String, String) = (lines(1).collect(), lines(3).collect());
    let started = Instant::now();
    let diff = hunks(&old, &new, started);
    assert_eq!(patch(old.as_bytes(), &diff).unwrap(), new.as_bytes());
}
