//! What became of generations: when they left a shard's manifest, and what our
//! own merges put down about the WAL when they took them over.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use futures::{FutureExt, StreamExt, TryStreamExt};
use lance::Dataset;
use lance::dataset::transaction::{Operation, Transaction};
use lance_index::mem_wal::{CompactedSsTable, MEM_WAL_INDEX_NAME, ShardManifest, SsTable};
use lance_table::system_index::mem_wal::load_mem_wal_index_details;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::commits::of_the_moment;
use crate::error::{Class, Fault};
use crate::shard::{Latest, Shards};

/// Transaction property of a merge's data commit: a JSON object of [`Checked`]
/// by shard.
pub const PROPERTY: &str = "lancefleet.tail";
/// Transaction property of the commit by which an operator's decision counts: a
/// JSON [`Decision`].
pub const DECISION: &str = "lancefleet.accepted";
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

    pub fn takes(&self, one: &SsTable) -> bool {
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

/// What an operator decided about shards that no merge would touch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    /// Of the run that carried it out.
    pub id: String,
    /// The marks that hold from then on.
    pub marks: BTreeMap<Uuid, u64>,
}

/// Looks for the newest record, from the head back. One that an overwrite, a
/// restore or an operator's decision has made void is not found.
pub async fn record(head: &Dataset, shard: Uuid) -> Result<Option<Record>, Fault> {
    let found = back(head, |_, commit| match record_in(commit, shard) {
        Some(record) => ControlFlow::Break(Some(record)),
        None if is_void(commit) || decided(commit, shard).is_some() => ControlFlow::Break(None),
        None => ControlFlow::Continue(()),
    });
    Ok(found.await?.flatten())
}

/// The mark that an overwrite or a restore has taken from the table, as far back as
/// its commits tell; 0: none that is above `mark`, which it has now.
pub async fn erased(head: &Dataset, shard: Uuid, mark: u64) -> Result<u64, Fault> {
    let mut void = false;
    let found = back(head, |_, commit| {
        void |= is_void(commit);
        let known = decided(commit, shard).or_else(|| mark_in(commit, shard));
        match known {
            Some(known) => ControlFlow::Break(if void { known } else { 0 }),
            None => ControlFlow::Continue(()),
        }
    });
    let known = found.await?.unwrap_or(0);
    Ok(if known > mark { known } else { 0 })
}

/// The commit that carried a decision out, and its version.
pub async fn decision(head: &Dataset, id: &str) -> Result<Option<(u64, Decision)>, Fault> {
    back(head, |version, commit| match decision_in(commit) {
        Some(decision) if decision.id == id => ControlFlow::Break((version, decision)),
        _ => ControlFlow::Continue(()),
    })
    .await
}

/// Goes back from the head until `seen` has what it looks for, or nobody knows
/// what a commit did.
async fn back<T>(
    head: &Dataset,
    mut seen: impl FnMut(u64, &Transaction) -> ControlFlow<T>,
) -> Result<Option<T>, Fault> {
    let newest = head.manifest().version;
    for version in (1..=newest).rev().take(COMMITS_MAX) {
        let commit = match head.read_version_transaction(version).boxed().await {
            Ok(read) => read.transaction,
            Err(error) => match Fault::from(error) {
                fault if of_the_moment(fault.class) => return Err(fault),
                // Cleaned up, and all older ones with it, or damaged.
                _ => return Ok(None),
            },
        };
        let Some(commit) = commit else {
            return Ok(None);
        };
        if let ControlFlow::Break(found) = seen(version, &commit) {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// What came before it says nothing about the table any more.
fn is_void(commit: &Transaction) -> bool {
    matches!(
        commit.operation,
        Operation::Overwrite { .. } | Operation::Restore { .. }
    )
}

fn record_in(commit: &Transaction, shard: Uuid) -> Option<Record> {
    let properties = commit.transaction_properties.as_ref()?;
    let all: BTreeMap<Uuid, Checked> = serde_json::from_str(properties.get(PROPERTY)?).ok()?;
    Some(Record {
        mark: mark_in(commit, shard)?,
        checked: all.get(&shard).filter(|one| one.is_sound())?.clone(),
    })
}

fn decision_in(commit: &Transaction) -> Option<Decision> {
    let properties = commit.transaction_properties.as_ref()?;
    serde_json::from_str(properties.get(DECISION)?).ok()
}

fn decided(commit: &Transaction, shard: Uuid) -> Option<u64> {
    decision_in(commit)?.marks.get(&shard).copied()
}

/// The mark that a commit records for a shard.
fn mark_in(commit: &Transaction, shard: Uuid) -> Option<u64> {
    let marks = marks_in(&commit.operation)?;
    let own = marks.iter().filter(|mark| mark.shard_id == shard);
    own.map(|mark| mark.generation).max()
}

fn marks_in(operation: &Operation) -> Option<Vec<CompactedSsTable>> {
    match operation {
        Operation::Update {
            compacted_sstables, ..
        }
        | Operation::UpdateMemWalState { compacted_sstables } => Some(compacted_sstables.clone()),
        // An index made anew, with the marks it begins with.
        Operation::CreateIndex { new_indices, .. } => {
            let index = new_indices
                .iter()
                .find(|one| one.name == MEM_WAL_INDEX_NAME)?;
            let details = load_mem_wal_index_details(index.clone()).ok()?;
            Some(details.compacted_sstables)
        }
        _ => None,
    }
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
