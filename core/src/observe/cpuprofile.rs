//! Times of stacks in the format of V8's `.cpuprofile`. Chrome, VS Code and speedscope open it.
//!
//! The times lie end to end: one sample for each, the heaviest first, and a closing one of the root. The time of a
//! sample is the delta of the next one. Readers that count hits take all for equally long: each microsecond is a hit.
//!
//! A frame has the place of the call and not, as V8 writes it, that of the function: lines and columns are those that a
//! profile of locks is read for. Both count from 0.

use std::collections::HashMap;
use std::fmt::{self, Write};
use std::sync::Arc;

use crate::json::{self, Text};

/// Some readers take 0 for none.
const START: u64 = 1_000_000;

/// The noun of a wait, the call's stack, and how long.
pub struct Line {
    /// One line for each frame, the innermost first; `None` if it is not known.
    pub stack: Option<Arc<str>>,
    pub leaf: Arc<str>,
    pub micros: u64,
}

/// How many waits, or holds, were recorded.
#[derive(Clone, Copy, Default)]
pub struct Counts {
    pub recorded: u64,
    /// How many these stand for.
    pub all: u64,
    /// How often a stack did not fit into the table.
    pub other_stacks: u64,
}

/// A frame of a stack, as V8 writes it into a text.
#[derive(Debug, PartialEq, Eq, Clone, Copy)]
struct Frame<'a> {
    function: &'a str,
    place: &'a str,
    /// Line and column, from 1.
    position: Option<(u32, u32)>,
}

impl<'a> Frame<'a> {
    const fn named(function: &'a str) -> Self {
        Self { function, place: "", position: None }
    }

    /// Reads `at function (place:line:column)` or `at place:line:column`.
    fn read(line: &'a str) -> Self {
        let line = line.trim();
        let line = line.strip_prefix("at ").unwrap_or(line);
        let (function, place) = match line.split_once(" (") {
            Some((function, place)) if line.ends_with(')') => (function, &place[..place.len() - 1]),
            // Of an anonymous function.
            _ if position(line).is_some() => line.strip_prefix("async ").map_or(("", line), |place| ("async", place)),
            _ => (line, ""),
        };
        match position(place) {
            Some((place, position)) => Self { function, place, position: Some(position) },
            None => Self { function, place, position: None },
        }
    }

    fn write(&self, text: &mut Text) -> fmt::Result {
        let from_zero = |number: u32| i64::from(number) - 1;
        let (line, column) = self.position.unwrap_or((0, 0));
        text.write_str("{\"functionName\":")?;
        json::string(text, self.function.encode_utf16())?;
        text.write_str(",\"scriptId\":\"0\",\"url\":")?;
        json::string(text, url(self.place).encode_utf16())?;
        write!(text, ",\"lineNumber\":{},\"columnNumber\":{}}}", from_zero(line), from_zero(column))
    }
}

/// Splits a place into its file, and its line and column.
fn position(place: &str) -> Option<(&str, (u32, u32))> {
    let (rest, column) = place.rsplit_once(':')?;
    let (file, line) = rest.rsplit_once(':')?;
    Some((file, (line.parse().ok()?, column.parse().ok()?)))
}

/// Returns V8's URL for a file that is known by its path.
fn url(place: &str) -> String {
    let bytes = place.as_bytes();
    let is_windows = bytes.len() > 2 && bytes[0].is_ascii_alphabetic() && bytes[1] == b':' && bytes[2] == b'\\';
    if !place.starts_with('/') && !is_windows {
        return place.to_owned();
    }
    let mut url = String::from(if is_windows { "file:///" } else { "file://" });
    for &byte in bytes {
        match byte {
            b'\\' if is_windows => url.push('/'),
            _ if byte.is_ascii_alphanumeric() || b"/:-_.~@+!$&'()*,;=".contains(&byte) => url.push(byte.into()),
            _ => _ = write!(url, "%{byte:02X}"),
        }
    }
    url
}

struct Node<'a> {
    frame: Frame<'a>,
    children: Vec<usize>,
    hits: u64,
}

/// The tree of the stacks. Nodes are known by their indexes; the first is the root.
struct Tree<'a> {
    nodes: Vec<Node<'a>>,
    found: HashMap<(usize, &'a str), usize>,
}

const ROOT: usize = 0;

impl<'a> Tree<'a> {
    fn new() -> Self {
        let root = Node { frame: Frame::named("(root)"), children: Vec::new(), hits: 0 };
        Self { nodes: vec![root], found: HashMap::new() }
    }

    /// Finds or adds the child of a node, by its text.
    fn child(&mut self, parent: usize, text: &'a str, frame: impl FnOnce() -> Frame<'a>) -> usize {
        let index = *self.found.entry((parent, text)).or_insert(self.nodes.len());
        if index == self.nodes.len() {
            self.nodes.push(Node { frame: frame(), children: Vec::new(), hits: 0 });
            self.nodes[parent].children.push(index);
        }
        index
    }

    fn add(&mut self, Line { stack, leaf, micros }: &'a Line) -> usize {
        let mut node = ROOT;
        match stack.as_deref() {
            None => node = self.child(node, "(other stacks)", || Frame::named("(other stacks)")),
            Some("") => node = self.child(node, "(no stack)", || Frame::named("(no stack)")),
            Some(stack) => {
                for line in stack.lines().rev() {
                    node = self.child(node, line, || Frame::read(line));
                }
            }
        }
        let leaf = self.child(node, leaf, || Frame::named(leaf));
        self.nodes[leaf].hits += micros;
        leaf
    }

    fn write_node(&self, text: &mut Text, index: usize) -> fmt::Result {
        let Node { frame, children, hits } = &self.nodes[index];
        write!(text, "{{\"id\":{},\"callFrame\":", id(index))?;
        frame.write(text)?;
        write!(text, ",\"hitCount\":{hits}")?;
        if !children.is_empty() {
            text.write_str(",\"children\":")?;
            json::array(text, children, |text, &child| write!(text, "{}", id(child)))?;
        }
        text.write_char('}')
    }
}

const fn id(index: usize) -> usize {
    index + 1
}

/// Returns the profile as JSON. `None` if it would be too long. `noun`: waits, or holds.
pub fn write(mut lines: Vec<Line>, counts: Counts, noun: &str) -> Option<String> {
    lines.retain(|line| line.micros > 0);
    lines.sort_by_key(|line| std::cmp::Reverse(line.micros));
    let mut tree = Tree::new();
    let samples: Vec<_> = lines.iter().map(|line| tree.add(line)).chain([ROOT]).collect();
    let deltas = [0].into_iter().chain(lines.iter().map(|line| line.micros));
    let end = START + lines.iter().map(|line| line.micros).sum::<u64>();
    json::text(|text| {
        text.write_str("{\"nodes\":")?;
        json::array(text, 0..tree.nodes.len(), |text, index| tree.write_node(text, index))?;
        write!(text, ",\"startTime\":{START},\"endTime\":{end},\"samples\":")?;
        json::array(text, samples, |text, index| write!(text, "{}", id(index)))?;
        text.write_str(",\"timeDeltas\":")?;
        json::array(text, deltas, |text, micros| write!(text, "{micros}"))?;
        let Counts { recorded, all, other_stacks } = counts;
        let factor = if recorded == 0 { 1.0 } else { all as f64 / recorded as f64 };
        write!(text, ",\"atomicsWaitasync\":{{\"{noun}\":{all},\"recorded\":{recorded},\"factor\":{factor}")?;
        write!(text, ",\"otherStacks\":{other_stacks}}}}}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> (&str, String, Option<(u32, u32)>) {
        let Frame { function, place, position } = Frame::read(line);
        (function, url(place), position)
    }

    #[test]
    fn frames_are_read_as_v8_writes_them() {
        let cases = [
            ("    at charge (/app/a b.js:27:18)", "charge", "file:///app/a%20b.js", Some((27, 18))),
            ("    at async main (file:///app/main.mjs:3:1)", "async main", "file:///app/main.mjs", Some((3, 1))),
            ("    at /app/ä.js:1:2", "", "file:///app/%C3%A4.js", Some((1, 2))),
            ("    at async /app/a.js:1:2", "async", "file:///app/a.js", Some((1, 2))),
            ("    at new Foo [as bar] (C:\\app\\a.js:5:6)", "new Foo [as bar]", "file:///C:/app/a.js", Some((5, 6))),
            ("    at node:internal/main/run:22:47", "", "node:internal/main/run", Some((22, 47))),
            ("    at Array.forEach (<anonymous>)", "Array.forEach", "<anonymous>", None),
            ("    at async Promise.all (index 0)", "async Promise.all", "index 0", None),
            ("what is no frame", "what is no frame", "", None),
        ];
        for (line, function, place, position) in cases {
            assert_eq!(read(line), (function, place.to_owned(), position), "{line}");
        }
    }

    fn line(stack: &str, leaf: &str, micros: u64) -> Line {
        Line { stack: Some(stack.into()), leaf: leaf.into(), micros }
    }

    #[test]
    fn stacks_share_their_outer_frames_and_the_heaviest_comes_first() {
        let lines = vec![
            line("at f (/a.js:1:1)\nat main (/a.js:9:9)", "A", 5),
            line("at g (/a.js:2:2)\nat main (/a.js:9:9)", "B", 7),
            line("at g (/a.js:2:2)\nat main (/a.js:9:9)", "never", 0),
        ];
        let text = write(lines, Counts { recorded: 2, all: 8, other_stacks: 0 }, "waits").unwrap();
        assert!(text.contains("\"samples\":[4,6,1],\"timeDeltas\":[0,7,5]"), "{text}");
        assert!(text.contains("\"startTime\":1000000,\"endTime\":1000012"), "{text}");
        assert!(text.contains("\"lineNumber\":8,\"columnNumber\":8},\"hitCount\":0,\"children\":[3,5]"), "{text}");
        assert!(text.contains("\"waits\":8,\"recorded\":2,\"factor\":4"), "{text}");
        assert!(!text.contains("never"), "{text}");
    }
}
