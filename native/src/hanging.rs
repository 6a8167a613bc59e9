//! Local datasets that do not answer. A look that hangs keeps its thread; without
//! this every round would lose one more to it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::error::{Class, Fault};

/// Datasets whose look did not come back in time, until it does. Named by their
/// path in the store.
#[derive(Default)]
pub struct Hanging {
    returned: Mutex<HashMap<String, Arc<AtomicBool>>>,
}

impl Hanging {
    /// `returned` is set by the look when it comes back, however late.
    pub fn remember(&self, base: &str, returned: &Arc<AtomicBool>) {
        let mut hanging = self.returned.lock().unwrap_or_else(PoisonError::into_inner);
        // It may have come back between the timeout and here.
        if !returned.load(Ordering::Acquire) {
            hanging.insert(base.to_owned(), returned.clone());
        }
    }

    pub fn knows(&self, base: &str) -> bool {
        let mut hanging = self.returned.lock().unwrap_or_else(PoisonError::into_inner);
        if hanging.is_empty() {
            return false;
        }
        hanging.retain(|_, returned| !returned.load(Ordering::Acquire));
        hanging.contains_key(base)
    }

    /// What is answered instead of looking again.
    pub fn fault() -> Fault {
        Fault::new(Class::Timeout, "an earlier look at it hangs still")
    }
}

/// Remembers a look as hanging if it is given up before it returns.
pub struct Watch<'a> {
    pub hanging: &'a Hanging,
    pub base: &'a str,
    pub returned: Arc<AtomicBool>,
}

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        self.hanging.remember(self.base, &self.returned);
    }
}
