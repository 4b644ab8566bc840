//! Labels: the names that programs give to words, for people. Messages, snapshots and channels show them.
//!
//! A label belongs to a location, so all threads see it, and goes with the memory: [`super::memories`] says when that is gone.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use crate::queue::location::Location;
use crate::sync::{Mutex, lock};

/// The labels of a process, by the addresses of their words. Any thread may call any method.
#[derive(Debug, Default)]
pub struct Labels(Mutex<BTreeMap<usize, Arc<str>>>);

impl Labels {
    /// Gives the word at `location` a label, instead of the one that it has.
    pub fn set(&self, location: Location, label: String) {
        lock(&self.0).insert(location.address(), label.into());
    }

    /// The label of the word at `location`.
    pub fn get(&self, location: Location) -> Option<Arc<str>> {
        lock(&self.0).get(&location.address()).cloned()
    }

    /// The memory at these addresses is gone.
    pub(super) fn forget(&self, addresses: &Range<usize>) {
        let mut labels = lock(&self.0);
        // Most memories have none, and a memory with many is rare.
        while let Some((&address, _)) = labels.range(addresses.clone()).next() {
            labels.remove(&address);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(address: usize) -> Location {
        Location::from_address(address)
    }

    #[test]
    fn the_last_label_stands_until_the_memory_is_gone() {
        let labels = Labels::default();
        labels.set(at(0x1000), "first".to_owned());
        labels.set(at(0x1000), "last".to_owned());
        labels.set(at(0x1ffc), "of the same memory".to_owned());
        labels.set(at(0x2000), "of the next".to_owned());
        assert_eq!(labels.get(at(0x1000)).as_deref(), Some("last"));
        labels.forget(&(0x1000..0x2000));
        assert_eq!(labels.get(at(0x1000)), None);
        assert_eq!(labels.get(at(0x1ffc)), None);
        assert_eq!(labels.get(at(0x2000)).as_deref(), Some("of the next"));
    }
}
