//! How far the log was flushed, told without a key and without numbers. Writers before
//! Lance 14 put no generation's number into an entry, and equal rows prove nothing where
//! there is no key. But a generation has the rows of whole entries, all of those after
//! the generation before it and up to one: which one that is, is told by how many rows
//! it has and by what they are. Where two answers fit, nobody knows.

use std::collections::HashMap;

use futures::TryStreamExt;
use lance::dataset::mem_wal::arrow_schema_with_field_ids;

use super::entry::{self, Entry};
use super::examine::{BYTES_MAX, Place};
use super::shape::Shape;
use crate::base::Size;
use crate::error::Fault;
use crate::generation::in_order;

/// Rows of a generation that are compared.
const ROWS_MAX: i64 = 1 << 20;

/// Every entry up to `through` is in `generation` or in one before it, and no later
/// one is in any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flushed {
    pub through: u64,
    pub generation: u64,
}

/// Rows by their content, and how often each is there.
type Bag = HashMap<u128, usize>;

impl Place<'_> {
    /// `entries`: all of the tail that have rows. The newest generation must be listed
    /// still.
    pub async fn flushed(
        &self,
        shape: &Shape,
        entries: &[Entry],
    ) -> Result<Option<Flushed>, Fault> {
        let Some(content) = self.manifest.map(|latest| &latest.content) else {
            return Ok(None);
        };
        let newest = content.current_generation.saturating_sub(1);
        let mut own = content
            .sstables
            .iter()
            .filter(|one| one.generation == newest);
        let (Some(sstable), None) = (own.next(), own.next()) else {
            return Ok(None);
        };
        let table = self.open(&sstable.path).await?;
        let size = Size::of(&table, 0).await?;
        if size.rows == 0 || size.rows > ROWS_MAX || size.bytes > BYTES_MAX as i64 {
            return Ok(None);
        }
        let Some(mut log) = self.before(shape, size.rows as usize).await? else {
            return Ok(None);
        };
        for entry in entries {
            let Some(rows) = &entry.rows else {
                return Ok(None);
            };
            log.push((entry.position, rows.iter().map(|row| row.0).collect()));
        }
        let schema = arrow_schema_with_field_ids(table.schema());
        let mut rows = Bag::new();
        let mut batches = Box::pin(in_order(&table).try_into_stream()).await?;
        while let Some(batch) = batches.try_next().await? {
            for (key, _) in shape.rows(&schema, batch)? {
                *rows.entry(key).or_default() += 1;
            }
        }
        let first = entries.first().map_or(u64::MAX, |one| one.position);
        Ok(ends_with(&log, first, &rows).map(|through| Flushed {
            through,
            generation: newest,
        }))
    }

    /// The entries up to the cursor, as many as have `wanted` rows, oldest first; all
    /// where there are fewer. `None`: some can't be read, or are there no longer.
    async fn before(
        &self,
        shape: &Shape,
        wanted: usize,
    ) -> Result<Option<Vec<(u64, Vec<u128>)>>, Fault> {
        let cursor = self
            .manifest
            .map_or(0, |one| one.content.replay_after_wal_entry_position);
        let (mut log, mut found, mut room) = (Vec::new(), 0, BYTES_MAX);
        for position in (1..=cursor).rev() {
            if found >= wanted {
                break;
            }
            let read = entry::read(self.remote, self.shard, position, shape, room).await?;
            let Some((entry, size)) = read.filter(|(_, size)| *size <= room) else {
                return Ok(None);
            };
            let Some(rows) = entry.rows else {
                return Ok(None);
            };
            room -= size;
            found += rows.len();
            if !rows.is_empty() {
                log.push((position, rows.into_iter().map(|row| row.0).collect()));
            }
        }
        log.reverse();
        Ok(Some(log))
    }
}

/// The entry that a generation of these rows ends with: one from `first` on, or the
/// last one before it. `None`: not exactly one fits.
fn ends_with(log: &[(u64, Vec<u128>)], first: u64, rows: &Bag) -> Option<u64> {
    let total: usize = rows.values().sum();
    let before = log.iter().take_while(|(position, _)| *position < first);
    let oldest = before.count().saturating_sub(1);
    let mut fitting = (oldest..log.len()).filter(|end| {
        let mut bag = Bag::new();
        let mut count = 0;
        for (_, entry) in log[..=*end].iter().rev() {
            if count >= total {
                break;
            }
            count += entry.len();
            for row in entry {
                *bag.entry(*row).or_default() += 1;
            }
        }
        bag == *rows
    });
    match (fitting.next(), fitting.next()) {
        (Some(end), None) => Some(log[end].0),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(entries: &[(u64, &[u128])]) -> Vec<(u64, Vec<u128>)> {
        let entries = entries.iter();
        entries.map(|(at, rows)| (*at, rows.to_vec())).collect()
    }

    fn bag(rows: &[u128]) -> Bag {
        let mut bag = Bag::new();
        for row in rows {
            *bag.entry(*row).or_default() += 1;
        }
        bag
    }

    #[test]
    fn the_entry_that_a_generation_ends_with_is_told_by_its_rows() {
        let entries = log(&[(1, &[7, 8]), (2, &[9]), (4, &[10, 11]), (5, &[12])]);
        for (rows, expected) in [
            (&[9, 7, 8][..], Some(2)),
            (&[9, 10, 11], Some(4)),
            (&[10, 11, 12], Some(5)),
            // Half of an entry, rows of no entry, too many of one: not a run of entries.
            (&[8, 9], None),
            (&[9, 10, 13], None),
            (&[9, 9, 10, 11], None),
            // It ends before what could be its end.
            (&[7, 8], None),
        ] {
            assert_eq!(ends_with(&entries, 4, &bag(rows)), expected, "{rows:?}");
        }
    }

    #[test]
    fn two_ends_that_fit_tell_nothing() {
        let entries = log(&[(1, &[7]), (2, &[7]), (3, &[7])]);
        assert_eq!(ends_with(&entries, 2, &bag(&[7])), None);
        assert_eq!(ends_with(&entries, 2, &bag(&[7, 7])), None);
        // All there are: only the last one has so many before it.
        assert_eq!(ends_with(&entries, 2, &bag(&[7, 7, 7])), Some(3));
    }

    #[test]
    fn a_tail_without_anything_before_it_may_all_be_unflushed() {
        let entries = log(&[(1, &[7]), (2, &[8])]);
        assert_eq!(ends_with(&entries, 1, &bag(&[7])), Some(1));
        assert_eq!(ends_with(&entries, 1, &bag(&[9])), None);
        assert_eq!(ends_with(&[], 1, &bag(&[9])), None);
    }
}
