//! Local disk, looked at directly: stat and readdir are cheap there, so a probe
//! looks at everything. These functions block; run them on a blocking thread.

use std::fs::{self, Metadata};
use std::io::{self, ErrorKind};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use lance::dataset::mem_wal::util::parse_bit_reversed_filename;
use lance_io::local::to_local_path;
use lance_io::object_writer::get_etag;
use object_store::path::Path;
use uuid::Uuid;

use crate::engine::Engine;
use crate::error::{Class, Fault};
use crate::fingerprint::{self, Fingerprint, ShardMark, Versions, same_etag};
use crate::hanging::{Hanging, Watch};
use crate::requests::{Kind, Requests, count_for, count_gathered};

/// One dataset on local disk, and where its requests are counted.
pub struct Disk<'a> {
    pub base: &'a Path,
    pub totals: &'a Requests,
    pub item: &'a Requests,
}

impl Disk<'_> {
    /// What moved since `known`; `None`: nothing did.
    pub fn probe(&self, known: &Fingerprint) -> Result<Option<String>, Fault> {
        let versions = self.versions()?;
        if versions.head != known.version || versions.naming != known.naming {
            return Ok(Some("base version".to_owned()));
        }
        let manifest = fingerprint::base_manifest(self.base, known.naming, known.version);
        match self.stat(&manifest)? {
            Some(file) if same_etag(&known.etag, &file.etag) => {}
            _ => return Ok(Some("base etag".to_owned())),
        }
        let shards = self.shards()?;
        if let Some(detail) = moved_shards(known, &shards) {
            return Ok(Some(detail));
        }
        for mark in &known.shards {
            if let Some(detail) = self.probe_shard(mark)? {
                return Ok(Some(detail));
            }
        }
        Ok(None)
    }

    fn probe_shard(&self, known: &ShardMark) -> Result<Option<String>, Fault> {
        let id = known.id;
        if self.shard_manifest(&id)? != known.manifest {
            return Ok(Some(format!("shard {id} manifest")));
        }
        if known.manifest > 0 {
            let manifest = fingerprint::shard_manifest(self.base, &id, known.manifest);
            match self.stat(&manifest)? {
                Some(file) if same_etag(&known.etag, &file.etag) => {}
                _ => return Ok(Some(format!("shard {id} etag"))),
            }
        }
        let next = fingerprint::wal_entry(self.base, &id, known.wal_next.max(1));
        Ok(self.stat(&next)?.map(|_| "wal tail".to_owned()))
    }

    /// All attached versions of the base table.
    pub fn versions(&self) -> Result<Versions, Fault> {
        let directory = fingerprint::versions_dir(self.base);
        let mut versions = Versions::default();
        if !self.read_dir(&directory, |name| versions.take(name).map(drop))? {
            return Err(Fault::new(Class::Gone, "there is no _versions folder"));
        }
        if versions.is_empty() {
            return Err(Fault::new(Class::Gone, "_versions has no manifest"));
        }
        Ok(versions)
    }

    /// The folders of shards, sorted. None is normal.
    pub fn shards(&self) -> Result<Vec<Uuid>, Fault> {
        let mut shards = Vec::new();
        self.read_dir(&fingerprint::shards_dir(self.base), |name| {
            shards.extend(Uuid::parse_str(name).ok());
            Ok(())
        })?;
        shards.sort_unstable();
        Ok(shards)
    }

    /// The latest manifest of a shard; 0: none.
    pub fn shard_manifest(&self, shard: &Uuid) -> Result<u64, Fault> {
        let directory = fingerprint::shard_manifests_dir(self.base, shard);
        let mut latest = 0;
        self.read_dir(&directory, |name| {
            if name.ends_with(".binpb") {
                latest = latest.max(parse_bit_reversed_filename(name).unwrap_or(0));
            }
            Ok(())
        })?;
        Ok(latest)
    }

    /// `None`: there is no such file.
    pub fn stat(&self, path: &Path) -> Result<Option<File>, Fault> {
        self.count(Kind::Head);
        match fs::metadata(to_local_path(path)) {
            Ok(metadata) if metadata.is_dir() => {
                Err(fault(path, io::Error::from(ErrorKind::IsADirectory)))
            }
            Ok(metadata) => Ok(Some(File::new(&metadata))),
            Err(error) if absent(&error) => Ok(None),
            Err(error) => Err(fault(path, error)),
        }
    }

    /// Shows every name in a folder to `take`. False: there is no such folder.
    fn read_dir(
        &self,
        path: &Path,
        mut take: impl FnMut(&str) -> Result<(), Fault>,
    ) -> Result<bool, Fault> {
        self.count(Kind::List);
        let entries = match fs::read_dir(PathBuf::from(to_local_path(path))) {
            Ok(entries) => entries,
            Err(error) if absent(&error) => return Ok(false),
            Err(error) => return Err(fault(path, error)),
        };
        for entry in entries {
            let entry = entry.map_err(|error| fault(path, error))?;
            take(&entry.file_name().to_string_lossy())?;
        }
        Ok(true)
    }

    fn count(&self, kind: Kind) {
        count_for(self.totals, self.item, kind, 1);
    }
}

/// Runs `work` on a blocking thread, for a dataset that is at work in this task.
pub async fn on_disk<T, F>(engine: &Engine, base: &Path, work: F) -> Result<T, Fault>
where
    T: Send + 'static,
    F: FnOnce(Disk) -> Result<T, Fault> + Send + 'static,
{
    if engine.hanging.knows(base.as_ref()) {
        return Err(Hanging::fault());
    }
    let watch = Watch {
        hanging: &engine.hanging,
        base: base.as_ref(),
        returned: Arc::default(),
    };
    let (base, returned) = (base.clone(), Returned(watch.returned.clone()));
    // The thread doesn't see whose task it works for, so it counts aside.
    let (result, gathered) = tokio::task::spawn_blocking(move || {
        let _returned = returned;
        let gathered = Requests::default();
        let disk = Disk {
            base: &base,
            totals: &Requests::default(),
            item: &gathered,
        };
        (work(disk), gathered.snapshot())
    })
    .await
    .map_err(Fault::from_join)?;
    count_gathered(engine.requests(), gathered);
    result
}

/// Tells, when it is dropped, that the thread came back.
struct Returned(Arc<AtomicBool>);

impl Drop for Returned {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// Shards that appeared or vanished.
pub fn moved_shards(known: &Fingerprint, seen: &[Uuid]) -> Option<String> {
    let new = seen
        .iter()
        .find(|id| !known.shards.iter().any(|mark| mark.id == **id));
    if let Some(id) = new {
        return Some(format!("new shard {id}"));
    }
    let gone = known.shards.iter().find(|mark| !seen.contains(&mark.id));
    gone.map(|mark| format!("shard gone {}", mark.id))
}

/// What stat says of a file.
pub struct File {
    pub etag: String,
    pub size: u64,
}

impl File {
    fn new(metadata: &Metadata) -> Self {
        Self {
            // The same recipe as object_store's local file system (inode, time of
            // change in microseconds, size), so an observation through that sees
            // the same.
            etag: get_etag(metadata),
            size: metadata.len(),
        }
    }
}

fn absent(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

fn fault(path: &Path, error: io::Error) -> Fault {
    Fault::from(error).at(&to_local_path(path))
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn a_look_that_was_given_up_is_not_repeated_until_it_returns() {
        let (engine, base) = (Engine::for_tests(), Path::from("hangs"));
        let (free, held) = mpsc::channel::<()>();
        let look = on_disk(&engine, &base, move |_| {
            // An error means that the test is over.
            let _ = held.recv();
            Ok(())
        });
        let timed = tokio::time::timeout(Duration::from_millis(50), look);
        assert!(timed.await.is_err());
        let again = on_disk(&engine, &base, |_| Ok(())).await;
        assert_eq!(again.unwrap_err().class, Class::Timeout);
        let other = on_disk(&engine, &Path::from("well"), |_| Ok(())).await;
        assert!(other.is_ok());

        free.send(()).unwrap();
        let deadline = std::time::Instant::now() + Duration::from_secs(10);
        while engine.hanging.knows("hangs") {
            assert!(std::time::Instant::now() < deadline, "never returned");
            tokio::task::yield_now().await;
        }
        assert!(on_disk(&engine, &base, |_| Ok(())).await.is_ok());
    }
}
