//! Looking at one shard's tail: the entries, the places their rows can be in,
//! and only where that does not settle it, the past.

use std::collections::{HashMap, HashSet};

use lance::Dataset;
use lance_index::mem_wal::SsTable;
use uuid::Uuid;

use super::content::Content;
use super::entry::{self, Entry};
use super::history;
use super::judge::{Facts, Judged, State};
use super::lookup;
use super::shape::Shape;
use crate::engine::Engine;
use crate::error::Fault;
use crate::remote::Remote;
use crate::shard::{Latest, Shards};
use crate::wal::Wal;

/// Entries looked at in one tail, oldest first; the rest is of unknown state.
const ENTRIES_MAX: u64 = 4096;
/// Bytes of entries looked at in one tail.
const BYTES_MAX: u64 = 256 << 20;
/// A base manifest whose own time and its file's differ by more is a copy, and
/// the times of the files beside it are those of copying.
const COPIED_MS: i64 = 3_600_000;

/// One shard of an open table.
pub struct Place<'a> {
    pub engine: &'a Engine,
    pub remote: &'a Remote,
    pub uri: &'a str,
    pub base: &'a Dataset,
    pub shard: Uuid,
    /// None: a folder without a manifest.
    pub manifest: Option<&'a Latest>,
    /// Last generation that is in the base.
    pub mark: u64,
}

/// What a tail was found to be.
#[derive(Clone, Debug, Default)]
pub struct Examined {
    pub cursor: u64,
    /// First position without an entry.
    pub next: u64,
    /// Entries up to here were looked at.
    pub looked: u64,
    /// Those with rows, in order.
    pub judged: Vec<Judged>,
}

/// What the entries of a tail name as the place of their rows.
#[derive(Clone, Debug, Default)]
pub struct Targets {
    /// Where their blobs are written ahead.
    pub folders: HashSet<String>,
    pub generations: HashSet<u64>,
    /// All entries could be read.
    pub complete: bool,
}

impl Examined {
    /// Entries that nobody looked at.
    pub fn left(&self) -> u64 {
        self.next.saturating_sub(self.looked + 1)
    }
}

/// Rows that count, by position: the newest of their key.
type Own = HashMap<u64, Vec<(u128, Content)>>;
/// Where a key's newest row was found.
type Found = HashMap<u128, Spot>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Spot {
    Generation(u64),
    Base,
    /// A generation has an equal row, which without a key need not be this one.
    Perhaps,
}

impl Place<'_> {
    pub async fn examine(&self) -> Result<Examined, Fault> {
        let shape = Shape::of(self.base);
        let (mut examined, mut entries) = self.read(&shape).await?;
        entries.retain(Entry::has_rows);
        if entries.is_empty() {
            return Ok(examined);
        }
        let mut facts = self.facts(&shape).await?;
        let own = newest(&mut entries, shape.keyed());
        let found = self.find(&shape, &facts, &entries, &own).await?;
        let settled: Vec<Option<(State, Vec<u64>)>> = entries
            .iter()
            .map(|entry| settle(entry, &facts, &own, &found))
            .collect();
        self.look_back(&mut facts, &entries, &settled).await?;
        let judged = entries.iter().zip(settled).map(|(entry, settled)| {
            let (state, generations) = settled.unwrap_or_else(|| (facts.missing(entry), vec![]));
            Judged {
                position: entry.position,
                time: entry.time,
                rows: entry.count,
                state,
                generations,
            }
        });
        examined.judged = judged.collect();
        Ok(examined)
    }

    /// What the entries name, without judging them.
    pub async fn targets(&self) -> Result<Targets, Fault> {
        let (examined, entries) = self.read(&Shape::of(self.base)).await?;
        Ok(Targets {
            folders: entries
                .iter()
                .filter_map(|one| one.folder.clone())
                .collect(),
            generations: entries.iter().filter_map(|one| one.generation).collect(),
            complete: examined.left() == 0 && entries.iter().all(|one| one.count >= 0),
        })
    }

    async fn facts(&self, shape: &Shape) -> Result<Facts, Fault> {
        let Some(manifest) = self.manifest else {
            return Ok(Facts {
                restarted: true,
                ..Facts::default()
            });
        };
        let content = &manifest.content;
        // Before any merge there is nothing to be put down.
        let record = match self.mark {
            0 => None,
            _ => history::record(self.base, self.shard).await?,
        };
        // A shard that was removed and made anew may have counted past the mark.
        let known = record.as_ref().map_or(0, |record| record.checked.manifest);
        Ok(Facts {
            listed: content.sstables.iter().map(|one| one.generation).collect(),
            current_generation: content.current_generation,
            mark: self.mark,
            restarted: content.current_generation <= self.mark || known > manifest.version,
            comparable: shape.comparable,
            record,
            ..Facts::default()
        })
    }

    /// Reads the tail, one entry at a time.
    async fn read(&self, shape: &Shape) -> Result<(Examined, Vec<Entry>), Fault> {
        let (cursor, seen) = self.manifest.map_or((0, 0), |latest| {
            (
                latest.content.replay_after_wal_entry_position,
                latest.content.wal_entry_position_last_seen,
            )
        });
        let wal = Wal {
            remote: self.remote,
            shard: self.shard,
        };
        let next = wal.next_position(cursor.max(seen)).await?;
        let mut examined = Examined {
            cursor,
            next,
            looked: cursor,
            ..Examined::default()
        };
        let (mut entries, mut room) = (Vec::new(), BYTES_MAX);
        for position in (cursor + 1..next).take(ENTRIES_MAX as usize) {
            let read = entry::read(self.remote, self.shard, position, shape, room).await?;
            if let Some((entry, size)) = read {
                if size > room {
                    break;
                }
                room -= size;
                entries.push(entry);
            }
            examined.looked = position;
        }
        Ok((examined, entries))
    }

    /// Looks for the rows that count: in the pending generations, newest first,
    /// where the first that has the key decides; in those that are in the base
    /// already; in the base.
    async fn find(
        &self,
        shape: &Shape,
        facts: &Facts,
        entries: &[Entry],
        own: &Own,
    ) -> Result<Found, Fault> {
        let mut found = Found::new();
        if !shape.comparable {
            return Ok(found);
        }
        let mut wanted: HashMap<u128, Content> = HashMap::new();
        for entry in entries {
            let told = entry.generation.and_then(|one| facts.by_generation(one));
            if told.is_none() {
                wanted.extend(own.get(&entry.position).into_iter().flatten().copied());
            }
        }
        for generation in self.generations() {
            let pending = generation.generation > self.mark;
            let keys: HashSet<u128> = wanted.keys().copied().collect();
            if keys.is_empty() {
                return Ok(found);
            }
            let table = self.open(&generation.path).await?;
            for (key, content) in lookup::contents(&table, shape, &keys).await? {
                let same = wanted.get(&key).is_some_and(|own| own.same_as(content));
                if same {
                    let spot = match shape.keyed() {
                        true => Spot::Generation(generation.generation),
                        false => Spot::Perhaps,
                    };
                    found.insert(key, spot);
                }
                if same || pending {
                    wanted.remove(&key);
                }
            }
        }
        // Without a key the base may have had an equal row all along.
        if !shape.keyed() {
            return Ok(found);
        }
        let keys: HashSet<u128> = wanted.keys().copied().collect();
        let base = lookup::contents(self.base, shape, &keys).await?;
        for (key, content) in wanted {
            let there = base.get(&key).copied().unwrap_or(Content::Deleted);
            if content.same_as(there) {
                found.insert(key, Spot::Base);
            }
        }
        Ok(found)
    }

    /// Each folder once: the pending ones newest first, then the others.
    fn generations(&self) -> Vec<SsTable> {
        let listed = self.manifest.map(|latest| &latest.content.sstables);
        let mut listed: Vec<SsTable> = listed.into_iter().flatten().cloned().collect();
        listed.sort_by(|a, b| (b.generation, &b.path).cmp(&(a.generation, &a.path)));
        listed.dedup_by(|a, b| a.path == b.path);
        listed
    }

    async fn open(&self, folder: &str) -> Result<Dataset, Fault> {
        let table = self.uri.trim_end_matches('/');
        let uri = format!("{table}/_mem_wal/{}/{folder}", self.shard);
        self.engine.open(&uri, None).await
    }

    /// The past costs a request for each manifest: it is looked into only where an
    /// entry is found nowhere.
    async fn look_back<T>(
        &self,
        facts: &mut Facts,
        entries: &[Entry],
        settled: &[Option<T>],
    ) -> Result<(), Fault> {
        let lost = entries.iter().zip(settled).filter(|(_, one)| one.is_none());
        let oldest = lost.map(|(entry, _)| entry.time).min();
        let (Some(oldest), Some(manifest), false) = (oldest, self.manifest, facts.restarted) else {
            return Ok(());
        };
        let known = facts
            .record
            .as_ref()
            .map_or(0, |record| record.checked.manifest);
        let shards = Shards {
            engine: self.engine,
            remote: self.remote,
            uri: self.uri,
        };
        let in_order = entries.is_sorted_by_key(|entry| entry.time) && !self.is_copy().await?;
        let until = if in_order { oldest } else { i64::MIN };
        facts.drains = history::drains(&shards, self.shard, manifest, known, until).await?;
        if !in_order || !facts.drains.in_order {
            facts.drains.forget_times();
        }
        Ok(())
    }

    /// Whether the table's files were copied here, so that their times are no
    /// longer those of their writing.
    async fn is_copy(&self) -> Result<bool, Fault> {
        let manifest = self
            .remote
            .head(&self.base.manifest_location().path)
            .await?;
        let written = self.base.manifest().timestamp().timestamp_millis();
        Ok(manifest
            .is_none_or(|file| (file.last_modified.timestamp_millis() - written).abs() > COPIED_MS))
    }
}

/// Takes from each entry the rows that count: of a key the newest row of the
/// whole tail; without keys all.
fn newest(entries: &mut [Entry], keyed: bool) -> Own {
    let mut own = Own::new();
    let mut taken: HashSet<u128> = HashSet::new();
    for entry in entries.iter_mut().rev() {
        let Some(rows) = entry.rows.as_mut() else {
            continue;
        };
        let mut rows = std::mem::take(rows);
        if keyed {
            rows.reverse();
            rows.retain(|(key, _)| taken.insert(*key));
        }
        own.insert(entry.position, rows);
    }
    own
}

/// The state of an entry whose rows were all found; `None`: the past must tell.
fn settle(entry: &Entry, facts: &Facts, own: &Own, found: &Found) -> Option<(State, Vec<u64>)> {
    let told = entry.generation.and_then(|one| facts.by_generation(one));
    if let Some(state) = told {
        return Some((state, entry.generation.into_iter().collect()));
    }
    let own = own.get(&entry.position)?;
    if own.is_empty() {
        return Some((State::Superseded, vec![]));
    }
    let spots: Vec<Option<Spot>> = own.iter().map(|(key, _)| found.get(key).copied()).collect();
    if spots.contains(&Some(Spot::Perhaps)) {
        return Some((State::Unknown, vec![]));
    }
    let spots: Vec<Spot> = spots.into_iter().collect::<Option<_>>()?;
    let mut generations: Vec<u64> = spots
        .iter()
        .filter_map(|spot| match spot {
            Spot::Generation(generation) => Some(*generation),
            Spot::Base | Spot::Perhaps => None,
        })
        .collect();
    generations.sort_unstable();
    generations.dedup();
    let state = match generations.is_empty() {
        true => State::InBase,
        false => State::Contained,
    };
    Some((state, generations))
}
