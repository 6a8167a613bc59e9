//! What became of generations: when they left a shard's manifest, and what our
//! own merges put down about the WAL when they took them over.

use std::collections::BTreeMap;

use futures::{FutureExt, StreamExt, TryStreamExt};
use lance::Dataset;
use lance::dataset::transaction::{Operation, Transaction};
use lance_index::mem_wal::{ShardManifest, SsTable};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::commits::of_the_moment;
use crate::error::{Class, Fault};
use crate::shard::{Latest, Shards};

/// Transaction property of a merge's data commit: a JSON object of [`Checked`]
/// by shard.
pub const PROPERTY: &str = "lancefleet.tail";
/// Manifest versions looked back at.
const VERSIONS_MAX: u64 = 2048;
/// Manifests read at once.
const READS_AT_ONCE: usize = 16;
/// Commits of the base looked back at for our record.
const COMMITS_MAX: usize = 256;
/// Entries and ranges of them named in one record.
pub const NAMED_MAX: usize = 64;

/// What a merge knew of a shard and its WAL. It speaks of all generations up to
/// the mark of its commit, those of earlier merges included, so the newest record
/// is enough. Of entries that it does not name it says nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checked {
    /// Every entry up to here is in the base.
    pub covered: u64,
    /// Later ones that are in the base: from, to.
    #[serde(default)]
    pub proven: Vec<(u64, u64)>,
    /// Entries that are in none of the generations.
    #[serde(default)]
    pub open: Vec<u64>,
    /// The last entry that existed: later ones are in none of the generations.
    pub seen: u64,
    /// The shard's manifest that was looked at.
    pub manifest: u64,
    /// Generations that it takes over, and such as were merged before and still
    /// listed: number and folder.
    #[serde(default)]
    pub taken: Vec<(u64, String)>,
}

impl Checked {
    /// Whether an entry past the flush cursor is in the base.
    pub fn has(&self, position: u64) -> bool {
        let mut proven = self.proven.iter();
        position <= self.covered || proven.any(|(from, to)| (*from..=*to).contains(&position))
    }

    /// Whether an entry is in none of the generations.
    pub fn excludes(&self, position: u64) -> bool {
        position > self.seen || self.open.contains(&position)
    }

    /// Nothing is said of entries that were not there yet.
    fn is_sound(&self) -> bool {
        let mut proven = self.proven.iter();
        let mut open = self.open.iter();
        self.covered <= self.seen
            && proven.all(|(from, to)| from <= to && *to <= self.seen)
            && open.all(|position| *position <= self.seen)
    }

    fn takes(&self, one: &SsTable) -> bool {
        let mut taken = self.taken.iter();
        taken.any(|(number, path)| *number == one.generation && *path == one.path)
    }
}

/// Whether generations that the manifest names can't be told from merged ones by
/// their numbers: the shard was removed and made anew (its manifest is older than
/// the one a merge of ours saw, its log is shorter, or it has other folders), or
/// somebody else merged them and left them there. `next`: the end of its log.
pub fn made_anew(record: Option<&Record>, shard: &ShardManifest, mark: u64, next: u64) -> bool {
    let known = record.map(|one| &one.checked);
    let ours = |one: &SsTable| known.is_some_and(|checked| checked.takes(one));
    // One whose old entries somebody removed ends before its cursor.
    let shorter =
        |checked: &Checked| checked.seen >= next && shard.replay_after_wal_entry_position < next;
    known.is_some_and(|checked| checked.manifest > shard.version || shorter(checked))
        || shard
            .sstables
            .iter()
            .any(|one| one.generation <= mark && !ours(one))
}

/// The newest record of a shard, and the mark of its commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    pub mark: u64,
    pub checked: Checked,
}

/// Looks for the newest record, from the head back. One that an overwrite or a
/// restore of the table has made void is not found.
pub async fn record(head: &Dataset, shard: Uuid) -> Result<Option<Record>, Fault> {
    let newest = head.manifest().version;
    for version in (1..=newest).rev().take(COMMITS_MAX) {
        let transaction = match head.read_version_transaction(version).boxed().await {
            Ok(read) => read.transaction,
            Err(error) => match Fault::from(error) {
                fault if of_the_moment(fault.class) => return Err(fault),
                // Cleaned up, and all older ones with it, or damaged.
                _ => return Ok(None),
            },
        };
        let Some(transaction) = transaction else {
            // Nobody knows what it did.
            return Ok(None);
        };
        if let Some(record) = record_in(&transaction, shard) {
            return Ok(Some(record));
        }
        if matches!(
            transaction.operation,
            Operation::Overwrite { .. } | Operation::Restore { .. }
        ) {
            return Ok(None);
        }
    }
    Ok(None)
}

fn record_in(transaction: &Transaction, shard: Uuid) -> Option<Record> {
    let properties = transaction.transaction_properties.as_ref()?;
    let all: BTreeMap<Uuid, Checked> = serde_json::from_str(properties.get(PROPERTY)?).ok()?;
    let marks = match &transaction.operation {
        Operation::Update {
            compacted_sstables, ..
        }
        | Operation::UpdateMemWalState { compacted_sstables } => compacted_sstables,
        _ => return None,
    };
    let mark = marks.iter().filter(|mark| mark.shard_id == shard);
    Some(Record {
        mark: mark.map(|mark| mark.generation).max()?,
        checked: all.get(&shard).filter(|one| one.is_sound())?.clone(),
    })
}

/// Generations that left the manifest, oldest version first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Drains {
    pub drains: Vec<Drain>,
    /// Everything that left in a version after this one is in `drains`. 0: everything.
    pub since_version: u64,
    /// Everything that left at or after this time is in `drains`, unix ms.
    pub since_time: i64,
    /// When the oldest manifest that was seen was written.
    pub oldest_time: i64,
    /// The manifests' times follow their versions.
    pub in_order: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Drain {
    pub version: u64,
    /// Unix ms of the object.
    pub time: i64,
    pub removed: Vec<u64>,
    /// Of the removed ones.
    pub folders: Vec<String>,
}

impl Drains {
    /// The objects are copies: their times say nothing about what came first.
    pub fn forget_times(&mut self) {
        self.since_time = match self.since_version {
            0 => i64::MIN,
            _ => i64::MAX,
        };
        for drain in &mut self.drains {
            drain.time = i64::MAX;
        }
    }
}

/// Reads the shard's manifests from `latest` back to version `to`, or to the
/// first that is older than `until`. Versions that were pruned end it sooner.
pub async fn drains(
    shards: &Shards<'_>,
    id: Uuid,
    latest: &Latest,
    to: u64,
    until: i64,
) -> Result<Drains, Fault> {
    let lowest = to.max(latest.version.saturating_sub(VERSIONS_MAX)).max(1);
    let older = futures::stream::iter((lowest..latest.version).rev())
        .map(|version| older_manifest(shards, id, version).boxed())
        .buffered(READS_AT_ONCE);
    let mut older = std::pin::pin!(older);
    let mut found = Drains {
        since_version: latest.version,
        since_time: i64::MAX,
        oldest_time: latest.time,
        ..Drains::default()
    };
    let (mut after, mut in_order) = (latest.clone(), true);
    loop {
        // What a version took away is known once the one before it was seen.
        if after.version == 1 {
            (found.since_version, found.since_time) = (0, i64::MIN);
            break;
        }
        if after.time < until {
            found.since_time = until;
            break;
        }
        let Some(before) = older.try_next().await?.flatten() else {
            break;
        };
        found.drains.extend(drain(&before, &after));
        found.since_version = before.version;
        // An older version may be of the same moment.
        found.since_time = after.time.saturating_add(1);
        found.oldest_time = before.time;
        in_order &= before.time <= after.time;
        after = before;
    }
    found.drains.reverse();
    found.in_order = in_order;
    Ok(found)
}

async fn older_manifest(
    shards: &Shards<'_>,
    id: Uuid,
    version: u64,
) -> Result<Option<Latest>, Fault> {
    match shards.read_manifest(id, version).await {
        Ok(manifest) => Ok(Some(manifest)),
        Err(fault) if matches!(fault.class, Class::Gone | Class::Corrupt) => Ok(None),
        Err(fault) => Err(fault),
    }
}

/// What the later of two versions has no longer.
fn drain(before: &Latest, after: &Latest) -> Option<Drain> {
    let kept = &after.content.sstables;
    let gone = |one: &&SsTable| !kept.iter().any(|other| other.path == one.path);
    let gone: Vec<&SsTable> = before.content.sstables.iter().filter(gone).collect();
    (!gone.is_empty()).then(|| Drain {
        version: after.version,
        time: after.time,
        removed: gone.iter().map(|one| one.generation).collect(),
        folders: gone.iter().map(|one| one.path.clone()).collect(),
    })
}
