//! Writing through a MemWAL as a worker does: claim the shard, put, flush, leave.

use std::time::Duration;

use arrow_array::RecordBatch;
use lance::Dataset;
use lance::dataset::mem_wal::{DatasetMemWalExt, ShardWriter, ShardWriterConfig};
use uuid::Uuid;

use crate::error::Fault;

/// The id lance-context gives the shard of a worker: a name-based uuid. Its
/// embedded stores call themselves `default`.
pub fn shard_of(worker: &str) -> Uuid {
    Uuid::new_v5(&Uuid::NAMESPACE_OID, worker.as_bytes())
}

/// One write.
pub enum Put {
    Rows(RecordBatch),
    /// Rows that carry only keys.
    Delete(RecordBatch),
    /// Whatever was put so far becomes a generation.
    Flush,
}

/// How a writer leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Closed: everything is in a generation.
    Close,
    /// Killed: what was acknowledged since the last flush is in the WAL only.
    Kill,
}

/// Opens the shard, writes, leaves. Every put is durable before the next.
/// Answers the epoch it had claimed.
pub async fn write(dataset: &Dataset, shard: Uuid, puts: Vec<Put>, end: End) -> Result<u64, Fault> {
    let config = config(&puts);
    let writer = Box::pin(dataset.mem_wal_writer(shard, config)).await?;
    let epoch = writer.epoch();
    let outcome = put_all(&writer, puts).await;
    // A writer that is only dropped leaves its tasks behind.
    match (&outcome, end) {
        (Ok(()), End::Close) => Box::pin(writer.close()).await?,
        _ => writer.abort().await?,
    }
    outcome.map(|()| epoch)
}

async fn put_all(writer: &ShardWriter, puts: Vec<Put>) -> Result<(), Fault> {
    for put in puts {
        match put {
            Put::Rows(rows) => {
                writer.put(vec![rows]).await?;
            }
            Put::Delete(keys) => {
                writer.delete(vec![keys]).await?;
            }
            Put::Flush => writer.force_freeze_active().await?.wait().await?,
        }
    }
    Ok(())
}

/// Generations end where we say, not where a limit is reached; and nobody wants
/// to wait for the next tick of the WAL's clock.
fn config(puts: &[Put]) -> ShardWriterConfig {
    let rows: usize = puts
        .iter()
        .map(|put| match put {
            Put::Rows(rows) | Put::Delete(rows) => rows.num_rows(),
            Put::Flush => 0,
        })
        .sum();
    ShardWriterConfig::default()
        .with_durable_write(true)
        .with_max_wal_flush_interval(Duration::from_millis(1))
        .with_max_memtable_rows(rows + 1024)
        .with_max_memtable_batches(puts.len() + 64)
        .with_max_memtable_size(1 << 30)
        .with_max_unflushed_memtable_bytes(3 << 30)
        .with_stats_log_interval(None)
}
