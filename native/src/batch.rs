//! Batches: items that must not hurt one another.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::error::{Class, Fault};
use crate::requests::{self, Requests, Snapshot};

/// Used where the caller leaves it to us.
const CONCURRENCY: usize = 64;
const TIMEOUT: Duration = Duration::from_secs(60);

/// How a batch is worked off.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Items at work at once.
    pub concurrency: usize,
    /// For one item, from when its turn comes.
    pub timeout: Duration,
}

impl Limits {
    /// 0 leaves a value to us.
    pub fn new(concurrency: usize, timeout_ms: u64) -> Self {
        Self {
            concurrency: match concurrency {
                0 => CONCURRENCY,
                given => given,
            },
            timeout: match timeout_ms {
                0 => TIMEOUT,
                given => Duration::from_millis(given),
            },
        }
    }

    pub fn timed_out(&self) -> Fault {
        Fault::new(
            Class::Timeout,
            format!("no answer within {} ms", self.timeout.as_millis()),
        )
    }
}

/// What one item gave, and what it cost.
pub struct Outcome<T> {
    pub result: Result<T, Fault>,
    pub requests: Snapshot,
}

/// Runs `work` for every item in a task of its own, and answers in the order of
/// the items. A panic, an error or a timeout stays with its item. Dropping the
/// returned future stops all of them.
pub async fn run<I, T, W, F>(items: Vec<I>, limits: Limits, work: W) -> Vec<Outcome<T>>
where
    T: Send + 'static,
    W: Fn(I) -> F,
    F: Future<Output = Result<T, Fault>> + Send + 'static,
{
    let turns = Arc::new(Semaphore::new(limits.concurrency));
    let mut tasks = JoinSet::new();
    let mut counters = Vec::with_capacity(items.len());
    let mut places = std::collections::HashMap::new();
    for (place, item) in items.into_iter().enumerate() {
        let counter = Arc::new(Requests::default());
        counters.push(counter.clone());
        let (turns, work) = (turns.clone(), Box::pin(work(item)));
        let handle = tasks.spawn(async move {
            // The semaphore is never closed; an error would mean just that.
            let _turn = turns.acquire().await;
            let timed = timeout(limits.timeout, work);
            requests::for_item(counter, timed)
                .await
                .unwrap_or_else(|_| Err(limits.timed_out()))
        });
        places.insert(handle.id(), place);
    }
    let mut results: Vec<Option<Result<T, Fault>>> = counters.iter().map(|_| None).collect();
    while let Some(ended) = tasks.join_next_with_id().await {
        let (id, result) = match ended {
            Ok((id, result)) => (id, result),
            Err(error) => (error.id(), Err(Fault::from_join(error))),
        };
        if let Some(place) = places.get(&id) {
            results[*place] = Some(result);
        }
    }
    results
        .into_iter()
        .zip(counters)
        .map(|(result, counter)| Outcome {
            result: result
                .unwrap_or_else(|| Err(Fault::new(Class::Internal, "the task left no result"))),
            requests: counter.snapshot(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_an_error_and_a_hang_stay_with_their_item() {
        let outcomes = run(vec![0, 1, 2, 3], Limits::new(2, 50), |item| async move {
            match item {
                1 => panic!("item {item}"),
                2 => Err(Fault::new(Class::Gone, "two")),
                3 => std::future::pending().await,
                _ => Ok(item),
            }
        })
        .await;
        let classes: Vec<_> = outcomes
            .into_iter()
            .map(|outcome| outcome.result.map_err(|fault| fault.class))
            .collect();
        assert_eq!(
            classes,
            vec![
                Ok(0),
                Err(Class::Panic),
                Err(Class::Gone),
                Err(Class::Timeout)
            ]
        );
    }

    #[tokio::test]
    async fn at_most_as_many_items_as_asked_for_are_at_work_at_once() {
        use std::sync::atomic::{AtomicUsize, Ordering};
        let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let outcomes = run((0..20).collect(), Limits::new(3, 0), |_| {
            let (now, most) = (now.clone(), most.clone());
            async move {
                most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                tokio::task::yield_now().await;
                now.fetch_sub(1, Ordering::SeqCst);
                Ok(())
            }
        })
        .await;
        assert_eq!(outcomes.len(), 20);
        assert_eq!(most.load(Ordering::SeqCst), 3);
    }
}
