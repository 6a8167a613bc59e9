//! Whether a folder may go, or why it stays. Pure.

use super::folder::Folder;
use crate::tail::{Drains, Targets};

/// What is known of a shard.
pub struct Facts {
    pub current_generation: u64,
    /// Last generation that is in the base.
    pub mark: u64,
    /// What WAL entries past the flush cursor name.
    pub tail: Targets,
    pub past: Drains,
    pub now: i64,
    /// Ms since the drain, where the mark proves that the base has the rows.
    pub grace: i64,
    pub unknown_grace: i64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    Delete,
    /// `due`: unix ms from when on nothing but waiting was missing; 0: waiting
    /// does not help.
    Keep {
        why: String,
        due: i64,
    },
}

impl Verdict {
    pub fn keep(why: impl Into<String>) -> Self {
        Self::Keep {
            why: why.into(),
            due: 0,
        }
    }
}

impl Facts {
    /// Whether the folder's time is over, by `now`.
    pub fn lets_go(&self, folder: &Folder) -> bool {
        self.judge(folder, drained_at(&self.past, folder)) == Verdict::Delete
    }

    /// `since`: when the folder left the manifest, at the latest.
    pub fn judge(&self, folder: &Folder, since: i64) -> Verdict {
        let generation = folder.generation;
        if let Some(file) = &folder.unknown {
            return Verdict::keep(format!(
                "it holds a file that is not a generation's: {file}"
            ));
        }
        if generation >= self.current_generation {
            return Verdict::keep(format!(
                "generation {generation} is still to be flushed: the next is {}",
                self.current_generation
            ));
        }
        if !self.tail.complete {
            return Verdict::keep("not all WAL entries past the flush cursor could be read");
        }
        if self.tail.folders.contains(&folder.name) || self.tail.generations.contains(&generation) {
            return Verdict::keep("a WAL entry past the flush cursor names it as its place");
        }
        let in_base = generation <= self.mark && self.mark < self.current_generation;
        let (grace, whose) = match in_base {
            true => (self.grace, "readers may still hold it"),
            false => (
                self.unknown_grace,
                "nothing proves that the base has its rows: readers and whoever drained it get time",
            ),
        };
        let due = since.saturating_add(grace);
        match due <= self.now {
            true => Verdict::Delete,
            false => Verdict::Keep {
                why: whose.to_owned(),
                due,
            },
        }
    }
}

/// When a folder left the shard's manifest. Where that is not known: at the
/// latest with the oldest manifest that is; and never before its own files.
pub fn drained_at(past: &Drains, folder: &Folder) -> i64 {
    let known = past
        .drains
        .iter()
        .rev()
        .find(|drain| drain.folders.contains(&folder.name));
    let at = match known {
        Some(drain) => drain.time,
        // It never was in the manifest: what a flush left that failed.
        None if past.since_version == 0 => folder.newest_time,
        None => past.oldest_time,
    };
    at.max(folder.newest_time)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tail::Drain;

    fn folder(generation: u64) -> Folder {
        Folder {
            name: format!("0123abcd_gen_{generation}"),
            generation,
            newest_time: 100,
            ..Folder::default()
        }
    }

    fn facts() -> Facts {
        Facts {
            current_generation: 9,
            mark: 5,
            tail: Targets {
                complete: true,
                ..Targets::default()
            },
            past: Drains::default(),
            now: 1000,
            grace: 300,
            unknown_grace: 800,
        }
    }

    fn due(verdict: Verdict) -> i64 {
        match verdict {
            Verdict::Delete => -1,
            Verdict::Keep { due, .. } => due,
        }
    }

    #[test]
    fn a_folder_goes_when_its_grace_is_over_and_waits_until_then() {
        let facts = facts();
        assert_eq!(facts.judge(&folder(5), 700), Verdict::Delete);
        assert_eq!(due(facts.judge(&folder(5), 701)), 1001);
        // Not known to be in the base: longer.
        assert_eq!(due(facts.judge(&folder(6), 700)), 1500);
        assert_eq!(facts.judge(&folder(6), 200), Verdict::Delete);
    }

    #[test]
    fn a_mark_that_the_counter_has_not_reached_proves_nothing() {
        let again = Facts { mark: 9, ..facts() };
        assert_eq!(due(again.judge(&folder(5), 700)), 1500);
    }

    #[test]
    fn waiting_does_not_help_where_somebody_may_need_it() {
        let named = |tail| Facts { tail, ..facts() };
        let by_number = Targets {
            generations: [4].into(),
            complete: true,
            ..Targets::default()
        };
        let by_name = Targets {
            folders: [folder(4).name].into(),
            complete: true,
            ..Targets::default()
        };
        for (facts, folder) in [
            (facts(), folder(9)),
            (named(by_number), folder(4)),
            (named(by_name), folder(4)),
            (named(Targets::default()), folder(4)),
            (
                facts(),
                Folder {
                    unknown: Some("notes.txt".to_owned()),
                    ..folder(4)
                },
            ),
        ] {
            assert_eq!(due(facts.judge(&folder, 0)), 0, "{folder:?}");
        }
    }

    #[test]
    fn the_time_of_the_drain_is_the_manifests() {
        let drain = Drain {
            version: 7,
            time: 500,
            removed: vec![4],
            folders: vec![folder(4).name],
        };
        let past = Drains {
            drains: vec![drain],
            since_version: 3,
            since_time: 400,
            oldest_time: 400,
            in_order: true,
        };
        assert_eq!(drained_at(&past, &folder(4)), 500);
        // It left before the oldest manifest that is left.
        assert_eq!(drained_at(&past, &folder(3)), 400);
        let whole = Drains::default();
        assert_eq!(drained_at(&whole, &folder(3)), 100);
        let younger = Folder {
            newest_time: 900,
            ..folder(4)
        };
        assert_eq!(drained_at(&past, &younger), 900);
    }
}
