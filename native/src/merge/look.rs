//! What a pass starts from: the shard's manifest, then the base and its marks,
//! read anew; and what speaks against touching them.

use std::sync::Arc;

use lance::Dataset;
use lance::dataset::mem_wal::{DatasetMemWalExt, ShardManifestStore};
use lance_index::mem_wal::{ShardManifest, ShardStatus, SsTable};
use uuid::Uuid;

use crate::engine::Engine;
use crate::error::Fault;
use crate::maintain::Refusal;
use crate::remote::Remote;
use crate::tail;
use crate::wal::Wal;

pub const RESTARTED: &str = "restarted_counter";
pub const ERASED: &str = "mark_erased";
/// Ends the sentence of a refusal that only an operator can lift.
pub const DECIDE: &str = "; accept shows what is there and lets an operator decide";

/// One shard of one table at one moment.
#[derive(Clone, Debug)]
pub struct Look {
    pub shard: Uuid,
    /// None: a folder without a manifest, or none at all.
    pub manifest: Option<ShardManifest>,
    /// First position of the WAL without an entry.
    pub next: u64,
    pub base: Arc<Dataset>,
    /// Last generation that is in the base; 0: none.
    pub mark: u64,
    /// The base can record marks.
    pub records_marks: bool,
}

impl Look {
    /// The manifest first: another attempt commits to the base and then takes
    /// generations out of the manifest. So what moves in between is seen as
    /// pending and the marks, read later, tell that it is not. The end of the WAL
    /// in between: a later entry says nothing about this base.
    pub async fn new(engine: &Engine, uri: &str, shard: Uuid) -> Result<Self, Fault> {
        let look = Self::once(engine, uri, shard).await?;
        match look.counts_anew() {
            // Or a writer flushed and somebody merged between the two: only then
            // it is different the next time.
            true => Self::once(engine, uri, shard).await,
            false => Ok(look),
        }
    }

    async fn once(engine: &Engine, uri: &str, shard: Uuid) -> Result<Self, Fault> {
        let manifest = latest_manifest(engine, uri, shard).await?;
        let next = wal_end(engine, uri, shard, manifest.as_ref()).await?;
        let base = engine.open(uri, None).await?;
        let details = base.mem_wal_index_details().await?;
        let marks = details.iter().flat_map(|one| &one.compacted_sstables);
        let own = marks.filter(|mark| mark.shard_id == shard);
        Ok(Self {
            shard,
            manifest,
            next,
            mark: own.map(|mark| mark.generation).max().unwrap_or(0),
            records_marks: details.is_some(),
            base: Arc::new(base),
        })
    }

    fn counts_anew(&self) -> bool {
        let manifest = self.manifest.as_ref();
        manifest.is_some_and(|one| one.current_generation <= self.mark)
    }

    /// The newest mark that the caller or the table's own commits remember.
    pub async fn remembered(&self, known: u64) -> Result<u64, Fault> {
        let manifest = self.manifest.as_ref();
        Ok(match manifest.is_some_and(|one| !one.sstables.is_empty()) {
            true => known.max(tail::erased(&self.base, self.shard, self.mark).await?),
            false => known,
        })
    }

    /// Why this shard must not be touched. `remembered`: the newest mark that
    /// anybody has seen.
    pub async fn refusal(
        &self,
        engine: &Engine,
        uri: &str,
        remembered: u64,
    ) -> Result<Option<Refusal>, Fault> {
        if let Some(refused) = refusal(self, self.remembered(remembered).await?) {
            return Ok(Some(refused));
        }
        Ok(match self.is_made_anew(engine, uri).await? {
            true => Some(Refusal::new(
                RESTARTED,
                format!(
                    "shard {} was removed and made anew since generations up to {} were merged, or \
                     somebody else merged some and left them listed: they can't be told from ours \
                     by their numbers{DECIDE}",
                    self.shard, self.mark
                ),
            )),
            false => None,
        })
    }

    /// Whether some of the generations would be taken for merged that never were:
    /// the counter of a shard that was made anew may have gone past the mark.
    async fn is_made_anew(&self, engine: &Engine, uri: &str) -> Result<bool, Fault> {
        let listed = |one: &&ShardManifest| !one.sstables.is_empty();
        let Some(manifest) = self.manifest.as_ref().filter(listed) else {
            return Ok(false);
        };
        if self.mark == 0 {
            return Ok(false);
        }
        let record = tail::record(&self.base, self.shard).await?;
        let anew =
            |one: &ShardManifest| tail::made_anew(record.as_ref(), one, self.mark, self.next);
        if !anew(manifest) {
            return Ok(false);
        }
        // It was read before the base: perhaps it only moved on in between.
        let latest = latest_manifest(engine, uri, self.shard).await?;
        Ok(latest.is_none_or(|latest| anew(&latest)))
    }

    /// Generations above the mark, oldest first. A flush may list one folder
    /// twice after an ambiguous PUT: it counts once.
    pub fn pending(&self) -> Vec<SsTable> {
        self.listed(|generation| generation > self.mark)
    }

    /// Generations that are in the base and still listed: whoever merged them
    /// died before draining them.
    pub fn merged(&self) -> Vec<SsTable> {
        self.listed(|generation| generation <= self.mark)
    }

    /// The first number under which two pending folders are listed.
    fn twice_listed(&self) -> Option<u64> {
        let pending = self.pending();
        let mut pairs = pending.windows(2);
        let twice = pairs.find(|pair| pair[0].generation == pair[1].generation)?;
        Some(twice[0].generation)
    }

    fn listed(&self, wanted: impl Fn(u64) -> bool) -> Vec<SsTable> {
        let listed = self.manifest.iter().flat_map(|one| &one.sstables);
        let mut listed: Vec<SsTable> = listed
            .filter(|one| wanted(one.generation))
            .cloned()
            .collect();
        listed.sort_by(|a, b| (a.generation, &a.path).cmp(&(b.generation, &b.path)));
        listed.dedup_by(|a, b| a.path == b.path);
        listed
    }
}

async fn wal_end(
    engine: &Engine,
    uri: &str,
    shard: Uuid,
    manifest: Option<&ShardManifest>,
) -> Result<u64, Fault> {
    let (store, path) = engine.store(uri).await?;
    let remote = Remote { store, base: path };
    let remote = &remote;
    Wal { remote, shard }.end(manifest).await
}

async fn latest_manifest(
    engine: &Engine,
    uri: &str,
    shard: Uuid,
) -> Result<Option<ShardManifest>, Fault> {
    let (store, path) = engine.store(uri).await?;
    let manifests = ShardManifestStore::new(store, &path, shard, 1);
    Ok(manifests.latest().await?)
}

/// As far as manifest and mark tell.
fn refusal(look: &Look, remembered: u64) -> Option<Refusal> {
    let manifest = look.manifest.as_ref()?;
    let shard = look.shard;
    let refuse = |code, sentence| Some(Refusal::new(code, sentence));
    if look.counts_anew() {
        return refuse(
            RESTARTED,
            format!(
                "shard {shard} counts its generations from the start again (the next is {}), but \
                 the table says that everything up to generation {} is merged: the shard was \
                 removed and made anew, and its rows can't be told from those merged before{DECIDE}",
                manifest.current_generation, look.mark
            ),
        );
    }
    if manifest.sstables.is_empty() {
        return None;
    }
    if manifest.status == ShardStatus::Sealed {
        return refuse(
            "sealed",
            format!("shard {shard} is sealed: somebody is dropping the table"),
        );
    }
    if !look.records_marks {
        return refuse(
            ERASED,
            format!(
                "shard {shard} has generations, but the table no longer records which ones are \
                 merged: it was overwritten or restored to a version before its write-ahead \
                 log{DECIDE}"
            ),
        );
    }
    if look.mark < remembered {
        return refuse(
            ERASED,
            format!(
                "generations of shard {shard} up to {remembered} were merged, but the table \
                 records {}: it was overwritten or restored, and merging would bring back what \
                 that took away{DECIDE}",
                match look.mark {
                    0 => "none".to_owned(),
                    mark => format!("only up to {mark}"),
                }
            ),
        );
    }
    let keyed = !look.base.schema().unenforced_primary_key().is_empty();
    match look.twice_listed().filter(|_| !keyed) {
        None => None,
        Some(number) => refuse(
            "twice_listed",
            format!(
                "shard {shard} lists two folders as generation {number}, and the table has no key: \
                 nobody can tell whether the second one repeats the rows of the first"
            ),
        ),
    }
}
