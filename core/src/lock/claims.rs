//! The operations of locks: claim, retry, release, free. `word` is always the one at `location`.

use super::bucket::{Line, Section};
use super::{Hold, Outbox, Released, Request, UNLOCKED, Waiter, WaiterListStore, Word};
use crate::clock::Timestamp;
use crate::queue::{BlockedThread, Listed, Location, Ticket, WaitResult};
use crate::sync::Arc;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub enum Claimed {
    Now(WaitResult),
    Pending(Ticket),
}

/// The outcome of freeing a lock that another thread may hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub enum Freed<H> {
    /// It is free, or handed over.
    Now,
    /// It was free before.
    NotLocked,
    /// This thread holds it, or is about to.
    Held(H),
}

impl Section<'_> {
    /// Releases the hold. A lock is handed to the claim whose turn it is, otherwise the quickest thread takes it.
    pub(super) fn release(&mut self, location: Location, hold: Hold, word: &(impl Word + ?Sized)) -> Released {
        let mut released = Released::GoOn;
        if hold.is_of_lock() {
            self.lists.policy.end_grant(location);
            if !word.is_due_elsewhere()
                && let Some(next) = self.turn(location, &mut released)
            {
                let result = self.taken(location, hold, word);
                self.grant(next, location, result);
                return released;
            }
        } else if self.was_stolen(location, hold) {
            return released;
        }
        word.give_back(hold);
        self.word_changed(location, word);
        released
    }

    fn has_line(&self, location: Location) -> bool {
        self.lists.policy.line(location).is_some()
    }

    pub(super) fn claim_or_append(
        &mut self,
        location: Location,
        waiter: Waiter,
        request: Request,
        deadline: Timestamp,
        word: &(impl Word + ?Sized),
    ) -> Claimed {
        if request.is_strict() && self.lists.policy.line(location).is_some_and(Line::awaits_promise) {
            // The promise's event loop may be busy, and this claim waits for no more than its turn.
            self.word_changed(location, word);
        }
        let is_behind_own = !self.lists.policy.is_empty()
            && matches!(&waiter, Waiter::Agent(outbox, _) if self.is_left_to_promise_of(outbox, location, request, word));
        let mut taken = None;
        let listed = Listed { waiter, claim: Some(request) };
        let ticket = self.append(location, listed, deadline, |section| {
            let overtakes = request.is_strict() && section.has_line(location);
            if !(is_behind_own || overtakes) {
                taken = section.take(location, request, word);
            }
            taken.is_none()
        });
        match ticket {
            Some(_) => self.found_held(location),
            None => self.was_taken(location),
        }
        ticket.map_or_else(|| Claimed::Now(taken.unwrap_or(WaitResult::Acquired)), Claimed::Pending)
    }

    /// Whether a free lock is left to the agent's own promise. That is the first in line, and awake.
    #[cold]
    fn is_left_to_promise_of(
        &mut self,
        outbox: &Arc<Outbox>,
        location: Location,
        request: Request,
        word: &(impl Word + ?Sized),
    ) -> bool {
        let is_left = !request.is_strict()
            && self.has_line(location)
            && word.grants(request)
            && self
                .notify_up_to_first_claim(location)
                .and_then(|(first, ..)| self.listed(first))
                .is_some_and(|first| first.waiter.is_of(outbox));
        if is_left {
            // One before it may have been awake, and have timed out just now.
            self.wake_first(location);
        }
        is_left
    }

    /// Wakes the first claims if the word grants something. Whether it does.
    fn check_word(&mut self, location: Location, word: &(impl Word + ?Sized)) -> bool {
        let first = self.waiters(location).find_map(|key| self.claim(key));
        let is_free = first.is_some_and(|request| word.grants(request));
        if is_free {
            self.word_changed(location, word);
        } else {
            self.found_held(location);
        }
        is_free
    }

    pub(super) fn try_take(
        &mut self,
        location: Location,
        request: Request,
        word: &(impl Word + ?Sized),
    ) -> Option<WaitResult> {
        let would_overtake = request.is_strict() && self.has_line(location);
        let taken = if would_overtake { None } else { self.take(location, request, word) };
        taken.inspect(|_| self.was_taken(location))
    }
}

impl WaiterListStore {
    /// Takes the request, or appends `waiter` to the line.
    ///
    /// A thread, which must be the calling one, then calls [`Self::park`], and when it is woken [`Self::retry`]. The
    /// thread that appends a claim makes sure that somebody calls [`Self::check_words`] from time to time.
    pub fn claim(
        &self,
        location: Location,
        waiter: Waiter,
        request: Request,
        deadline: Timestamp,
        word: &(impl Word + ?Sized),
    ) -> Claimed {
        self.critical_section_at(location, |section| section.claim_or_append(location, waiter, request, deadline, word))
    }

    /// Takes the request if that needs no waiting. A promise overtakes no other one of its agent, which has this outbox.
    pub fn try_take(
        &self,
        location: Location,
        request: Request,
        word: &(impl Word + ?Sized),
        promise_of: Option<&Arc<Outbox>>,
    ) -> Option<WaitResult> {
        self.critical_section_at(location, |section| match promise_of {
            Some(outbox) if section.is_left_to_promise_of(outbox, location, request, word) => None,
            _ => section.try_take(location, request, word),
        })
    }

    /// Tells until when a thread's woken claim waits for a promise's. `None`: it retries now.
    pub fn head_start(&self, ticket: Ticket, thread: &Arc<BlockedThread>) -> Option<Timestamp> {
        let until = self.with_waiter(ticket, &Waiter::Thread(Arc::clone(thread)), |section, key, location| {
            let until = section.lists.policy.line(location)?.head_start(key)?;
            (until > section.now()).then_some(until)
        });
        until.flatten()
    }

    /// Retries a claim that has been woken. `None`: it stays in the line, or it is settled already.
    pub fn retry(&self, ticket: Ticket, waiter: &Waiter, word: &(impl Word + ?Sized)) -> Option<WaitResult> {
        self.with_waiter(ticket, waiter, |section, key, location| {
            let request = section.claim(key)?;
            // Should the clock fail, nothing has changed.
            section.now();
            // A call to retry may come late, when its slot has been given to another claim, whose turn it is not.
            if !section.lists.policy.line_mut(location)?.retries(key, waiter.blocks()) {
                return None;
            }
            if request.is_strict() && section.notify_up_to_first_claim(location).is_none_or(|(first, ..)| first != key)
            {
                section.word_changed(location, word);
                return None;
            }
            let Some(taken) = section.take(location, request, word) else {
                section.found_held(location);
                return None;
            };
            let _ = section.unlist(key);
            section.was_taken(location);
            if request.is_strict() {
                section.word_changed(location, word);
            } else if !waiter.blocks() {
                // Other JavaScript may run before this is in the robust list, since a promise hears of it with others.
                section.lists.policy.granted.insert(location, waiter.clone());
            }
            Some(taken)
        })
        .flatten()
    }

    /// Releases in a job of the agent with this outbox, unrung. Its promises count as ready if it `hands_over`.
    /// Returns, too, whether it is to look into its outbox, since nobody else rings.
    pub fn release_unrung<'a>(
        &'a self,
        location: Location,
        hold: Hold,
        word: &(impl Word + ?Sized),
        outbox: &'a Arc<Outbox>,
        hands_over: bool,
    ) -> (Released, bool) {
        let (released, mut wakes) = self.critical_section_and_wakes(location, |section| {
            section.runs = hands_over.then_some(outbox);
            section.release(location, hold, word)
        });
        (released, wakes.withhold(outbox))
    }

    /// Notes that the robust list of `waiter`'s thread has the granted lock.
    pub fn delivered(&self, location: Location, waiter: &Waiter) {
        self.critical_section_at(location, |section| {
            if section.lists.policy.granted.get(&location).is_some_and(|granted| granted.is(waiter)) {
                section.lists.policy.end_grant(location);
            }
        });
    }

    /// Undoes [`Self::delivered`]: the lock is on its way to `waiter` again.
    pub fn undelivered(&self, location: Location, waiter: Waiter) {
        self.critical_section_at(location, |section| {
            section.lists.policy.granted.insert(location, waiter);
        });
    }

    /// Frees a lock without a known holder. `holder` finds one, given the waiter that the lock is on its way to.
    ///
    /// # Why the answer is right
    /// A thread that takes the lock in JavaScript notes before that it is about to. A thread that gives it back there
    /// keeps a note until it has looked at the counter. This counts as a waiter meanwhile, so that thread comes here
    /// afterwards and waits for the bucket, with its note. So if the word is locked, its holder was on its way to
    /// holding it when the counter was raised, or has taken it from a waiter; and either is noted. `holder` must find
    /// each noted holder throughout, though lists change meanwhile.
    ///
    /// This holds for holders by means of this package. Code that uses the bare word notes nothing: if it frees the
    /// lock while holders are looked for, the lock of one that takes it at that moment is freed.
    pub fn free<H>(
        &self,
        location: Location,
        word: &(impl Word + ?Sized),
        holder: impl FnOnce(Option<&Waiter>) -> Option<H>,
    ) -> Freed<H> {
        self.critical_section_at(location, |section| {
            section.counted(location, |section| {
                if word.load() == UNLOCKED {
                    return Freed::NotLocked;
                }
                if let Some(holder) = holder(section.lists.policy.granted.get(&location)) {
                    return Freed::Held(holder);
                }
                section.release(location, Hold::Lock, word);
                Freed::Now
            })
        })
    }

    /// Gives `body` the waiter that the lock is on its way to.
    pub fn with_grant<R>(&self, location: Location, body: impl FnOnce(Option<&Waiter>) -> R) -> R {
        self.critical_section_at(location, |section| body(section.lists.policy.granted.get(&location)))
    }

    /// Serves the line of a word that JavaScript changed. It had seen a waiter counted.
    pub fn word_changed(&self, location: Location, word: &(impl Word + ?Sized)) {
        self.critical_section_at(location, |section| section.word_changed(location, word));
    }

    /// Makes a writer a reader, by `change`, and serves the line.
    pub fn downgrade(&self, location: Location, word: &(impl Word + ?Sized), change: impl FnOnce()) {
        self.critical_section_at(location, |section| {
            change();
            section.word_changed(location, word);
        });
    }

    /// Wakes the first claim without reading the word, which may be gone.
    pub fn wake_first(&self, location: Location) {
        self.critical_section_at(location, |section| {
            section.was_freed(location);
            section.wake_first(location);
        });
    }

    /// Looks at the word of one line. Returns whether it grants something; `None` if there is no line.
    pub fn check_word(&self, location: Location, word: &(impl Word + ?Sized)) -> Option<bool> {
        self.critical_section_at(location, |section| {
            section.has_line(location).then(|| section.check_word(location, word))
        })
    }

    /// Looks at the words of all lines but those of names. A word may have been freed without a call: then its first
    /// claims are woken. Returns whether any was; `None` if there is no line whose word may be freed so.
    ///
    /// `with_word` is called in critical sections, for locations with claims, and calls its function with the word.
    pub fn check_words(&self, with_word: impl Fn(Location, &mut dyn FnMut(&dyn Word))) -> Option<bool> {
        let mut found = None;
        for index in 0..self.buckets.len() {
            self.critical_section(index, |section| {
                for location in section.lists.policy.words() {
                    with_word(location, &mut |word| {
                        let is_free = section.check_word(location, word);
                        if is_free || !word.has_known_holder() {
                            *found.get_or_insert(false) |= is_free;
                        }
                    });
                }
            });
        }
        found
    }
}
