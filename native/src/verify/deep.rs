//! How many keys a table has.

use std::collections::HashSet;

use futures::TryStreamExt;
use lance::Dataset;

use crate::error::Fault;
use crate::tail::{Shape, key_digests};

/// Keys that are in memory at once; a table with more of them is read in turns.
const KEYS_MAX: u64 = 4 << 20;

/// Distinct keys of the base table, by reading its key columns; -1: it has no
/// key.
pub async fn distinct_keys(base: &Dataset) -> Result<i64, Fault> {
    let shape = Shape::of(base);
    if !shape.keyed() {
        return Ok(-1);
    }
    let rows = base.count_rows(None).await? as u64;
    let turns = rows.div_ceil(KEYS_MAX).max(1);
    let mut keys = 0;
    for turn in 0..turns {
        keys += keys_of_turn(base, &shape, turn, turns).await?;
    }
    Ok(keys)
}

async fn keys_of_turn(base: &Dataset, shape: &Shape, turn: u64, of: u64) -> Result<i64, Fault> {
    let mut scanner = base.scan();
    scanner.project(&shape.key)?;
    let mut batches = Box::pin(scanner.try_into_stream()).await?;
    let mut seen = HashSet::new();
    while let Some(batch) = batches.try_next().await? {
        let keys = key_digests(&batch, &shape.key)?;
        seen.extend(keys.into_iter().filter(|key| *key as u64 % of == turn));
    }
    Ok(seen.len() as i64)
}
