//! Cancel tokens by number. A number instead of a pointer makes a stale token
//! harmless.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{LazyLock, Mutex, PoisonError};

use tokio_util::sync::CancellationToken;

static NEXT: AtomicU64 = AtomicU64::new(1);
static TOKENS: LazyLock<Mutex<HashMap<u64, CancellationToken>>> = LazyLock::new(Mutex::default);

fn with_tokens<T>(act: impl FnOnce(&mut HashMap<u64, CancellationToken>) -> T) -> T {
    act(&mut TOKENS.lock().unwrap_or_else(PoisonError::into_inner))
}

/// A new token's number; never 0.
pub fn create() -> u64 {
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    with_tokens(|tokens| tokens.insert(number, CancellationToken::new()));
    number
}

pub fn fire(number: u64) {
    if let Some(token) = with_tokens(|tokens| tokens.get(&number).cloned()) {
        token.cancel();
    }
}

pub fn free(number: u64) {
    with_tokens(|tokens| tokens.remove(&number));
}

/// The token a call runs under: one that never fires for 0, none for a number
/// that is unknown or freed.
pub fn find(number: u64) -> Option<CancellationToken> {
    if number == 0 {
        return Some(CancellationToken::new());
    }
    with_tokens(|tokens| tokens.get(&number).cloned())
}
