//! Where calls of JavaScript came from: stacks as texts, each kept once for the whole process and known by a number.
//!
//! The table is bounded: the stacks that do not fit are [`OTHER`].

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex};

use crate::json;
use crate::sync::lock;

pub type StackId = u32;

pub const NONE: StackId = 0;

/// The number of every stack that was new when the table was full.
pub const OTHER: StackId = StackId::MAX;

/// A bit in the number of a call that was not looked at: probably it has the stack with the rest of the number.
const PROBABLY: StackId = 1 << 30;

const MOST: usize = 2048;

/// How many bytes of a stack are kept, in whole lines.
const LONGEST: usize = 4096;

#[derive(Default)]
struct Stacks {
    numbers: HashMap<Arc<str>, StackId>,
    /// By their numbers, from 1 on.
    texts: Vec<Arc<str>>,
}

static STACKS: LazyLock<Mutex<Stacks>> = LazyLock::new(Mutex::default);

/// Returns the number of a stack: one line for each frame, the innermost first. Functions may have any names.
pub fn number_of(text: &str) -> StackId {
    let text = json::shown(shortened(text));
    let Stacks { numbers, texts } = &mut *lock(&STACKS);
    if let Some(&number) = numbers.get(&*text) {
        return number;
    }
    if texts.len() >= MOST {
        return OTHER;
    }
    let text: Arc<str> = text.into();
    texts.push(Arc::clone(&text));
    let number = texts.len() as StackId;
    numbers.insert(text, number);
    number
}

/// Returns the stack for people, who are told of [`OTHER`], too; and of those that are only probably right.
pub fn shown(number: StackId) -> Option<Arc<str>> {
    match number {
        OTHER => Some(format!("    at an unrecorded place: there are more than {MOST}").into()),
        _ if number & PROBABLY == 0 => lock(&STACKS).texts.get((number as usize).checked_sub(1)?).cloned(),
        _ => shown(number & !PROBABLY).map(|text| text.replacen("at ", "probably at ", 1).into()),
    }
}

fn shortened(text: &str) -> &str {
    if text.len() <= LONGEST {
        return text;
    }
    let end = text.bytes().take(LONGEST).rposition(|byte| byte == b'\n').unwrap_or(0);
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_stack_is_cut_between_two_frames() {
        let line = "at function (file:///ä.js:1:1)\n";
        let text = line.repeat(LONGEST);
        let kept = shortened(&text);
        assert!(kept.len() <= LONGEST && kept.len() > LONGEST - 2 * line.len());
        assert!(text[kept.len()..].starts_with('\n'));
        assert_eq!(shortened(line), line);
    }
}
