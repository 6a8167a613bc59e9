//! What opening a writer would replay, and whether that is harmless. Pure.

use lance_index::mem_wal::ShardStatus;

use crate::maintain::{Refusal, count};
use crate::shard::Latest;
use crate::tail::{Examined, Ground, Judged, State, covered_by};

const UNKNOWN_TAIL: &str = "unknown_tail";

/// Claiming the shard would fence its writer.
pub fn live() -> Refusal {
    let sentence = "the shard was written or claimed a short while ago: its writer may still be \
                    alive";
    Refusal::new("live", sentence)
}

/// What sealing a shard comes to.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// Entries up to here are stepped over.
    pub covered: u64,
    /// Entries with rows after that, in order: the writer replays all of them.
    pub replayed: Vec<Judged>,
    /// Entries that nobody looked at, after all others.
    left: u64,
    touched_time: i64,
}

impl Plan {
    pub fn of(examined: &Examined) -> Self {
        let covered = covered_by(&examined.judged, examined.cursor, |_| true);
        let after = |one: &&Judged| one.position > covered && one.state.is_replayed();
        Self {
            covered,
            replayed: examined.judged.iter().filter(after).cloned().collect(),
            left: examined.left(),
            touched_time: examined.touched_time,
        }
    }

    /// Whether it is refused because the tail is too long to be looked at as a
    /// whole, so that stepping over its beginning lets another look get further.
    pub fn gets_further(&self, refused: Option<&Refusal>) -> bool {
        self.left > 0 && refused.is_some_and(|one| one.code == UNKNOWN_TAIL)
    }

    /// One batch at least for each entry; a put of several keeps them apart.
    pub fn batches(&self) -> usize {
        let batches: i64 = self.replayed.iter().map(|one| one.rows.max(1)).sum();
        batches as usize
    }

    /// Whether there is something to do, and the shard's writer is gone for so long.
    pub fn is_silent(&self, since: i64) -> bool {
        (!self.replayed.is_empty() || self.left > 0) && self.touched_time <= since
    }

    /// Why it must not be done. `silent_since`: a shard that was written later has
    /// a writer.
    pub fn refused(
        &self,
        manifest: Option<&Latest>,
        silent_since: i64,
        allow_unknown: bool,
    ) -> Option<Refusal> {
        if manifest.is_some_and(|one| one.content.status == ShardStatus::Sealed) {
            let sentence = "its owner has sealed the shard: no writer may open it";
            return Some(Refusal::new("sealed", sentence));
        }
        if self.replayed.is_empty() && self.left == 0 {
            return None;
        }
        if self.touched_time > silent_since {
            return Some(live());
        }
        match allow_unknown && manifest.is_some() {
            true => None,
            false => self.harmful(manifest.is_some()),
        }
    }

    /// Rows that are no longer the newest, and would become so again.
    fn harmful(&self, has_manifest: bool) -> Option<Refusal> {
        let refuse = |sentence| Some(Refusal::new(UNKNOWN_TAIL, sentence));
        let number = |which: fn(&&Judged) -> bool| self.replayed.iter().filter(which).count();
        let unknown = number(|one| one.state == State::Unknown) as i64 + self.left as i64;
        if unknown > 0 || !has_manifest {
            return refuse(format!(
                "nobody can tell of {} whether the base has or had the rows: replaying them can \
                 bring back deleted rows and old values",
                count(unknown.max(1), "WAL entry", "WAL entries"),
            ));
        }
        // What a reader sees now is not changed by being written again, and an entry
        // whose generation was flushed is not replayed.
        let put_down = |one: &&Judged| one.state == State::InBase && one.ground == Ground::Record;
        match number(put_down) as i64 {
            0 => None,
            in_base => refuse(format!(
                "{} after the stranded ones: replaying them can bring back deleted rows and old \
                 values",
                count(
                    in_base,
                    "WAL entry, whose rows the base has, comes",
                    "WAL entries, whose rows the base has, come"
                ),
            )),
        }
    }
}

impl State {
    /// Whether an entry that is not stepped over is worth telling of. One that
    /// later entries supersede is replayed before them and so changes nothing.
    fn is_replayed(self) -> bool {
        self != Self::Superseded
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn examined(states: &[State]) -> Examined {
        let judged = |(index, state): (usize, &State)| Judged {
            position: 11 + index as u64,
            time: 1000,
            rows: 2,
            state: *state,
            generations: vec![1],
            ground: match state {
                InBase => Ground::Record,
                _ => Ground::Content,
            },
            until: 0,
        };
        Examined {
            cursor: 10,
            next: 11 + states.len() as u64,
            looked: 10 + states.len() as u64,
            judged: states.iter().enumerate().map(judged).collect(),
            newest_time: 900,
            touched_time: 1000,
        }
    }

    fn manifest() -> Latest {
        Latest {
            version: 3,
            etag: String::new(),
            time: 0,
            content: lance_index::mem_wal::ShardManifest {
                shard_id: uuid::Uuid::nil(),
                version: 3,
                shard_spec_id: 0,
                shard_field_values: Default::default(),
                writer_epoch: 1,
                replay_after_wal_entry_position: 10,
                wal_entry_position_last_seen: 10,
                current_generation: 2,
                sstables: vec![],
                status: ShardStatus::Active,
            },
        }
    }

    fn code(states: &[State], allow_unknown: bool) -> &'static str {
        let refused = Plan::of(&examined(states)).refused(Some(&manifest()), 1000, allow_unknown);
        refused.map_or("", |refusal| refusal.code)
    }

    use State::{Contained, InBase, Stranded, Superseded, Unknown};

    #[test]
    fn what_is_accounted_for_is_stepped_over_and_the_rest_replayed() {
        let plan = Plan::of(&examined(&[
            InBase, Contained, Stranded, Superseded, Stranded,
        ]));
        assert_eq!(plan.covered, 12);
        let positions: Vec<_> = plan.replayed.iter().map(|one| one.position).collect();
        assert_eq!(positions, [13, 15]);
    }

    #[test]
    fn only_what_may_set_rows_back_is_refused() {
        for (states, expected) in [
            (&[InBase, Stranded][..], ""),
            (&[Stranded, Superseded, Stranded], ""),
            (&[Stranded, Contained], ""),
            (&[Stranded, InBase], "unknown_tail"),
            (&[Stranded, Unknown], "unknown_tail"),
            (&[InBase, Contained], ""),
        ] {
            assert_eq!(code(states, false), expected, "{states:?}");
            assert_eq!(code(states, true), "", "{states:?}");
        }
    }

    #[test]
    fn what_a_reader_sees_already_may_be_replayed() {
        for ground in [Ground::Content, Ground::Number] {
            let mut tail = examined(&[Stranded, InBase]);
            tail.judged[1].ground = ground;
            let refused = Plan::of(&tail).refused(Some(&manifest()), 1000, false);
            assert!(refused.is_none(), "{ground:?}");
        }
    }

    #[test]
    fn a_shard_with_a_writer_or_sealed_by_its_owner_is_left_alone() {
        let plan = Plan::of(&examined(&[Stranded]));
        let live = plan.refused(Some(&manifest()), 999, true).unwrap();
        assert_eq!(live.code, "live");
        let mut dropped = manifest();
        dropped.content.status = ShardStatus::Sealed;
        let sealed = plan.refused(Some(&dropped), 1000, true).unwrap();
        assert_eq!(sealed.code, "sealed");
    }

    #[test]
    fn without_a_manifest_nothing_is_replayed() {
        let plan = Plan::of(&examined(&[Unknown]));
        assert_eq!(plan.refused(None, 1000, true).unwrap().code, "unknown_tail");
    }

    #[test]
    fn entries_that_nobody_looked_at_are_unknown() {
        let mut more = examined(&[Stranded]);
        more.next += 1;
        let refused = Plan::of(&more).refused(Some(&manifest()), 1000, false);
        assert_eq!(refused.unwrap().code, "unknown_tail");
    }
}
