//! Where calls were, in one frame each: for texts that tell several calls apart.

use super::rows::{Row, RowLink};

/// The stacks of a text. Each is shown by its first frame that tells it apart from the others: a program may take all
/// its locks in one helper function.
#[derive(Default)]
pub struct DistinctFrames<'a>(Vec<&'a str>);

impl<'a> DistinctFrames<'a> {
    pub fn of_rows(rows: impl IntoIterator<Item = &'a Row>) -> Self {
        let mut stacks: Vec<_> = rows.into_iter().filter_map(stack_of).collect();
        stacks.sort_unstable();
        stacks.dedup();
        Self(stacks)
    }

    pub fn of_cycle(cycle: &'a [RowLink]) -> Self {
        Self::of_rows(cycle.iter().flat_map(|link| [&link.holds, &link.waits_for]))
    }

    /// Says where a row's call was, behind a prefix; '' if that is unknown.
    pub fn of(&self, prefix: &str, row: &Row) -> String {
        let stack = stack_of(row).unwrap_or_default();
        let same = self.0.iter().filter(|other| **other != stack).map(|other| in_common(stack, other));
        let (same, last) = (same.max().unwrap_or_default(), stack.lines().count().saturating_sub(1));
        let frame = stack.lines().nth(same.min(last)).map_or("", str::trim);
        if frame.is_empty() { String::new() } else { prefix.to_owned() + frame }
    }
}

/// Returns the stack of a row's call.
fn stack_of(row: &Row) -> Option<&str> {
    row.taken.text().or(row.called.text())
}

/// Counts the innermost frames that two stacks have in common.
fn in_common(one: &str, other: &str) -> usize {
    one.lines().zip(other.lines()).take_while(|(one, other)| one == other).count()
}

#[cfg(test)]
mod tests {
    use super::super::rows::Stack;
    use super::*;

    fn frames(stacks: &[&str]) -> Vec<String> {
        let frames = DistinctFrames(stacks.to_vec());
        let row = |stack: &&str| Row { called: Stack::Text((*stack).into()), ..Row::default() };
        stacks.iter().map(|stack| frames.of("", &row(stack))).collect()
    }

    #[test]
    fn a_stack_is_shown_by_its_first_frame_that_tells_it_apart() {
        assert_eq!(frames(&["at a\nat z", "at b\nat z"]), ["at a", "at b"]);
        assert_eq!(frames(&["at h\nat a\nat z", "at h\nat b\nat z", "at c"]), ["at a", "at b", "at c"]);
        assert_eq!(frames(&["at h\nat a", "at h\nat a"]), ["at h", "at h"]);
        assert_eq!(frames(&["at h", "at h\nat a"]), ["at h", "at a"]);
        assert_eq!(frames(&["", "at a"]), ["", "at a"]);
    }
}
