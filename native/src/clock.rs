//! What time it is. Objects bear the storage's time, and this machine's clock may be
//! wrong: what is taken away because of its age is as old as the storage says, or as
//! this machine says, whichever is less.

use std::time::{SystemTime, UNIX_EPOCH};

use object_store::{ObjectStoreExt, PutPayload};
use uuid::Uuid;

use crate::error::{Class, Fault};
use crate::remote::Remote;

/// So far this machine's clock may be ahead of the storage's where Lance cleans up:
/// it keeps files that nothing names yet for seven days, by this machine's clock.
const AHEAD_MS: i64 = 2 * 24 * 60 * 60 * 1000;

/// This machine's time, unix ms.
pub fn now() -> i64 {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = elapsed.map_or(0, |elapsed| elapsed.as_millis() as i64);
    #[cfg(test)]
    let now = now + SKEW.try_with(|skew| *skew).unwrap_or(0);
    now
}

/// The earlier of the two clocks' times.
pub async fn at_most_now(remote: &Remote) -> Result<i64, Fault> {
    Ok(now().min(of_storage(remote).await?))
}

/// The same for what Lance cleans up: refused where this machine's clock is so wrong
/// that Lance would take away what writers are about to name.
pub async fn for_cleanup(remote: &Remote) -> Result<i64, Fault> {
    let (own, storage) = (now(), of_storage(remote).await?);
    let ahead = own.saturating_sub(storage);
    if ahead > AHEAD_MS {
        let hours = ahead / (60 * 60 * 1000);
        return Err(Fault::new(
            Class::Invalid,
            format!(
                "this machine's clock is {hours} hours ahead of the storage's: nothing is removed \
                 by its age before it is set right (at most {} hours)",
                AHEAD_MS / (60 * 60 * 1000)
            ),
        ));
    }
    Ok(own.min(storage))
}

/// The storage's time: that of an object which is written to be asked, and goes at
/// once. It lies where Lance writes what a commit begins with, under such a name: of
/// one that a killed worker leaves, Lance's clean-up disposes. Buckets tell whole
/// seconds: it is the end of that one. 3 requests.
async fn of_storage(remote: &Remote) -> Result<i64, Fault> {
    let name = format!("0-{}.txn", Uuid::new_v4());
    let path = remote.base.clone().join("_transactions").join(name);
    let store = &remote.store.inner;
    store.put(&path, PutPayload::default()).await?;
    let written = store.head(&path).await;
    store.delete(&path).await?;
    let second = written?.last_modified.timestamp();
    Ok((second + 1) * 1000)
}

#[cfg(test)]
tokio::task_local! {
    /// How wrong this machine's clock is, in ms.
    pub static SKEW: i64;
}
