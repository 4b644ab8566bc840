//! Taking what a word grants, for the claims in its line.

use super::lines::Section;
use super::request::Request;
use super::word::Word;
use crate::queue::location::Location;
use crate::queue::result::WaitResult;
use crate::queue::waiter_list::WaiterKey;

impl Section<'_> {
    /// The word has changed: the first claims of a strict line are granted what it is enough for; the first of a lock is woken.
    pub(super) fn word_changed(&mut self, location: Location, word: &impl Word) {
        while let Some((key, request, _)) = self.first_claim(location)
            && request.is_strict()
        {
            match self.take(location, request, word) {
                Some(result) => self.grant(key, location, result),
                None => return,
            }
        }
        self.wake_first(location);
    }

    /// Takes what `request` asks for, if the word grants it now.
    pub(super) fn take(&mut self, location: Location, request: Request, word: &impl Word) -> Option<WaitResult> {
        request.take(word).then(|| self.taken(location, request))
    }

    /// What was requested has been taken from the word.
    pub(super) fn taken(&mut self, location: Location, request: Request) -> WaitResult {
        let from_dead = self.inherit(location, request);
        self.note_named(location, request, from_dead);
        if from_dead { WaitResult::AcquiredFromDead } else { WaitResult::Acquired }
    }

    /// The claim with this key has been granted what it asks for: it leaves the line.
    pub(super) fn grant(&mut self, key: WaiterKey, location: Location, result: WaitResult) {
        self.dequeue_granted(key, location, result, |section, waiter, request| {
            if request == Request::Lock {
                section.policy_mut().granted.insert(location, waiter.clone());
            }
        });
    }
}
