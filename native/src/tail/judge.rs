//! What an entry's rows have come to. Pure; the rules are told in README.md.

use std::collections::HashSet;

use serde::Serialize;

use super::entry::Entry;
use super::flushed::Flushed;
use super::history::{Drains, Record};

/// See `lance.TailEntry`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Its rows are in generations that the shard's manifest names.
    Contained,
    /// The base has them, or has had them.
    InBase,
    /// Later entries of the tail have newer rows of all its keys.
    Superseded,
    /// In none of the generations there ever were, and not in the base.
    Stranded,
    Unknown,
}

/// What a state was concluded from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ground {
    /// Nothing has its rows.
    #[default]
    Absence,
    /// A reader sees its rows now, or newer ones of the tail.
    Content,
    /// The number of the generation that it names. No writer replays an entry whose
    /// generation was flushed.
    Number,
    /// A merge of ours put it down.
    Record,
    /// The log's order: the newest generation ends with it or after it.
    Order,
}

/// An entry with rows, and what became of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judged {
    pub position: u64,
    pub time: i64,
    /// Rows; -1: not known.
    pub rows: i64,
    pub state: State,
    /// The generations that have them, where they are contained.
    pub generations: Vec<u64>,
    pub ground: Ground,
    /// It is not stepped over without all entries up to this one: they have other
    /// states of its keys.
    pub until: u64,
}

/// What is known of a shard beside its WAL.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// Generations that the manifest names.
    pub listed: HashSet<u64>,
    pub current_generation: u64,
    /// Last generation that is in the base.
    pub mark: u64,
    pub record: Option<Record>,
    pub drains: Drains,
    /// The shard has no manifest, or was made anew: nothing can be concluded from
    /// numbers and records.
    pub restarted: bool,
    /// Rows can be compared with those of other places.
    pub comparable: bool,
    /// How far the log was flushed, where its order tells.
    pub flushed: Option<Flushed>,
}

impl Facts {
    /// What the generation that an entry names tells already.
    pub fn by_generation(&self, generation: u64) -> Option<State> {
        if self.listed.contains(&generation) {
            return Some(State::Contained);
        }
        // Lance itself trusts the number: it never replays such an entry.
        let gone = generation < self.current_generation && generation <= self.mark;
        (gone && !self.restarted).then_some(State::InBase)
    }

    /// What is known of an entry without a look at its rows.
    pub fn told(&self, entry: &Entry) -> Option<(State, Ground)> {
        let by_number = entry.generation.and_then(|one| self.by_generation(one));
        if let Some(state) = by_number {
            return Some((state, Ground::Number));
        }
        let record = self.record.as_ref().filter(|_| !self.restarted);
        let put_down = record.is_some_and(|record| record.checked.has(entry.position));
        if put_down {
            return Some((State::InBase, Ground::Record));
        }
        let flushed = self.flushed.filter(|_| entry.generation.is_none());
        flushed
            .filter(|flushed| entry.position <= flushed.through)
            .map(|_| (State::Contained, Ground::Order))
    }

    /// Whether only the log's order could tell of some of them.
    pub fn are_untold(&self, entries: &[Entry]) -> bool {
        let mut entries = entries.iter();
        !self.restarted
            && self.comparable
            && entries.any(|one| one.generation.is_none() && self.told(one).is_none())
    }

    /// Whether an entry names a generation that was not flushed yet: its rows are
    /// in none, whatever is found elsewhere.
    pub fn is_unflushed(&self, entry: &Entry) -> bool {
        if self.restarted {
            return false;
        }
        match (entry.generation, self.flushed) {
            (Some(generation), _) => generation >= self.current_generation,
            (None, Some(flushed)) => entry.position > flushed.through,
            (None, None) => false,
        }
    }

    /// Whether an entry came after all generations that are in the base, or is
    /// known to be in none of them.
    pub fn is_younger(&self, entry: &Entry) -> bool {
        let record = self.record.as_ref().filter(|_| !self.restarted);
        record.is_some_and(|one| one.mark == self.mark && one.checked.excludes(entry.position))
    }

    /// The state of an entry of which nothing else tells.
    pub fn missing(&self, entry: &Entry) -> State {
        if self.restarted || entry.rows.is_none() {
            return State::Unknown;
        }
        if self.is_unflushed(entry) {
            return State::Stranded;
        }
        match entry.generation {
            // Drained by somebody who left no mark. No writer replays it.
            Some(_) => return State::Unknown,
            None if !self.comparable => return State::Unknown,
            None => {}
        }
        let position = entry.position;
        let (mark, since_version) = match &self.record {
            None => (0, 0),
            Some(Record { mark, checked }) if checked.excludes(position) => {
                (*mark, checked.manifest)
            }
            // It was there, and nothing is known of it.
            Some(_) => return State::Unknown,
        };
        self.missing_since(entry.time, mark, since_version)
    }

    /// Whether it can have been in a generation that has left the manifest:
    /// one above `mark` that left after `since_version`, not before `time`.
    fn missing_since(&self, time: i64, mark: u64, since_version: u64) -> State {
        let drains = &self.drains;
        let all_known = drains.since_version <= since_version || drains.since_time <= time;
        let possible = drains.drains.iter().any(|drain| {
            drain.version > since_version
                && drain.time >= time
                && drain.removed.iter().any(|generation| *generation > mark)
        });
        match all_known && !possible {
            true => State::Stranded,
            false => State::Unknown,
        }
    }
}

impl Judged {
    /// Whether its rows are in the base and the generations that `counts` lets pass.
    pub fn is_in(&self, counts: impl Fn(u64) -> bool) -> bool {
        match self.state {
            State::InBase => true,
            State::Contained => self.generations.iter().all(|one| counts(*one)),
            State::Superseded | State::Stranded | State::Unknown => false,
        }
    }
}

/// The last position up to which every entry with rows is accounted for by the
/// base and the generations that `counts` lets pass, and no later one is needed to
/// judge them; `cursor` if there is none.
pub fn covered_through(judged: &[Judged], cursor: u64, counts: impl Fn(u64) -> bool) -> u64 {
    let accounted = |one: &&Judged| one.state == State::Superseded || one.is_in(&counts);
    let (mut covered, mut until) = (cursor, 0);
    for one in judged.iter().take_while(accounted) {
        until = one.until.max(until);
        if until <= one.position {
            covered = one.position;
        }
    }
    covered
}

#[cfg(test)]
mod tests {
    use super::super::history::{Checked, Drain};
    use super::*;

    fn entry(position: u64, time: i64) -> Entry {
        Entry {
            position,
            time,
            count: 1,
            rows: Some(vec![]),
            ..Entry::default()
        }
    }

    fn of_generation(generation: u64) -> Entry {
        Entry {
            generation: Some(generation),
            ..entry(5, 100)
        }
    }

    fn facts(drains: &[(u64, i64, u64)]) -> Facts {
        let drain = |&(version, time, generation): &(u64, i64, u64)| Drain {
            version,
            time,
            removed: vec![generation],
            folders: vec![],
        };
        Facts {
            listed: HashSet::from([7, 8]),
            current_generation: 9,
            mark: 6,
            comparable: true,
            drains: Drains {
                drains: drains.iter().map(drain).collect(),
                since_version: 0,
                since_time: i64::MIN,
                ..Drains::default()
            },
            ..Facts::default()
        }
    }

    fn record(open: &[u64]) -> Option<Record> {
        let checked = Checked {
            covered: 3,
            proven: vec![(6, 8)],
            open: open.to_vec(),
            seen: 12,
            manifest: 20,
            taken: vec![],
        };
        Some(Record { mark: 6, checked })
    }

    #[test]
    fn an_entry_that_names_its_generation_is_where_that_is() {
        let facts = facts(&[]);
        assert_eq!(facts.by_generation(7), Some(State::Contained));
        assert_eq!(facts.by_generation(6), Some(State::InBase));
        assert_eq!(facts.by_generation(9), None);
        assert_eq!(facts.missing(&of_generation(9)), State::Stranded);
        // Below the counter, above the mark, not listed: taken by somebody else.
        let taken = Facts { mark: 3, ..facts };
        assert_eq!(taken.by_generation(5), None);
        assert_eq!(taken.missing(&of_generation(5)), State::Unknown);
    }

    #[test]
    fn without_any_drain_a_missing_entry_is_stranded() {
        assert_eq!(facts(&[]).missing(&entry(5, 100)), State::Stranded);
    }

    #[test]
    fn an_entry_written_after_the_last_drain_is_stranded_and_one_before_it_unknown() {
        let facts = facts(&[(4, 50, 1), (6, 100, 2)]);
        assert_eq!(facts.missing(&entry(5, 101)), State::Stranded);
        // Of the same moment: nobody knows which came first.
        assert_eq!(facts.missing(&entry(5, 100)), State::Unknown);
        assert_eq!(facts.missing(&entry(5, 70)), State::Unknown);
    }

    #[test]
    fn where_manifests_were_pruned_only_younger_entries_can_be_stranded() {
        let mut facts = facts(&[]);
        (facts.drains.since_version, facts.drains.since_time) = (30, 80);
        assert_eq!(facts.missing(&entry(5, 80)), State::Stranded);
        assert_eq!(facts.missing(&entry(5, 79)), State::Unknown);
    }

    #[test]
    fn a_record_of_ours_tells_of_what_it_names_and_of_nothing_else() {
        let ours = facts(&[(21, 200, 6)]);
        let ours = Facts {
            record: record(&[5]),
            ..ours
        };
        let in_base = Some((State::InBase, Ground::Record));
        for (position, told) in [
            (3, in_base),
            (4, None),
            (6, in_base),
            (8, in_base),
            (9, None),
        ] {
            assert_eq!(ours.told(&entry(position, 100)), told, "{position}");
        }
        assert_eq!(ours.missing(&entry(5, 100)), State::Stranded);
        // There, and not spoken of.
        assert_eq!(ours.missing(&entry(4, 100)), State::Unknown);
        assert_eq!(ours.missing(&entry(11, 100)), State::Unknown);
        // Written afterwards: what we drained can't have it.
        assert_eq!(ours.missing(&entry(13, 150)), State::Stranded);
    }

    #[test]
    fn a_drain_of_somebody_else_after_our_record_makes_older_entries_unknown() {
        let theirs = Facts {
            record: record(&[5]),
            ..facts(&[(21, 200, 6), (22, 300, 7)])
        };
        assert_eq!(theirs.missing(&entry(5, 100)), State::Unknown);
        assert_eq!(theirs.missing(&entry(13, 150)), State::Unknown);
        assert_eq!(theirs.missing(&entry(14, 301)), State::Stranded);
    }

    #[test]
    fn nothing_follows_from_numbers_of_a_shard_that_started_again() {
        let again = Facts {
            restarted: true,
            record: record(&[5]),
            ..facts(&[])
        };
        assert_eq!(again.told(&entry(3, 100)), None);
        assert_eq!(again.missing(&entry(5, 100)), State::Unknown);
        assert_eq!(again.by_generation(6), None);
        assert_eq!(again.by_generation(7), Some(State::Contained));
    }

    #[test]
    fn coverage_ends_before_the_first_entry_that_is_not_accounted_for() {
        let one = |position, state, generations: &[u64]| Judged {
            position,
            time: 0,
            rows: 1,
            state,
            generations: generations.to_vec(),
            ground: Ground::Content,
            until: 0,
        };
        let mut tail = [
            one(4, State::InBase, &[]),
            one(5, State::Contained, &[2]),
            one(7, State::Superseded, &[]),
            one(8, State::Contained, &[3]),
            one(9, State::Stranded, &[]),
            one(10, State::InBase, &[]),
        ];
        assert_eq!(covered_through(&tail, 3, |_| true), 8);
        assert_eq!(covered_through(&tail, 3, |generation| generation <= 2), 7);
        assert_eq!(covered_through(&tail, 3, |_| false), 4);
        assert_eq!(covered_through(&tail[4..], 3, |_| true), 3);
        // Entries that belong together are covered together.
        (tail[1].until, tail[2].until) = (7, 8);
        assert_eq!(covered_through(&tail, 3, |_| true), 8);
        tail[2].until = 9;
        assert_eq!(covered_through(&tail, 3, |_| true), 4);
    }
}
