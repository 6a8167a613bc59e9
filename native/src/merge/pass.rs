//! One pass, from a fresh look to the drain, and again from the start when
//! somebody else was faster.

use lance::Dataset;
use lance_core::datatypes::Schema;
use lance_index::mem_wal::{CompactedSsTable, SsTable};
use lance_table::format::Fragment;

use super::base_rows::BaseRows;
use super::commit::{self, Outcome, Parts, Prepared};
use super::drain::{self, Covered};
use super::look::Look;
use super::run::{Limits, Run};
use super::stage::stage;
use super::winners::{Key, Winners};
use super::{MergeWal, Merged};
use crate::engine::Engine;
use crate::error::{Class, Fault};
use crate::maintain::Refusal;
use crate::tail::{self, Checked};

/// Attempts against others who commit to the table at the same time.
const ATTEMPTS: usize = 8;

/// One call.
pub struct Pass<'a> {
    engine: &'a Engine,
    request: MergeWal,
    limits: Limits,
    /// The newest mark that anybody has seen.
    remembered: u64,
    staged: Option<Staged>,
}

/// What was written for a run, good for every attempt at it.
struct Staged {
    run: Run,
    schema: Schema,
    winners: Winners,
    fragments: Vec<Fragment>,
    base_rows: BaseRows,
    /// Of the table and the shard as they were at one look.
    checked: Checked,
    checked_at: u64,
}

impl Staged {
    fn is_for(&self, run: &Run, base: &Dataset) -> bool {
        self.run.same_as(run) && self.schema == *base.schema()
    }

    fn is_checked_at(&self, look: &Look) -> bool {
        let manifest = look.manifest.as_ref().map_or(0, |one| one.version);
        self.checked_at == look.base.version_id() && self.checked.manifest == manifest
    }
}

/// What a run came to.
struct Taken {
    run: Run,
    rows: i64,
    deletes: i64,
    checked: Checked,
    version: u64,
}

enum Attempt {
    Done(Merged),
    /// The world moved; the fault is told if it never stands still.
    Again(Fault),
}

impl<'a> Pass<'a> {
    pub fn new(engine: &'a Engine, request: MergeWal) -> Self {
        Self {
            engine,
            limits: Limits::new(request.max_generations, request.max_bytes),
            remembered: request.remembered_mark,
            request,
            staged: None,
        }
    }

    pub async fn make(&mut self) -> Result<Merged, Fault> {
        let mut left = ATTEMPTS;
        loop {
            left -= 1;
            match Box::pin(self.attempt()).await {
                Ok(Attempt::Done(merged)) => return Ok(merged),
                Ok(Attempt::Again(fault)) if left == 0 => return Err(damaged(fault)),
                Ok(Attempt::Again(_)) => {}
                Err(fault) => return Err(fault),
            }
        }
    }

    async fn attempt(&mut self) -> Result<Attempt, Fault> {
        let look = self.look().await?;
        let (engine, uri) = (self.engine, self.request.uri.as_str());
        if let Some(refused) = look.refusal(engine, uri, self.remembered).await? {
            return Ok(Attempt::Done(self.refused(&look, refused)));
        }
        self.remembered = self.remembered.max(look.mark);
        let prepared = match self.prepare(&look).await {
            Ok(Step::Refused(refused)) => {
                return Ok(Attempt::Done(self.refused(&look, refused)));
            }
            Ok(Step::Nothing) => None,
            Ok(Step::Ready(prepared)) => Some(prepared),
            // Drained by somebody else since we looked, and swept.
            Err(fault) if fault.class == Class::Gone => return Ok(Attempt::Again(fault)),
            Err(fault) => return Err(fault),
        };
        let landed = match prepared {
            None => None,
            Some(prepared) => match prepared.commit(self.engine, &self.request.uri).await? {
                Outcome::Lost(fault) => return Ok(Attempt::Again(fault)),
                Outcome::Landed(version) => Some(version),
            },
        };
        match self.finish(&look, landed).await {
            // What was to be judged once more is drained and swept by now.
            Err(fault) if fault.class == Class::Gone && landed.is_none() => {
                Ok(Attempt::Again(fault))
            }
            finished => finished.map(Attempt::Done),
        }
    }

    pub async fn look(&self) -> Result<Look, Fault> {
        Look::new(self.engine, &self.request.uri, self.request.shard).await
    }

    /// Everything up to the commit. Nothing of it can be seen.
    pub async fn prepare(&mut self, look: &Look) -> Result<Step, Fault> {
        let (engine, uri) = (self.engine, self.request.uri.as_str());
        let key = Key::of(look.base.schema());
        let run = match Run::open(engine, uri, look, &key.columns, self.limits).await? {
            Err(refused) => return Ok(Step::Refused(refused)),
            Ok(run) if run.generations.is_empty() => {
                self.staged = None;
                return Ok(Step::Nothing);
            }
            Ok(run) => run,
        };
        let mut staged = match self.staged.take() {
            Some(staged) if staged.is_for(&run, &look.base) => staged,
            _ => self.stage(look, run, &key).await?,
        };
        if !staged.is_checked_at(look) {
            staged.checked = self.check(look, &staged.run).await?;
            staged.checked_at = look.base.version_id();
        }
        let (base, winners) = (&look.base, &staged.winners);
        staged.base_rows.find(base, &key.columns, winners).await?;
        let parts = Parts {
            base: base.clone(),
            removal: staged.base_rows.remove(base).await?,
            removed: staged.base_rows.addresses().collect(),
            added: staged.fragments.clone(),
            mark: CompactedSsTable::new(look.shard, staged.run.to()),
            filter: winners.filter(),
        };
        let property = &self.request.property;
        let properties = commit::properties(property, look.shard, &staged.checked)?;
        self.staged = Some(staged);
        Ok(Step::Ready(Box::new(Prepared::new(parts, properties))))
    }

    async fn stage(&self, look: &Look, run: Run, key: &Key) -> Result<Staged, Fault> {
        let checked = self.check(look, &run).await?;
        let winners = Winners::of(&run, key, look.shard).await?;
        let fragments = stage(self.engine, &look.base, &run, key, &winners).await?;
        Ok(Staged {
            schema: look.base.schema().clone(),
            run,
            winners,
            fragments,
            base_rows: BaseRows::default(),
            checked,
            checked_at: look.base.version_id(),
        })
    }

    async fn check(&self, look: &Look, run: &Run) -> Result<Checked, Fault> {
        let mut going = look.merged();
        going.extend(run.sstables());
        self.covered(look, &going).await
    }

    /// What the WAL tail has that is not in the base once `going` is.
    async fn covered(&self, look: &Look, going: &[SsTable]) -> Result<Checked, Fault> {
        let Some(manifest) = &look.manifest else {
            return Ok(Checked::default());
        };
        let (engine, uri) = (self.engine, self.request.uri.as_str());
        Box::pin(tail::covered_through(
            engine, uri, &look.base, look.shard, manifest, look.next, going,
        ))
        .await
    }

    fn taken(&mut self, version: u64) -> Option<Taken> {
        let staged = self.staged.take()?;
        Some(Taken {
            rows: staged.winners.count(&staged.run),
            deletes: staged.base_rows.deleted(),
            run: staged.run,
            checked: staged.checked,
            version,
        })
    }

    /// Drains what is in the base now, and tells what was done. `landed`: the
    /// version that the prepared commit became.
    pub async fn finish(&mut self, look: &Look, landed: Option<u64>) -> Result<Merged, Fault> {
        let taken = landed.and_then(|version| self.taken(version));
        let mut gone = look.merged();
        let mut merged = self.untouched(look);
        if let Some(taken) = &taken {
            gone.extend(taken.run.sstables());
            merged = Merged {
                from: taken.run.from(),
                to: taken.run.to(),
                generations: taken.run.generations.len() as i64,
                rows: taken.rows,
                deletes: taken.deletes,
                bytes: taken.run.bytes(),
                version: taken.version,
                mark: taken.run.to(),
                ..merged
            };
        }
        if gone.is_empty() {
            return Ok(merged);
        }
        let covered = match taken {
            Some(taken) => taken.checked.covered,
            None => self.covered(look, &gone).await?.covered,
        };
        let covered = Covered {
            through: covered,
            current_generation: look
                .manifest
                .as_ref()
                .map_or(0, |one| one.current_generation),
        };
        let uri = self.request.uri.as_str();
        let drained = drain::drain(self.engine, uri, look.shard, &gone, covered).await?;
        let after = Look {
            manifest: drained.manifest,
            mark: merged.mark,
            ..look.clone()
        };
        Ok(Merged {
            drained: drained.removed,
            covered_through: cursor(&after),
            left: after.pending().len() as i64,
            ..merged
        })
    }

    fn untouched(&self, look: &Look) -> Merged {
        let version = look.base.version_id();
        Merged {
            shard: look.shard,
            version_before: version,
            version,
            mark_before: look.mark,
            mark: look.mark,
            covered_through: cursor(look),
            left: look.pending().len() as i64,
            ..Merged::default()
        }
    }

    fn refused(&self, look: &Look, refused: Refusal) -> Merged {
        Merged {
            refused: Some(refused),
            ..self.untouched(look)
        }
    }
}

/// How far a pass came without anything to be seen of it.
pub enum Step {
    Refused(Refusal),
    /// No generation is pending.
    Nothing,
    Ready(Box<Prepared>),
}

/// Every look found it named and not there: it was not drained by somebody else.
fn damaged(fault: Fault) -> Fault {
    match fault.class {
        Class::Gone => Fault {
            class: Class::Corrupt,
            message: format!(
                "a generation that its shard names is not there as a whole: {}",
                fault.message
            ),
            ..fault
        },
        _ => fault,
    }
}

fn cursor(look: &Look) -> u64 {
    let manifest = look.manifest.as_ref();
    manifest.map_or(0, |one| one.replay_after_wal_entry_position)
}
