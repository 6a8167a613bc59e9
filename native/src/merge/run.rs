//! Which generations one pass takes over.

use lance_index::mem_wal::SsTable;

use super::fit;
use super::look::Look;
use crate::engine::Engine;
use crate::error::Fault;
use crate::generation::Generation;
use crate::maintain::Refusal;

/// Used where the caller leaves it to us.
const MAX_GENERATIONS: usize = 8;
const MAX_BYTES: i64 = 1 << 30;

/// How much one pass takes over.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub generations: usize,
    pub bytes: i64,
}

impl Limits {
    /// 0 leaves a value to us.
    pub fn new(generations: usize, bytes: i64) -> Self {
        Self {
            generations: match generations {
                0 => MAX_GENERATIONS,
                given => given,
            },
            bytes: match bytes {
                ..=0 => MAX_BYTES,
                given => given,
            },
        }
    }
}

/// The generations of one pass, oldest first; never empty.
#[derive(Clone, Debug)]
pub struct Run {
    pub generations: Vec<Generation>,
}

impl Run {
    /// The run after the mark, within the limits; a single generation that
    /// exceeds them still moves. It ends before a generation that the base
    /// can't take; if that is the first, nothing can be done.
    pub async fn open(
        engine: &Engine,
        uri: &str,
        look: &Look,
        key: &[String],
        limits: Limits,
    ) -> Result<Result<Self, Refusal>, Fault> {
        let mut run = Self {
            generations: Vec::new(),
        };
        for group in groups(look.pending()) {
            let opened = open_all(engine, uri, look, &group).await?;
            let refusal = opened
                .iter()
                .find_map(|one| fit::refusal(&look.base, key, one));
            match refusal {
                Some(refusal) if run.generations.is_empty() => return Ok(Err(refusal)),
                Some(_) => break,
                None if run.has_room_for(&opened, limits) => run.generations.extend(opened),
                None => break,
            }
            if run.generations.len() >= limits.generations {
                break;
            }
        }
        Ok(Ok(run))
    }

    fn has_room_for(&self, more: &[Generation], limits: Limits) -> bool {
        if self.generations.is_empty() {
            return true;
        }
        // Of unknown size is as good as too big.
        let bytes = |all: &[Generation]| match sum(all) {
            -1 => limits.bytes,
            known => known,
        };
        self.generations.len() + more.len() <= limits.generations
            && bytes(&self.generations).saturating_add(bytes(more)) <= limits.bytes
    }

    pub fn from(&self) -> u64 {
        self.generations.first().map_or(0, Generation::number)
    }

    pub fn to(&self) -> u64 {
        self.generations.last().map_or(0, Generation::number)
    }

    pub fn sstables(&self) -> Vec<SsTable> {
        self.generations
            .iter()
            .map(|one| one.sstable.clone())
            .collect()
    }

    /// -1: some generation's is not known.
    pub fn bytes(&self) -> i64 {
        sum(&self.generations)
    }

    pub fn same_as(&self, other: &Self) -> bool {
        self.sstables() == other.sstables()
    }
}

fn sum(generations: &[Generation]) -> i64 {
    let bytes = generations.iter().map(Generation::bytes);
    bytes.fold(0, |sum, bytes| match (sum, bytes) {
        (-1, _) | (_, -1) => -1,
        (sum, bytes) => sum + bytes,
    })
}

async fn open_all(
    engine: &Engine,
    uri: &str,
    look: &Look,
    group: &[SsTable],
) -> Result<Vec<Generation>, Fault> {
    let mut opened = Vec::new();
    for sstable in group {
        opened.push(Generation::open(engine, uri, look.shard, sstable).await?);
    }
    Ok(opened)
}

/// The contiguous run at the front, by generation. Folders that share a number
/// stay together: a mark speaks of numbers.
fn groups(pending: Vec<SsTable>) -> Vec<Vec<SsTable>> {
    let mut groups: Vec<Vec<SsTable>> = Vec::new();
    for sstable in pending {
        let last = groups.last_mut();
        match last {
            Some(group) if group[0].generation == sstable.generation => group.push(sstable),
            Some(group) if group[0].generation + 1 != sstable.generation => break,
            _ => groups.push(vec![sstable]),
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_ends_before_a_gap_and_keeps_folders_of_one_number_together() {
        let pending = [(3, "a"), (4, "b"), (4, "c"), (5, "d"), (7, "e")];
        let pending = pending.map(|(number, path)| SsTable::unmeasured(number, path.into()));
        let grouped = groups(pending.to_vec());
        let paths: Vec<Vec<&str>> = grouped
            .iter()
            .map(|group| group.iter().map(|one| one.path.as_str()).collect())
            .collect();
        assert_eq!(paths, [vec!["a"], vec!["b", "c"], vec!["d"]]);
        assert!(groups(Vec::new()).is_empty());
    }
}
