//! Probes of local datasets: many per blocking task, and none held hostage by a
//! file system that hangs.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use object_store::path::Path;
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::batch::{self, Limits, Outcome};
use crate::engine::Engine;
use crate::error::Fault;
use crate::hanging::Hanging;
use crate::local::Disk;
use crate::probe::{Moved, Target};
use crate::requests::Requests;

/// Targets that share one blocking task: starting one costs about as much as
/// looking at a small dataset.
const CHUNK: usize = 64;
/// Blocking tasks at once while all is well. More would only busy the disk.
const CHUNKS_AT_ONCE: usize = 8;

/// One local dataset of a batch.
pub struct LocalTarget {
    place: usize,
    base: Path,
    target: Target,
    requests: Requests,
    /// Set when the look at it came back, however late.
    returned: Arc<AtomicBool>,
}

impl LocalTarget {
    pub fn new(place: usize, base: Path, target: Target) -> Self {
        Self {
            place,
            base,
            target,
            requests: Requests::default(),
            returned: Arc::default(),
        }
    }

    fn answered(&self, result: Result<Moved, Fault>) -> (usize, Outcome<Moved>) {
        let result = result.map_err(|fault| fault.at(&self.target.uri));
        let requests = self.requests.snapshot();
        (self.place, Outcome { result, requests })
    }
}

/// Looks at one dataset. A parameter, so that a test can make it hang.
pub type Look = dyn Fn(&Engine, &LocalTarget) -> Result<Moved, Fault> + Send + Sync;

pub fn look(engine: &Engine, local: &LocalTarget) -> Result<Moved, Fault> {
    let known = &local.target.fingerprint;
    if known.version == 0 {
        return Ok(Some("base version".to_owned()));
    }
    let disk = Disk {
        base: &local.base,
        totals: engine.requests(),
        item: &local.requests,
    };
    disk.probe(known)
}

type Answers = Vec<(usize, Outcome<Moved>)>;
type Targets = Vec<Arc<LocalTarget>>;

/// Answers every target, with its place in the request.
pub async fn probe(
    engine: &Arc<Engine>,
    targets: Vec<LocalTarget>,
    limits: Limits,
    look: Arc<Look>,
) -> Answers {
    let targets: Targets = targets.into_iter().map(Arc::new).collect();
    let chunks = targets.chunks(CHUNK).map(<[_]>::to_vec).collect();
    let at_once = limits.concurrency.min(CHUNKS_AT_ONCE);
    let (mut answers, left) = probe_chunks(engine, chunks, at_once, limits, &look).await;
    // With one hanging file system most of these hang too. Alone, with as many
    // threads as the caller allows, each costs only its own time.
    let alone = left.into_iter().map(|target| vec![target]).collect();
    let (more, _) = probe_chunks(engine, alone, limits.concurrency, limits, &look).await;
    answers.extend(more);
    answers
}

/// Answers, and the targets that were behind one that hangs.
async fn probe_chunks(
    engine: &Arc<Engine>,
    chunks: Vec<Targets>,
    at_once: usize,
    limits: Limits,
    look: &Arc<Look>,
) -> (Answers, Targets) {
    // Within a chunk each target has its own time.
    let untimed = Limits {
        concurrency: at_once,
        timeout: Duration::MAX,
    };
    let outcomes = batch::run(chunks.clone(), untimed, |chunk| {
        let (engine, look) = (engine.clone(), look.clone());
        async move { Ok(probe_chunk(&engine, chunk, limits, &look).await) }
    })
    .await;
    let (mut answers, mut left) = (Vec::new(), Vec::new());
    for (chunk, outcome) in chunks.iter().zip(outcomes) {
        match outcome.result {
            Ok((answered, behind)) => {
                answers.extend(answered);
                left.extend(behind);
            }
            Err(fault) => answers.extend(chunk.iter().map(|t| t.answered(Err(fault.clone())))),
        }
    }
    (answers, left)
}

/// Looks at a chunk on one thread. The target that hangs is answered with a
/// timeout, and those behind it are given back.
async fn probe_chunk(
    engine: &Arc<Engine>,
    chunk: Targets,
    limits: Limits,
    look: &Arc<Look>,
) -> (Answers, Targets) {
    let mut answers = Vec::with_capacity(chunk.len());
    let mut looks = start_looking(engine, chunk.clone(), look);
    for (index, target) in chunk.iter().enumerate() {
        match timeout(limits.timeout, looks.recv()).await {
            Ok(Some(moved)) => answers.push(target.answered(moved)),
            Ok(None) | Err(_) => {
                engine
                    .hanging
                    .remember(target.base.as_ref(), &target.returned);
                answers.push(target.answered(Err(limits.timed_out())));
                return (answers, chunk[index + 1..].to_vec());
            }
        }
    }
    (answers, Vec::new())
}

/// Looks at the targets one after the other on a blocking thread; the answers
/// come in that order. It ends when the receiver is dropped, at the latest with
/// the look at work.
fn start_looking(
    engine: &Arc<Engine>,
    chunk: Targets,
    look: &Arc<Look>,
) -> mpsc::UnboundedReceiver<Result<Moved, Fault>> {
    let (answers, receiver) = mpsc::unbounded_channel();
    let (engine, look) = (engine.clone(), look.clone());
    tokio::task::spawn_blocking(move || {
        for target in chunk {
            // Started too late: its time was up while it waited for a thread.
            if answers.is_closed() {
                target.returned.store(true, Ordering::Release);
                return;
            }
            let moved = match engine.hanging.knows(target.base.as_ref()) {
                true => Err(Hanging::fault()),
                false => catch_unwind(AssertUnwindSafe(|| look(&engine, &target)))
                    .unwrap_or_else(|panic| Err(Fault::from_panic(panic.as_ref()))),
            };
            target.returned.store(true, Ordering::Release);
            if answers.send(moved).is_err() {
                return;
            }
        }
    });
    receiver
}

#[cfg(test)]
mod tests {
    use std::sync::{Condvar, Mutex};

    use super::*;
    use crate::error::Class;

    /// Holds back looks until it is opened.
    #[derive(Default)]
    struct Gate {
        open: Mutex<bool>,
        changed: Condvar,
    }

    impl Gate {
        fn wait(&self) {
            let open = self.open.lock().unwrap();
            drop(self.changed.wait_while(open, |open| !*open).unwrap());
        }

        fn open(&self) {
            *self.open.lock().unwrap() = true;
            self.changed.notify_all();
        }
    }

    fn targets(names: &[&str]) -> Vec<LocalTarget> {
        let target = |(place, name): (usize, &&str)| {
            let target = serde_json::json!({ "uri": name, "fingerprint": { "version": 1 } });
            LocalTarget::new(
                place,
                Path::from(*name),
                serde_json::from_value(target).unwrap(),
            )
        };
        names.iter().enumerate().map(target).collect()
    }

    fn classes(mut answers: Answers) -> Vec<Option<Class>> {
        answers.sort_by_key(|(place, _)| *place);
        let class = |(_, outcome): (usize, Outcome<Moved>)| outcome.result.err().map(|f| f.class);
        answers.into_iter().map(class).collect()
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_hanging_dataset_costs_only_itself_and_is_left_alone_until_it_returns() {
        let engine = Arc::new(Engine::for_tests());
        let gate = Arc::new(Gate::default());
        let looks = Arc::new(Mutex::new(Vec::new()));
        let (held, seen) = (gate.clone(), looks.clone());
        let look: Arc<Look> = Arc::new(move |_, local| {
            seen.lock().unwrap().push(local.target.uri.clone());
            match local.target.uri.as_str() {
                "hangs" => held.wait(),
                "panics" => panic!("as asked"),
                _ => {}
            }
            Ok(None)
        });
        let limits = Limits::new(4, 200);
        let names = ["a", "panics", "hangs", "b", "c"];
        let answers = probe(&engine, targets(&names), limits, look.clone()).await;
        let expected = vec![None, Some(Class::Panic), Some(Class::Timeout), None, None];
        assert_eq!(classes(answers), expected);

        // A second round does not give it another thread.
        let answers = probe(&engine, targets(&names), limits, look.clone()).await;
        assert_eq!(classes(answers), expected);
        let hung = |looks: &Mutex<Vec<String>>| {
            let looks = looks.lock().unwrap();
            looks.iter().filter(|uri| *uri == "hangs").count()
        };
        assert_eq!(hung(&looks), 1);

        gate.open();
        let deadline = std::time::Instant::now() + Duration::from_secs(10);
        while engine.hanging.knows("hangs") {
            assert!(std::time::Instant::now() < deadline, "never returned");
            tokio::task::yield_now().await;
        }
        let answers = probe(&engine, targets(&["hangs"]), limits, look).await;
        assert_eq!(classes(answers), vec![None]);
    }
}
