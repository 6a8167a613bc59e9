//! Looking at one shard's tail: the entries, the places their rows can be in,
//! and only where that does not settle it, the past.

use std::collections::{BTreeSet, HashMap, HashSet};

use lance::Dataset;
use lance_index::mem_wal::SsTable;
use uuid::Uuid;

use super::content::Content;
use super::entry::{self, Entry};
use super::history;
use super::judge::{Facts, Ground, Judged, State};
use super::lookup;
use super::order::Order;
use super::shape::Shape;
use crate::engine::Engine;
use crate::error::Fault;
use crate::remote::Remote;
use crate::shard::{Latest, Shards};
use crate::wal::Wal;

/// Entries looked at in one tail, oldest first; the rest is of unknown state.
const ENTRIES_MAX: u64 = 4096;
/// Bytes of entries looked at in one tail.
pub const BYTES_MAX: u64 = 256 << 20;
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
    /// First position without an entry, as it was before the base was opened: what
    /// came since is not judged by it.
    pub next: u64,
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
    /// Of the newest entry with rows, wherever it is; 0: none was found.
    pub newest_time: i64,
    /// Of the newest entry, or of the manifest where that is newer.
    pub touched_time: i64,
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

/// Where a key's newest row was found.
type Found = HashMap<u128, Spot>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Spot {
    Generation(u64),
    Base,
    /// A generation that is in the base, which has gone on since.
    Merged,
    /// A generation has an equal row, which without a key need not be this one.
    Perhaps,
}

impl Place<'_> {
    pub async fn examine(&self) -> Result<Examined, Fault> {
        let shape = Shape::of(self.base);
        let (mut examined, mut entries) = self.read(&shape).await?;
        let last = self.wal().last(self.next).await?;
        let manifest = self.manifest.map_or(0, |latest| latest.time);
        examined.newest_time = last.with_rows;
        examined.touched_time = last.at_all.max(manifest);
        entries.retain(Entry::has_rows);
        if entries.is_empty() {
            return Ok(examined);
        }
        let mut facts = self.facts(&shape).await?;
        if !shape.keyed() && examined.left() == 0 && facts.are_untold(&entries) {
            facts.flushed = self.flushed(&shape, &entries).await?;
        }
        let order = Order::of(&mut entries, shape.keyed(), |one| facts.told(one).is_some());
        let found = self.find(&shape, &facts, &entries, &order).await?;
        let mut judged: Vec<Judged> = entries
            .iter()
            .map(|entry| settle(entry, &facts, &order, &found))
            .collect();
        let open = |one: &&Judged| one.state == State::Stranded;
        let oldest = judged.iter().filter(open).map(|one| one.time).min();
        self.look_back(&mut facts, &entries, oldest).await?;
        for (one, entry) in judged.iter_mut().zip(&entries) {
            if one.state == State::Stranded {
                one.state = facts.missing(entry);
            }
        }
        examined.judged = judged;
        Ok(examined)
    }

    fn wal(&self) -> Wal<'_> {
        Wal {
            remote: self.remote,
            shard: self.shard,
        }
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

    /// Whether a writer could replay everything after `covered`. One that is opened
    /// over an entry that it can't read leaves a claim and a new entry behind, each
    /// time somebody tries.
    pub async fn readable_after(&self, covered: u64) -> Result<(), Fault> {
        for position in covered + 1..self.next {
            entry::check(self.remote, self.shard, position).await?;
        }
        Ok(())
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
        Ok(Facts {
            listed: content.sstables.iter().map(|one| one.generation).collect(),
            current_generation: content.current_generation,
            mark: self.mark,
            // One that was made anew may have counted past the mark.
            restarted: content.current_generation <= self.mark
                || history::made_anew(record.as_ref(), content, self.mark, self.next),
            comparable: shape.comparable,
            record,
            ..Facts::default()
        })
    }

    /// Reads the tail, one entry at a time.
    async fn read(&self, shape: &Shape) -> Result<(Examined, Vec<Entry>), Fault> {
        let cursor = self
            .manifest
            .map_or(0, |latest| latest.content.replay_after_wal_entry_position);
        let next = self.next;
        let mut examined = Examined {
            cursor,
            next,
            looked: cursor,
            ..Examined::default()
        };
        let (mut entries, mut room) = (Vec::new(), BYTES_MAX);
        for position in (cursor.saturating_add(1)..next).take(ENTRIES_MAX as usize) {
            let read = entry::read(self.remote, self.shard, position, shape, room).await?;
            // Nobody removes entries: what was in it is not known.
            let before = entries.last().map_or(0, |one: &Entry| one.time);
            let (entry, size) = read.unwrap_or((Entry::unread(position, before), 0));
            if size > room {
                break;
            }
            room -= size;
            entries.push(entry);
            examined.looked = position;
        }
        Ok((examined, entries))
    }

    /// Looks for the rows that count: in the pending generations, newest first,
    /// where the first that has the key decides; in the base; and in those that are
    /// in it already, which alone prove nothing: the base may have gone on, and the
    /// entry be the younger.
    async fn find(
        &self,
        shape: &Shape,
        facts: &Facts,
        entries: &[Entry],
        order: &Order,
    ) -> Result<Found, Fault> {
        let mut found = Found::new();
        if !shape.comparable {
            return Ok(found);
        }
        let mut wanted: HashMap<u128, Content> = HashMap::new();
        for entry in entries {
            if facts.told(entry).is_none() {
                let own = order.own.get(&entry.position);
                wanted.extend(own.into_iter().flatten().copied());
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
                // Of several rows under one key nobody knows which counts.
                if content == Content::Several {
                    found.insert(key, Spot::Perhaps);
                } else if same {
                    let spot = match (shape.keyed(), pending) {
                        (true, true) => Spot::Generation(generation.generation),
                        (true, false) => Spot::Merged,
                        (false, _) => Spot::Perhaps,
                    };
                    found.insert(key, spot);
                }
                if pending {
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

    pub async fn open(&self, folder: &str) -> Result<Dataset, Fault> {
        let table = self.uri.trim_end_matches('/');
        let uri = format!("{table}/_mem_wal/{}/{folder}", self.shard);
        self.engine.open(&uri, None).await
    }

    /// The past costs a request for each manifest: it is looked into only where an
    /// entry is found nowhere.
    async fn look_back(
        &self,
        facts: &mut Facts,
        entries: &[Entry],
        oldest: Option<i64>,
    ) -> Result<(), Fault> {
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

/// What is known of an entry by itself and by its rows. `Stranded`: the past must
/// tell whether it is.
fn settle(entry: &Entry, facts: &Facts, order: &Order, found: &Found) -> Judged {
    let own = order.own.get(&entry.position);
    let (state, ground, generations) = match (facts.told(entry), own) {
        (Some((state, Ground::Number)), _) => {
            let generation = entry.generation.into_iter().collect();
            (state, Ground::Number, generation)
        }
        (Some((state, Ground::Order)), _) => {
            let flushed = facts.flushed.map(|one| one.generation);
            (state, Ground::Order, flushed.into_iter().collect())
        }
        (Some((state, ground)), _) => (state, ground, vec![]),
        (None, Some(own)) => by_rows(entry, own, facts, order, found),
        (None, None) => (State::Stranded, Ground::Absence, vec![]),
    };
    Judged {
        position: entry.position,
        time: entry.time,
        rows: entry.count,
        state,
        generations,
        ground,
        until: order.until(entry.position),
    }
}

/// What the places tell where the rows that count were found.
fn by_rows(
    entry: &Entry,
    own: &[(u128, Content)],
    facts: &Facts,
    order: &Order,
    found: &Found,
) -> (State, Ground, Vec<u64>) {
    if own.is_empty() {
        return (State::Superseded, Ground::Content, vec![]);
    }
    let nowhere = (State::Stranded, Ground::Absence, vec![]);
    if facts.is_unflushed(entry) {
        return nowhere;
    }
    // It can't be in what was merged before it came.
    let younger = facts.is_younger(entry);
    let possible = |one: &&Spot| !younger || **one != Spot::Merged;
    let spots: Vec<Option<Spot>> = own
        .iter()
        .map(|(key, _)| found.get(key).filter(possible).copied())
        .collect();
    let doubtful = |one: &Option<Spot>| matches!(one, Some(Spot::Merged | Spot::Perhaps));
    if spots.iter().any(doubtful) {
        return (State::Unknown, Ground::Content, vec![]);
    }
    let Some(spots) = spots.into_iter().collect::<Option<Vec<Spot>>>() else {
        return nowhere;
    };
    // Found, and yet perhaps not these.
    if !order.is_plain(entry.position) {
        return (State::Stranded, Ground::Content, vec![]);
    }
    let generations = spots.iter().filter_map(|spot| match spot {
        Spot::Generation(generation) => Some(*generation),
        Spot::Base | Spot::Merged | Spot::Perhaps => None,
    });
    let generations = BTreeSet::from_iter(generations);
    let state = match generations.is_empty() {
        true => State::InBase,
        false => State::Contained,
    };
    (state, Ground::Content, generations.into_iter().collect())
}
