//! Where calls were, in one line each: for texts that tell several calls apart.

use super::rows::{Row, RowLink};

/// The stacks of a text. Each is shown by its innermost frame, and, if others there have the same, by the first of its
/// callers that differs: a program may take all its locks in one function.
#[derive(Default)]
pub struct DistinctFrames(Vec<Vec<String>>);

impl DistinctFrames {
    pub fn of_rows<'a>(rows: impl IntoIterator<Item = &'a Row>) -> Self {
        Self(rows.into_iter().map(|row| frames_of(stack_of(row))).collect())
    }

    pub fn of_cycle(cycle: &[RowLink]) -> Self {
        Self::of_rows(cycle.iter().flat_map(|link| [&link.holds, &link.waits_for]))
    }

    /// Says where a row's call was, behind a prefix; '' if that is unknown.
    pub fn of(&self, prefix: &str, row: &Row) -> String {
        let frames = frames_of(stack_of(row));
        let Some(innermost) = frames.first() else { return String::new() };
        let in_common = |other: &Vec<String>| frames.iter().zip(other).take_while(|(one, other)| one == other).count();
        let same = self.0.iter().filter(|other| **other != frames).map(in_common).max().unwrap_or_default();
        let caller = frames.get(same).filter(|_| same > 0);
        let caller = caller.map_or_else(String::new, |caller| format!(", called {caller}"));
        format!("{prefix}{innermost}{caller}")
    }
}

/// Returns the stack of a row's call; '' if it is unknown.
pub(super) fn stack_of(row: &Row) -> &str {
    row.taken.text().or(row.called.text()).unwrap_or_default()
}

/// Lists the frames of a stack, without built-in functions. A function that awaits counts only where no other is left.
pub(super) fn frames_of(stack: &str) -> Vec<String> {
    let frames = stack.lines().map(str::trim).filter(|frame| !frame.ends_with("(<anonymous>)"));
    // Not a function of the name `async`.
    let awaits = |frame: &&str| frame.contains("at async ") && !frame.contains("at async (");
    let (awaiting, others): (Vec<_>, Vec<_>) = frames.partition(awaits);
    if !others.is_empty() {
        return others.into_iter().map(str::to_owned).collect();
    }
    awaiting.into_iter().map(|frame| frame.replacen("async ", "", 1)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::rows::Stack;
    use super::*;

    fn places<const N: usize>(stacks: [&str; N]) -> [String; N] {
        let rows = stacks.map(|stack| Row { called: Stack::Text(stack.into()), ..Row::default() });
        let frames = DistinctFrames::of_rows(&rows);
        rows.each_ref().map(|row| frames.of("", row))
    }

    #[test]
    fn a_place_is_the_innermost_frame_and_the_caller_that_differs_from_others_there() {
        assert_eq!(places(["at a\nat z", "at b\nat z"]), ["at a", "at b"]);
        assert_eq!(
            places(["at h\nat a\nat z", "at h\nat b", "at c"]),
            ["at h, called at a", "at h, called at b", "at c"]
        );
        assert_eq!(places(["at h\nat a", "at h\nat a"]), ["at h", "at h"]);
        assert_eq!(places(["at h", "at h\nat a"]), ["at h", "at h, called at a"]);
        assert_eq!(places(["", "at a"]), ["", "at a"]);
        assert_eq!(places(["at Array.map (<anonymous>)\n at a\nat async b", "at a\nat async c"]), ["at a", "at a"]);
        assert_eq!(places(["at async b\nat async c", "at async (x.js:1:1)"]), ["at b", "at async (x.js:1:1)"]);
    }
}
