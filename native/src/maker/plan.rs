//! Which keys an experiment's writers put, update and delete. Pure.

use std::collections::HashSet;

use super::Spec;
use crate::error::{Class, Fault};

/// One row in so many updates a key of the base.
const UPDATE_EVERY: usize = 5;

/// What one shard's writer does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShardPlan {
    /// Keys put before each flush.
    pub generations: Vec<Vec<String>>,
    /// Keys deleted before the last flush.
    pub tombstones: Vec<String>,
    /// Keys put after the last flush.
    pub stranded: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    pub shards: Vec<ShardPlan>,
    /// Keys alive in base and generations together; without a key, rows.
    pub keys: usize,
}

pub fn base_key(row: usize) -> String {
    format!("base-{row:07}")
}

impl Plan {
    pub fn new(spec: &Spec) -> Result<Self, Fault> {
        check(spec)?;
        let base = spec.fragments * spec.rows;
        let mut live: HashSet<String> = (0..base).map(base_key).collect();
        let shards = if spec.kind.has_wal() { spec.shards } else { 0 };
        let shards: Vec<ShardPlan> = (0..shards)
            .map(|shard| plan_shard(spec, base, shard))
            .collect();
        for shard in &shards {
            live.extend(shard.generations.iter().flatten().cloned());
        }
        for key in shards.iter().flat_map(|shard| &shard.tombstones) {
            live.remove(key);
        }
        let plan = Self {
            shards,
            keys: live.len(),
        };
        Ok(match spec.keyless {
            true => Self {
                keys: base + plan.pending_rows(),
                ..plan
            },
            false => plan,
        })
    }

    pub fn pending_rows(&self) -> usize {
        let rows = |shard: &ShardPlan| shard.generations.iter().map(Vec::len).sum::<usize>();
        self.shards.iter().map(rows).sum::<usize>() + self.tombstones()
    }

    pub fn tombstones(&self) -> usize {
        self.shards.iter().map(|shard| shard.tombstones.len()).sum()
    }

    pub fn stranded(&self) -> usize {
        self.shards.iter().map(|shard| shard.stranded.len()).sum()
    }
}

fn check(spec: &Spec) -> Result<(), Fault> {
    let invalid = |message: &str| Err(Fault::new(Class::Invalid, message));
    let (tombstones, stranded) = (spec.tombstones.get(), spec.stranded.get());
    if spec.rows == 0 {
        return invalid("rows must be at least 1");
    }
    if tombstones + stranded > 0 && (!spec.kind.has_wal() || spec.shards == 0) {
        return invalid("tombstones and stranded rows need a shard");
    }
    if tombstones > 0 && spec.keyless {
        return invalid("tombstones need a key");
    }
    if tombstones > 0 && spec.generations == 0 {
        return invalid("tombstones need a generation");
    }
    Ok(())
}

/// Keys of the base are dealt out: one key is only ever written by one shard.
fn plan_shard(spec: &Spec, base: usize, shard: usize) -> ShardPlan {
    let own: Vec<String> = (shard..base).step_by(spec.shards).map(base_key).collect();
    let mut next = 0;
    let generations: Vec<Vec<String>> = (0..spec.generations)
        .map(|generation| {
            let mut updates = 0;
            let key = |row: usize| {
                if row % UPDATE_EVERY == UPDATE_EVERY - 1 && updates < own.len() {
                    updates += 1;
                    next += 1;
                    return own[(next - 1) % own.len()].clone();
                }
                format!("s{shard}-g{generation}-r{row}")
            };
            (0..spec.rows).map(key).collect()
        })
        .collect();
    ShardPlan {
        tombstones: tombstones(spec, &own, &generations),
        stranded: (0..spec.stranded.get())
            .map(|row| format!("s{shard}-wal-r{row}"))
            .collect(),
        generations,
    }
}

/// Keys of the base from its end, then new ones of earlier generations; none
/// that the last generation itself puts.
fn tombstones(spec: &Spec, own: &[String], generations: &[Vec<String>]) -> Vec<String> {
    let (last, earlier) = match generations.split_last() {
        Some((last, earlier)) => (last.iter().collect::<HashSet<_>>(), earlier),
        None => return Vec::new(),
    };
    let mut taken = HashSet::new();
    own.iter()
        .rev()
        .chain(earlier.iter().flatten())
        .filter(|key| !last.contains(key) && taken.insert(*key))
        .take(spec.tombstones.get())
        .cloned()
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::maker::Number;
    use crate::maker::schema::Kind;

    fn spec() -> Spec {
        Spec {
            shards: 2,
            generations: 3,
            rows: 10,
            fragments: 2,
            tombstones: Number::Exactly(2),
            stranded: Number::Any(true),
            ..Spec::default()
        }
    }

    #[test]
    fn no_key_of_the_base_is_written_by_two_shards() {
        let plan = Plan::new(&spec()).unwrap();
        let keys = |shard: &ShardPlan| -> HashSet<String> {
            let written = shard.generations.iter().flatten();
            written.chain(&shard.tombstones).cloned().collect()
        };
        assert!(keys(&plan.shards[0]).is_disjoint(&keys(&plan.shards[1])));
    }

    #[test]
    fn no_key_occurs_twice_in_one_generation() {
        let plan = Plan::new(&spec()).unwrap();
        for shard in &plan.shards {
            let last = shard.generations.len() - 1;
            for (generation, keys) in shard.generations.iter().enumerate() {
                let deleted = if generation == last {
                    &shard.tombstones[..]
                } else {
                    &[]
                };
                let all: Vec<_> = keys.iter().chain(deleted).collect();
                assert_eq!(all.iter().collect::<HashSet<_>>().len(), all.len());
            }
        }
    }

    #[test]
    fn what_the_last_generation_updates_is_not_deleted_in_it() {
        let plan = Plan::new(&Spec {
            fragments: 1,
            shards: 1,
            rows: 5,
            generations: 5,
            ..spec()
        });
        let shard = &plan.unwrap().shards[0];
        assert_eq!(shard.generations[4][4], base_key(4));
        assert_eq!(shard.tombstones, [base_key(3), base_key(2)]);
    }

    #[test]
    fn live_keys_are_base_and_new_keys_without_the_deleted() {
        let plan = Plan::new(&spec()).unwrap();
        // 20 of the base, 2 shards * 3 generations * 8 new ones, 2 * 2 deleted.
        assert_eq!(plan.keys, 20 + 48 - 4);
        assert_eq!(plan.pending_rows(), 60 + 4);
        assert_eq!(plan.stranded(), 6);
    }

    #[test]
    fn an_empty_base_is_not_updated_but_can_lose_rows_of_generations() {
        let plan = Plan::new(&Spec {
            fragments: 0,
            ..spec()
        })
        .unwrap();
        assert_eq!(plan.keys, 60 - 4);
        assert_eq!(plan.tombstones(), 4);
    }

    #[test]
    fn without_a_key_every_row_counts() {
        let plan = Plan::new(&Spec {
            keyless: true,
            tombstones: Number::Exactly(0),
            ..spec()
        });
        assert_eq!(plan.unwrap().keys, 20 + 60);
    }

    #[test]
    fn what_can_not_be_made_is_refused() {
        let cases = [
            Spec {
                kind: Kind::Table,
                ..spec()
            },
            Spec {
                shards: 0,
                ..spec()
            },
            Spec {
                generations: 0,
                ..spec()
            },
            Spec { rows: 0, ..spec() },
            Spec {
                keyless: true,
                ..spec()
            },
        ];
        for case in cases {
            let refused = Plan::new(&case).map_err(|fault| fault.class);
            assert_eq!(refused, Err(Class::Invalid), "{case:?}");
        }
    }
}
