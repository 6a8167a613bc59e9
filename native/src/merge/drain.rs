//! Taking generations that are in the base out of their shard's manifest.

use std::sync::atomic::{AtomicI64, Ordering};

use lance::dataset::mem_wal::ShardManifestStore;
use lance_index::mem_wal::{ShardManifest, SsTable};
use uuid::Uuid;

use crate::engine::Engine;
use crate::error::Fault;

/// Writers that may claim the shard while we try.
const ATTEMPTS: usize = 5;

/// A shard after a drain.
#[derive(Debug)]
pub struct Drained {
    /// Generations taken out by us.
    pub removed: i64,
    pub manifest: Option<ShardManifest>,
}

/// How far the flush cursor may move, and what that was concluded from.
#[derive(Clone, Copy, Debug)]
pub struct Covered {
    pub through: u64,
    /// The shard's counter of then. Once a writer has flushed since, generations
    /// are there that nobody looked at, and the flush moved the cursor itself.
    pub current_generation: u64,
}

/// Takes exactly these folders out and moves the flush cursor on, in one commit
/// under the epoch of whoever writes there now: claiming the shard would fence a
/// live writer. Everything else stays as it is by then.
pub async fn drain(
    engine: &Engine,
    uri: &str,
    shard: Uuid,
    gone: &[SsTable],
    covered: Covered,
) -> Result<Drained, Fault> {
    let (store, path) = engine.store(uri).await?;
    let mut left = ATTEMPTS;
    loop {
        left -= 1;
        // A new one each time: it would remember what it read.
        let manifests = ShardManifestStore::new(store.clone(), &path, shard, 1);
        let latest = manifests.latest().await?;
        let Some(epoch) = epoch_if_listed(latest.as_ref(), gone) else {
            return Ok(Drained {
                removed: 0,
                manifest: latest,
            });
        };
        let removed = AtomicI64::new(0);
        let drained = manifests
            .commit_update(epoch, |current| {
                removed.store(count(current, gone), Ordering::Relaxed);
                without(current, gone, covered)
            })
            .await;
        match drained {
            Ok(manifest) => {
                return Ok(Drained {
                    removed: removed.into_inner(),
                    manifest: Some(manifest),
                });
            }
            // A writer claimed the shard, or the answer was lost: what is there
            // now tells.
            Err(error) if left == 0 => return Err(Fault::from(error)),
            Err(_) => {}
        }
    }
}

/// The epoch to drain under; `None`: there is nothing to take out.
fn epoch_if_listed(latest: Option<&ShardManifest>, gone: &[SsTable]) -> Option<u64> {
    let latest = latest.filter(|latest| count(latest, gone) > 0)?;
    Some(latest.writer_epoch)
}

/// How many of the folders the manifest names.
fn count(manifest: &ShardManifest, gone: &[SsTable]) -> i64 {
    let listed = gone
        .iter()
        .filter(|one| manifest.sstables.iter().any(|other| same(one, other)));
    listed.count() as i64
}

/// A shard that was made anew counts from the start again: the number alone does
/// not tell a generation.
fn same(one: &SsTable, other: &SsTable) -> bool {
    one.generation == other.generation && one.path == other.path
}

fn without(current: &ShardManifest, gone: &[SsTable], covered: Covered) -> ShardManifest {
    let mut next = current.clone();
    next.version = current.next_version();
    next.sstables
        .retain(|one| !gone.iter().any(|other| same(one, other)));
    // Only where the generations were there: another shard of the same id has
    // another WAL.
    let ours = next.sstables.len() < current.sstables.len();
    if ours && current.current_generation == covered.current_generation {
        let cursor = current.replay_after_wal_entry_position;
        next.replay_after_wal_entry_position = cursor.max(covered.through);
    }
    next
}
