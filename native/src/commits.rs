//! The newest commits of a table: what they did, and who says so.

use futures::FutureExt;
use lance::Dataset;
use lance::dataset::transaction::{Operation, Transaction};
use serde::{Deserialize, Serialize};

use crate::error::{Class, Fault};

/// Used where the caller leaves it to us.
const MAX_COMMITS: usize = 64;

/// See `fleet.Commit`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Commit {
    pub version: u64,
    pub time: i64,
    pub operation: String,
    pub marks: bool,
    pub action: String,
}

/// Commits that the search for a write walks past. The caller decides what
/// maintenance is; see `fleet.WalkPast`.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct WalkPast {
    #[serde(default)]
    operations: Option<Vec<String>>,
    /// Commits that record compacted generations.
    #[serde(default)]
    marks: bool,
    /// Commits with this transaction property.
    #[serde(default)]
    property: String,
}

impl WalkPast {
    fn passes(&self, commit: &Commit) -> bool {
        let listed = |operations: &Vec<String>| operations.contains(&commit.operation);
        (self.marks && commit.marks)
            || !commit.action.is_empty()
            || (!commit.operation.is_empty() && self.operations.as_ref().is_some_and(listed))
    }
}

/// Which commits to list.
#[derive(Clone, Debug, Default)]
pub struct Walk {
    /// Not listed, nor anything before it. 0: no such bound.
    pub known_version: u64,
    pub walk_past: WalkPast,
    /// 0 leaves it to us.
    pub max_commits: usize,
}

impl Walk {
    /// Newest first, from the head down; ends with the first commit that
    /// `walk_past` does not let pass.
    pub async fn commits(&self, head: &Dataset) -> Result<Vec<Commit>, Fault> {
        let newest = head.manifest().version;
        // A known version above the head is another table's: it was recreated.
        let known = match self.known_version {
            known if known > newest => 0,
            known => known,
        };
        let most = match self.max_commits {
            0 => MAX_COMMITS,
            given => given,
        };
        let mut commits: Vec<Commit> = Vec::new();
        for version in (known + 1..=newest).rev().take(most) {
            let after = commits.last().map_or(0, |commit| commit.time);
            let commit = self.commit(head, version, after).await?;
            let passes = self.walk_past.passes(&commit);
            commits.push(commit);
            if !passes {
                break;
            }
        }
        Ok(commits)
    }

    async fn commit(&self, head: &Dataset, version: u64, after: i64) -> Result<Commit, Fault> {
        let nameless = |time| Commit {
            version,
            time,
            operation: String::new(),
            marks: false,
            action: String::new(),
        };
        match head.read_version_transaction(version).boxed().await {
            Ok(read) => {
                let commit = nameless(read.timestamp.timestamp_millis());
                Ok(match read.transaction {
                    Some(transaction) => self.named(commit, &transaction),
                    None => commit,
                })
            }
            Err(error) => match Fault::from(error) {
                // Nobody answers: what the commit was can be seen another time.
                fault if of_the_moment(fault.class) => Err(fault),
                // Cleaned up or damaged. The head itself was read already, so it
                // can only lack its transaction's own file.
                _ if version == head.manifest().version => {
                    Ok(nameless(head.manifest().timestamp().timestamp_millis()))
                }
                // It happened before the commit that follows it, and a time that
                // is too late only makes the table look fresher.
                _ => Ok(nameless(after)),
            },
        }
    }

    fn named(&self, commit: Commit, transaction: &Transaction) -> Commit {
        let properties = transaction.transaction_properties.as_ref();
        let action = properties.and_then(|properties| properties.get(&self.walk_past.property));
        Commit {
            operation: transaction.operation.name().to_owned(),
            marks: marks(&transaction.operation),
            action: action.cloned().unwrap_or_default(),
            ..commit
        }
    }
}

/// Classes of errors that another try may not meet.
pub fn of_the_moment(class: Class) -> bool {
    matches!(
        class,
        Class::Unreachable | Class::Timeout | Class::Cancelled | Class::Panic
    )
}

/// Whether a commit records generations as compacted.
fn marks(operation: &Operation) -> bool {
    match operation {
        Operation::Update {
            compacted_sstables, ..
        }
        | Operation::UpdateMemWalState { compacted_sstables } => !compacted_sstables.is_empty(),
        _ => false,
    }
}
