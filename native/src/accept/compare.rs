//! What merging would change in the table, key by key.

use std::collections::{HashMap, HashSet};

use futures::TryStreamExt;
use lance::Dataset;

use crate::error::Fault;
use crate::generation::Generation;
use crate::tail::{self, Content, Shape, key_digests};

/// More rows or bytes are not compared: who looks shall not wait for minutes.
const ROWS_MAX: i64 = 1 << 20;
const BYTES_MAX: i64 = 256 << 20;

/// Keys of the generations, by what merging does with them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Compared {
    /// The table does not have them.
    pub added: i64,
    /// It has another row.
    pub replaced: i64,
    pub deleted: i64,
    /// The table is the same with and without.
    pub same: i64,
}

/// `None`: rows without a key, or with blobs, can't be compared, and too many are not.
pub async fn with_base(
    base: &Dataset,
    generations: &[Generation],
) -> Result<Option<Compared>, Fault> {
    let shape = Shape::of(base);
    let rows: i64 = generations.iter().map(|one| one.size.rows).sum();
    let bytes = crate::shard::sum_known(generations.iter().map(Generation::bytes));
    if !shape.keyed() || !shape.comparable || rows > ROWS_MAX || !(0..=BYTES_MAX).contains(&bytes) {
        return Ok(None);
    }
    let mut newest: HashMap<u128, Content> = HashMap::new();
    for generation in generations.iter().rev() {
        let mut keys = keys(generation, &shape).await?;
        keys.retain(|key| !newest.contains_key(key));
        newest.extend(tail::contents(&generation.table, &shape, &keys).await?);
    }
    let keys: HashSet<u128> = newest.keys().copied().collect();
    let there = tail::contents(base, &shape, &keys).await?;
    let mut compared = Compared::default();
    for (key, content) in newest {
        let count = match (content, there.get(&key)) {
            (Content::Deleted, None) => &mut compared.same,
            (Content::Deleted, Some(_)) => &mut compared.deleted,
            (_, None) => &mut compared.added,
            (content, Some(there)) if content.same_as(*there) => &mut compared.same,
            (_, Some(_)) => &mut compared.replaced,
        };
        *count += 1;
    }
    Ok(Some(compared))
}

async fn keys(generation: &Generation, shape: &Shape) -> Result<HashSet<u128>, Fault> {
    let mut batches = generation.keys(&shape.key).await?;
    let mut keys = HashSet::new();
    while let Some(batch) = batches.try_next().await? {
        keys.extend(key_digests(&batch, &shape.key)?);
    }
    Ok(keys)
}
